// @ts-check
// Puts the page together.

import * as api from "./api.js";
import { startClock } from "./clock.js";
import { makeCompare } from "./compare.js";
import { makeDock } from "./dock.js";
import { byId, fill, setText, toast } from "./dom.js";
import { makeEdit } from "./edit.js";
import { makeFind } from "./find.js";
import { language, setLanguage, t } from "./i18n.js";
import { icon } from "./icons.js";
import { makeKeys } from "./keys.js";
import { makeLibrary } from "./library.js";
import { makeLog } from "./log.js";
import { startTheme, switchTheme } from "./palette.js";
import { makePredict } from "./predict.js";
import { makeCounters, makeNow, makePromises, makeRules, makeStory } from "./reading.js";
import { makeSetup } from "./setup.js";
import { makeShare, openLink } from "./share.js";
import { makeSpacetime } from "./spacetime.js";
import { Stage } from "./stage.js";
import { Lab, Side } from "./state.js";
import { makeTransport } from "./transport.js";
import { makeWaiting } from "./waiting.js";

const FIRST_STORY = "s03-slow-holder";

startTheme();
setLanguage(language());
const lab = new Lab();
const clock = startClock(lab);
const predict = makePredict(lab);
makeTransport(lab, predict);
makeNow(lab);
makeStory(lab);
makeRules(lab);
makePromises(lab);
makeCounters(lab);
makeLog(lab);
makeWaiting(lab);
makeEdit(lab);
makeSetup(lab);
makeSpacetime(lab);
makeLibrary(lab);
makeCompare(lab);
makeFind(lab);
makeShare(lab);
const dock = makeDock(lab);
lab.on("watch", () => dock.show("edit"));
makeKeys(lab, dock, predict);
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
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-icon]"))) {
    element.append(icon(/** @type {import("./icons.js").Icon} */ (element.dataset.icon)));
  }
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
  // What the address holds, or a story that shows what this is about.
  lab.setSides([new Side({ algorithm: lab.catalogue.algorithms[0].name })], 0);
  if (await openLink(lab, location.hash)) return;
  const story = lab.catalogue.stories.find((other) => other.id === FIRST_STORY) ?? lab.catalogue.stories[0];
  await lab.open(story.scenario, story.scenario);
}

const ready = start();
// For tests and for the bench.
/** @type {any} */ (window).vezLab = { ready, lab, time: () => lab.time, frameTimes: () => [...clock.frames] };
