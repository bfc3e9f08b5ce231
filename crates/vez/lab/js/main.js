// @ts-check
// Puts the page together.

import * as api from "./api.js";
import { startClock } from "./clock.js";
import { makeDock } from "./dock.js";
import { byId, fill, setText, toast } from "./dom.js";
import { language, setLanguage, t } from "./i18n.js";
import { makeLibrary } from "./library.js";
import { makeLog } from "./log.js";
import { startTheme, switchTheme } from "./palette.js";
import { makeCounters, makeNow, makePromises, makeRules, makeStory } from "./reading.js";
import { Stage } from "./stage.js";
import { Lab, Side } from "./state.js";
import { makeTransport } from "./transport.js";

const FIRST_STORY = "s03-slow-holder";

startTheme();
setLanguage(language());
const lab = new Lab();
const clock = startClock(lab);
makeTransport(lab);
makeNow(lab);
makeStory(lab);
makeRules(lab);
makePromises(lab);
makeCounters(lab);
makeLog(lab);
makeLibrary(lab);
makeDock(lab);
makeStages();
makeBar();

/** One stage for each side. */
function makeStages() {
  /** @type {Stage[]} */
  let stages = [];
  lab.on("sides", () => {
    stages = lab.sides.map((side) => stages.find((stage) => stage.side === side) ?? new Stage(lab, side));
    const host = byId("stages");
    if (host.children.length !== stages.length || stages.some((stage, i) => host.children[i] !== stage.root)) fill(host, ...stages.map((stage) => stage.root));
    host.classList.toggle("two", stages.length > 1);
  });
  lab.on(["run", "sides", "language", "busy", "theme"], () => stages.forEach((stage) => stage.update()));
  lab.on("frame", () => stages.forEach((stage) => stage.moved()));
  lab.on("select", () => stages.forEach((stage) => stage.invalidate()));
}

function makeBar() {
  byId("switch-language").addEventListener("click", () => {
    setLanguage(language() === "en" ? "pt" : "en");
    lab.emit("language");
  });
  byId("switch-theme").addEventListener("click", () => {
    switchTheme();
    lab.emit("theme");
  });
  byId("undo").addEventListener("click", () => lab.undo(-1));
  byId("redo").addEventListener("click", () => lab.undo(1));
  lab.on(["run", "sides"], () => {
    /** @type {HTMLButtonElement} */ (byId("undo")).disabled = !lab.side?.past.length;
    /** @type {HTMLButtonElement} */ (byId("redo")).disabled = !lab.side?.future.length;
  });
  const words = () => {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-say]"))) setText(element, lookUp(element.dataset.say));
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-label]"))) {
      element.setAttribute("aria-label", lookUp(element.dataset.label));
      if (element instanceof HTMLButtonElement) element.title = lookUp(element.dataset.label);
    }
  };
  lab.on("language", words);
  words();
}

/** A text of the dictionary by its path, as in `app.undo`. @param {string|undefined} path */
function lookUp(path) {
  /** @type {any} */
  let found = t();
  for (const part of (path ?? "").split(".")) found = found?.[part];
  return typeof found === "string" ? found : "";
}

async function start() {
  try {
    lab.catalogue = await api.fetchCatalogue();
  } catch {
    toast(t().app.offline, "error");
    return;
  }
  const story = lab.catalogue.stories.find((other) => other.id === FIRST_STORY) ?? lab.catalogue.stories[0];
  lab.setSides([new Side(story.scenario)], 0);
  await lab.open(story.scenario, story.scenario);
}

const ready = start();
// For tests and for the bench.
/** @type {any} */ (window).vezLab = { ready, lab, time: () => lab.time, frameTimes: () => [...clock.frames] };
