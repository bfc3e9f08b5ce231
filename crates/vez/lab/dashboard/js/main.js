// @ts-check
// Puts the dashboard together: asks once a second, while somebody looks, and shows what it hears.
//
// What a test can take hold of, by `data-testid`:
//   state, trouble, to-lab, switch-language, switch-theme, search, order
//   plots, plot-SERIES           requests, request_ms, grants, wait_ms, sync_ms
//   locks, elections             with line, queue, release in them; KIND-count, KIND-empty, KIND-previous,
//                                KIND-next, KIND-where
//   leases, lease, members, member, history, happening (data-what)
//   release-dialog, release-hurt, release-confirm, release-cancel, token-dialog, token, token-use, token-wrong
// `window.vezDashboard` has `seen`, the last answer, and `answers`, how many there were.

import { byId, el, fill, setText } from "../../js/dom.js";
import { language, setLanguage } from "../../js/i18n.js";
import { icon } from "../../js/icons.js";
import { startTheme, switchTheme } from "../../js/palette.js";
import * as api from "./api.js";
import { makeHistory, makeLeases, showMembers } from "./lists.js";
import { makePlots } from "./plots.js";
import { makeQueues } from "./queues.js";
import { setAllowed } from "./release.js";
import { span, t } from "./words.js";

/** Between two questions; the server is asked by as many as look. */
const EVERY = 1000;

/** @type {{seen: import("./types.js").Service|null, answers: number}} */
const dashboard = { seen: null, answers: 0 };
const question = { search: "", order: "waiting", locks: 0, elections: 0, after: 0 };
let heard = performance.now();
/** Ends the pause between two questions. @type {() => void} */
let hurry = () => {};

startTheme();
api.takeToken();
addEventListener("hashchange", () => {
  api.takeToken();
  hurry();
});
const showPlots = makePlots();
const showLeases = makeLeases();
const history = makeHistory();
const showLocks = makeQueues("locks", (offset) => turn("locks", offset));
const showElections = makeQueues("elections", (offset) => turn("elections", offset));
makeBar();
setLanguage(language());
say();
void ask();

/** @param {"locks"|"elections"} kind @param {number} offset */
function turn(kind, offset) {
  question[kind] = offset;
  hurry();
}

function makeBar() {
  byId("switch-theme").append(icon("theme"));
  byId("switch-theme").addEventListener("click", switchTheme);
  byId("switch-language").addEventListener("click", () => {
    setLanguage(language() === "en" ? "pt" : "en");
    say();
    if (dashboard.seen) show({ ...dashboard.seen, history: [] });
  });
  const search = /** @type {HTMLInputElement} */ (byId("search"));
  search.addEventListener("input", () => {
    Object.assign(question, { search: search.value, locks: 0, elections: 0 });
    hurry();
  });
  const order = /** @type {HTMLSelectElement} */ (byId("order"));
  order.addEventListener("change", () => {
    Object.assign(question, { order: order.value, locks: 0, elections: 0 });
    hurry();
  });
}

/** What never changes but with the language. */
function say() {
  const word = (/** @type {string|undefined} */ name) => String(/** @type {any} */ (t())[name ?? ""] ?? "");
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-say]")))
    setText(element, word(element.dataset.say));
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-label]"))) {
    element.setAttribute("aria-label", word(element.dataset.label));
    if (element instanceof HTMLInputElement) element.placeholder = word(element.dataset.label);
    if (element instanceof HTMLButtonElement) element.title = word(element.dataset.label);
  }
  const order = /** @type {HTMLSelectElement} */ (byId("order"));
  fill(order, el("option", { value: "waiting" }, t().byWaiting), el("option", { value: "name" }, t().byName));
  order.value = question.order;
  document.title = t().title;
  if (!dashboard.seen) setText(byId("state"), t().connecting);
}

async function ask() {
  for (;;) {
    question.after = history.last();
    const asked = JSON.stringify(question);
    try {
      const seen = await api.look(question);
      heard = performance.now();
      // After a restart everything is numbered anew.
      if (dashboard.seen && seen.uptime_ms < dashboard.seen.uptime_ms) {
        history.clear();
        seen.history = [];
      }
      dashboard.seen = seen;
      show(seen);
      dashboard.answers += 1;
      // A page beyond the end, because what was there has gone.
      for (const kind of /** @type {const} */ (["locks", "elections"]))
        if (seen[kind].offset && !seen[kind].lines.length) question[kind] = 0;
    } catch {
      showTrouble(t().offline(span(performance.now() - heard)));
    }
    // What was typed meanwhile is asked at once.
    question.after = JSON.parse(asked).after;
    if (JSON.stringify(question) === asked) await pause();
  }
}

/** Nobody is asked while nobody looks. */
async function pause() {
  await new Promise((resolve) => {
    hurry = () => resolve(undefined);
    setTimeout(hurry, EVERY);
  });
  if (document.hidden)
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

/** @param {import("./types.js").Service} seen */
function show(seen) {
  const searched = question.search.trim() !== "";
  setAllowed(seen.may_release);
  setText(byId("state"), `${t().state(seen.held, seen.waiting, seen.watchers)} · ${t().up(span(seen.uptime_ms))}`);
  showTrouble(seen.trouble ? t().trouble(seen.trouble) : "");
  showPlots(seen.samples);
  showLocks(seen.locks, searched);
  showElections(seen.elections, searched);
  showLeases(seen.leases);
  showMembers(seen.members);
  history.show(seen.history);
}

/** @param {string} text */
function showTrouble(text) {
  byId("trouble").hidden = !text;
  setText(byId("trouble"), text);
}

// For tests.
/** @type {any} */ (window).vezDashboard = dashboard;
