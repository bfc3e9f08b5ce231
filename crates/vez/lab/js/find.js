// @ts-check
// Letting the checker search for a run that breaks a promise, and playing what it finds.

import * as api from "./api.js";
import { byId, el, fill, setText, showDialog } from "./dom.js";
import { number, say, sayDetail, t } from "./i18n.js";
import { sizeOf } from "./scenario.js";
import { keepMembers } from "./setup.js";

const POLL_MS = 250;
/** More processes than this are more orders than anyone can wait for. */
const NODES_FIRST = 4;
const NODES_MAX = 12;
/** What a search may leave out, if the algorithm does not say. */
const WITHOUT = ["fifo"];

/** @param {import("./state.js").Lab} lab */
export function makeFind(lab) {
  byId("open-find").addEventListener("click", () => openFind(lab));
}

/** @param {import("./state.js").Lab} lab */
export function openFind(lab) {
  const { timeline, side } = lab;
  if (!timeline) return;
  lab.pause();
  const words = t().find;
  const algorithm = lab.algorithm(side.scenario.algorithm);
  const promise = el(
    "select",
    { id: "find-promise", "data-testid": "find-promise" },
    el("option", { value: "" }, words.any),
    ...timeline.run.result.promises.map(({ name, claimed }) =>
      el(
        "option",
        { value: name },
        `${t().promises.names[name] ?? name}${claimed ? "" : ` (${t().promises.unclaimed})`}`,
      ),
    ),
  );
  const amount = (/** @type {string} */ id, /** @type {number|string} */ value, /** @type {number} */ max) =>
    el("input", {
      type: "number",
      min: "0",
      max: String(max),
      value: String(value),
      placeholder: words.auto,
      "data-testid": `find-${id}`,
    });
  const [entries, crashes, losses, duplicates] = [
    amount("entries", 1, 3),
    amount("crashes", "", 3),
    amount("losses", "", 3),
    amount("duplicates", "", 3),
  ];
  const states = amount("states", 500_000, 20_000_000);
  const size = sizeOf(side.scenario);
  const nodes = amount("nodes", size <= NODES_FIRST ? size : 3, NODES_MAX);
  /** A number, or nothing said. @param {HTMLInputElement} input */
  const count = (input) => (input.value.trim() === "" ? null : Number(input.value));
  const without = (algorithm?.without ?? WITHOUT).map((id) =>
    el(
      "label",
      { class: "field check" },
      el("input", { type: "checkbox", value: id, "data-testid": `find-without-${id}` }),
      `${words.without} ${words.without_[id] ?? id}`,
    ),
  );
  const field = (/** @type {string} */ name, /** @type {HTMLElement} */ input, wide = false) =>
    el("label", { class: wide ? "field wide" : "field" }, name, input);
  const go = el("button", { type: "submit", class: "primary", "data-testid": "find-go" }, words.go);
  const stop = el(
    "button",
    { type: "button", class: "secondary", hidden: true, "data-testid": "find-cancel" },
    words.cancel,
  );
  const status = el("p", { role: "status", "data-testid": "find-status" });
  const bar = el("progress", { hidden: true, "aria-label": words.title });
  const result = el("div", { class: "found", "data-testid": "find-result" });
  const form = el(
    "form",
    {
      class: "form",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        search();
      },
    },
    field(words.promise, promise, true),
    field(words.nodes, nodes),
    algorithm?.problem === "mutex" ? field(words.entries, entries) : null,
    field(words.crashes, crashes),
    field(words.losses, losses),
    field(words.duplicates, duplicates),
    field(words.states, states),
    ...without,
    el("div", { class: "dialog-actions field wide" }, stop, go),
  );
  const dialog = showDialog(
    "find",
    words.title,
    t().app.close,
    el("p", { class: "muted" }, words.explain(say(algorithm?.title))),
    form,
    bar,
    status,
    result,
  );
  /** @type {number|null} */
  let running = null;
  const cancel = () => {
    if (running !== null) api.cancelCheck(running).catch(() => {});
    running = null;
  };
  dialog.addEventListener("close", cancel);
  stop.addEventListener("click", () => {
    cancel();
    idle();
  });

  function idle() {
    bar.hidden = true;
    stop.hidden = true;
    go.disabled = false;
  }

  async function search() {
    fill(result);
    setText(status, "");
    bar.hidden = false;
    stop.hidden = false;
    go.disabled = true;
    const checked = without
      .map((label) => /** @type {HTMLInputElement} */ (label.firstElementChild))
      .filter((box) => box.checked)
      .map((box) => box.value);
    try {
      const id = await api.startCheck({
        scenario: smaller(side.scenario, count(nodes) ?? size),
        promise: promise.value || null,
        entries: count(entries) ?? 1,
        crashes: count(crashes),
        losses: count(losses),
        duplicates: count(duplicates),
        without: checked,
        states_max: Number(states.value),
      });
      running = id;
      await poll(id);
    } catch (error) {
      setText(status, String(/** @type {Error} */ (error).message));
    }
    idle();
  }

  /** @param {number} id */
  async function poll(id) {
    while (running === id) {
      const { state, progress, outcome, error } = await api.checkStatus(id);
      if (running !== id) return;
      setText(status, words.progress(number(progress.states), progress.depth, number(progress.seconds, 1)));
      if (error) setText(status, error);
      if (state === "done") {
        running = null;
        if (outcome) report(outcome);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** @param {import("./types.js").CheckOutcome} outcome */
  function report(outcome) {
    const { broken } = outcome;
    if (!broken) {
      const text = outcome.complete ? words.kept(number(outcome.states)) : words.keptSoFar(number(outcome.states));
      fill(
        result,
        el(
          "p",
          { class: outcome.complete ? "verdict-kept" : "" },
          text,
          outcome.stopped ? ` (${outcome.stopped})` : "",
        ),
      );
      return;
    }
    const { scenario } = broken;
    const play = el(
      "button",
      {
        type: "button",
        class: "primary",
        "data-testid": "find-play",
        disabled: !scenario,
        title: scenario ? "" : words.unplayable,
        onclick: () => scenario && playIt(scenario),
      },
      words.play,
    );
    fill(
      result,
      el(
        "p",
        { class: "verdict-broken" },
        words.broken(t().promises.names[broken.promise] ?? broken.promise, broken.steps.length),
      ),
      el("p", {}, sayDetail(broken.detail)),
      el(
        "ol",
        {},
        ...broken.steps.map((step, i) =>
          el("li", { class: broken.cycle_from !== null && i >= broken.cycle_from ? "cycle" : "" }, step),
        ),
      ),
      broken.cycle_from !== null ? el("p", { class: "muted" }, words.cycle) : null,
      el("div", { class: "dialog-actions" }, play),
    );
    play.focus();
  }

  /** @param {import("./types.js").Scenario} scenario */
  async function playIt(scenario) {
    dialog.close();
    if (await lab.open(scenario)) lab.play();
  }
}

/** The same with other so many processes. @param {import("./types.js").Scenario} scenario @param {number} nodes */
function smaller(scenario, nodes) {
  if (nodes === sizeOf(scenario)) return scenario;
  const { ids: _, edges: __, expect: ___, ...rest } = structuredClone(scenario);
  return keepMembers({ ...rest, nodes });
}
