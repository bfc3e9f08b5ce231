// @ts-check
// Puts the page together.
//
// What a test can take hold of, by `data-testid`:
//   open-library, library-search, algorithm-NAME, story-ID    pick an algorithm or a story
//   follow                                                     goes along with a cluster that runs
//   to-dashboard                                               where the lab is served beside the service
//   undo, redo, switch-language, switch-theme, open-keys       the bar above
//   play, step-back, step-forward, to-start, to-end, scrubber, speed, skip-quiet, position
//   previous-KIND, next-KIND     jumps; KIND is receive, violation, and entry or election
//   stage, stage-canvas, process-UID, side-heading             a stage; the button of a process
//   menu, menu-ACTION            crash, crash-unsent, restart, restart-amnesia, pause, acquire, withdraw, start,
//                                suspect, suspect-UID, isolate, heal-all, watch (a process); cut, cut-there,
//                                cut-back, heal, delay, loss, fast (a link); drop, duplicate, hold, normal (a
//                                message); partition, cancel (a line drawn on the stage)
//   bin-drop, bin-twice, bin-hold                              where a dragged message can be dropped
//   tab-NAME, panel-NAME         story, promises, rules, log, counters, waiting, edit, setup, diagram
//   now-text, story-title, story-look, clause (data-upon, aria-current), promise-NAME (data-state)
//   log, log-row (data-step), log-filter, count-KIND, count-total, count-lost, count-flight, count-outcome
//   wait-reason, wait-circle, process-state
//   edit-action, edit-who, edit-whom, edit-span, edit-value, edit-groups, edit-at, edit-apply
//   flight, flight-drop, flight-twice, flight-hold, happening, happening-remove
//   setup-nodes, setup-ids, setup-seed, setup-dice, setup-topology, setup-until, setup-delay, setup-loss,
//   setup-duplicate, setup-fifo, setup-algorithm, config-NAME
//   open-compare (again to stop), compare-KIND, compare-KIND-choice, compare-go    KIND: algorithm, seed, story, same
//   open-find, find-promise, find-nodes, find-entries, find-crashes, find-losses, find-duplicates, find-states,
//   find-without-NAME, find-go, find-cancel, find-status, find-result, find-play
//   open-share, share-link, share-copy, export-FORMAT, import-file
//   toggle-predict, predict, predict-question, predict-option (data-answer), predict-verdict, predict-next,
//   predict-score, predict-reset, diagram, diagram-in, diagram-out, diagram-fit, toast
// `window.vezLab` has `ready`, `lab`, `time()` and `frameTimes()`.

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
import { Live } from "./live.js";
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
    if (host.children.length !== stages.length || stages.some((stage, i) => host.children[i] !== stage.root))
      fill(host, ...stages.map((stage) => stage.root));
    host.classList.toggle("two", stages.length > 1);
  });
  lab.on(["run", "grow", "sides", "language", "busy", "theme"], () => stages.forEach((stage) => stage.update()));
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
  // Beside the service, the lab is below its own name, and the dashboard at the root.
  byId("to-dashboard").hidden = !location.pathname.startsWith("/lab");
  const words = () => {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-say]")))
      setText(element, lookUp(element.dataset.say));
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
  // A cluster that runs, what the address holds, or a story that shows what this is about.
  lab.setSides([new Side({ algorithm: lab.catalogue.algorithms[0].name })], 0);
  if (lab.catalogue.live) return new Live(lab).start();
  if (await openLink(lab, location.hash)) return;
  const story = lab.catalogue.stories.find((other) => other.id === FIRST_STORY) ?? lab.catalogue.stories[0];
  await lab.open(story.scenario, story.scenario);
}

const ready = start();
// For tests and for the bench.
/** @type {any} */ (window).vezLab = { ready, lab, time: () => lab.time, frameTimes: () => [...clock.frames] };
