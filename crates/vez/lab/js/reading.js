// @ts-check
// What is read beside the stage: the current step, the story, the rules, the promises, the counters.

import { byId, el, fill, setText } from "./dom.js";
import { moment, number, say, sayDetail, t } from "./i18n.js";
import { kindColour } from "./palette.js";
import { countBelow } from "./sorted.js";
import { tellStep } from "./words.js";

/** @typedef {import("./state.js").Lab} Lab */

/** The step that just happened, as a sentence. @param {Lab} lab */
export function makeNow(lab) {
  const [time, text] = [byId("now-time"), byId("now-text")];
  function update() {
    const { timeline, side } = lab;
    if (!timeline) return;
    setText(time, moment(lab.time));
    // While it plays, a screen reader would only be in its own way.
    text.setAttribute("aria-live", lab.playing ? "off" : "polite");
    if (side.position === 0) return fill(text, t().now.start);
    const told = tellStep(timeline, side.position - 1);
    fill(
      text,
      el("b", {}, told.head),
      told.effects ? `: ${told.effects}.` : ".",
      told.broken.length ? el("span", { class: "why" }, ` ✗ ${told.broken.join("; ")}.`) : null,
    );
  }
  const clock = () => setText(time, moment(Math.round(lab.time * 100) / 100));
  lab.on(["step", "run", "language"], update);
  // A text that changes lays the page out anew: while it plays, no more often than one can read.
  lab.on("step", clock);
  lab.on("frame", () => lab.playing || clock());
}

/** @param {Lab} lab */
export function makeStory(lab) {
  const panel = byId("panel-story");
  function update() {
    const { side } = lab;
    if (!side) return;
    const words = t().story;
    const algorithm = lab.algorithm(side.scenario.algorithm);
    const { name, title, look } = side.scenario;
    const changed = side.origin !== null && JSON.stringify(side.scenario) !== JSON.stringify(side.origin);
    const list = (/** @type {string} */ label, /** @type {import("./types.js").Words[]|undefined} */ items) =>
      items?.length
        ? el("details", {}, el("summary", {}, label), el("ul", {}, ...items.map((item) => el("li", {}, say(item)))))
        : null;
    fill(
      panel,
      el(
        "div",
        {},
        name ? el("span", { class: "story-name" }, `${name} · `) : null,
        el("span", { class: "story-name" }, say(algorithm?.title)),
        changed ? el("span", { class: "chip" }, words.changed) : null,
      ),
      el("h2", { "data-testid": "story-title" }, say(title) || say(algorithm?.title) || words.own),
      look
        ? el(
            "p",
            { class: "look", "data-testid": "story-look" },
            el("span", { class: "visually-hidden" }, `${words.lookFor}: `),
            say(look),
          )
        : el("p", {}, say(algorithm?.line)),
      el("details", {}, el("summary", {}, words.idea), el("p", { class: "prose" }, say(algorithm?.idea))),
      list(words.breaks, algorithm?.breaks),
      list(words.errata, algorithm?.errata),
    );
  }
  lab.on(["run", "language", "sides"], update);
}

/** @param {Lab} lab */
export function makeRules(lab) {
  const panel = byId("panel-rules");
  const clauses = el("div", { class: "clauses" });
  let drawn = "";
  function draw() {
    const algorithm = lab.side ? lab.algorithm(lab.side.scenario.algorithm) : null;
    drawn = "";
    panel.setAttribute("aria-label", t().rules.label);
    fill(
      clauses,
      ...(algorithm?.clauses ?? []).map((clause) =>
        el("pre", { class: "clause", "data-upon": clause.upon, "data-testid": "clause" }, say(clause).trim()),
      ),
    );
    fill(panel, el("h2", { class: "label" }, t().tabs.rules), clauses);
    mark();
  }
  /** Marks the clause that just ran. */
  function mark() {
    const { timeline, side } = lab;
    if (!timeline) return;
    const step = side.position - 1;
    const cause = step >= 0 ? timeline.cause(step) : null;
    const kind = step >= 0 ? timeline.first(step).kind : "";
    const upon =
      cause === "boot"
        ? "boot"
        : cause === "receive"
          ? `message ${kind}`
          : cause === "timer"
            ? `timer ${kind}`
            : cause === "request"
              ? `request ${kind}`
              : "";
    if (upon === drawn) return;
    drawn = upon;
    for (const clause of /** @type {HTMLElement[]} */ ([...clauses.children])) {
      const ran = clause.dataset.upon === upon;
      clause.classList.toggle("ran", ran);
      if (ran) {
        clause.setAttribute("aria-current", "step");
        reveal(clause);
      } else clause.removeAttribute("aria-current");
    }
  }
  lab.on(["run", "language", "sides"], draw);
  lab.on("step", mark);
}

/** Scrolls its own panel, never the page. @param {HTMLElement} element */
function reveal(element) {
  /** @type {HTMLElement|null} */
  let host = element.parentElement;
  while (host && host.scrollHeight <= host.clientHeight + 1) host = host.parentElement;
  if (
    !host ||
    host === document.documentElement ||
    host === document.body ||
    getComputedStyle(host).overflowY === "visible"
  )
    return;
  const [outer, inner] = [host.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) host.scrollTop += inner.top - outer.top - outer.height / 3;
}

/** @param {Lab} lab */
export function makePromises(lab) {
  const panel = byId("panel-promises");
  const lights = el("ul", { class: "lights" });
  const summary = el("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  let said = "";
  function update() {
    const { timeline, side } = lab;
    if (!timeline) return;
    const words = t().promises;
    const over = !side.live && side.position >= timeline.steps && lab.time >= timeline.duration;
    const broken = new Set();
    const rows = timeline.run.result.promises.map((promise) => {
      const step = violationOf(timeline, promise.name);
      const isBroken = step !== null && step < side.position;
      const later = step !== null && !isBroken;
      if (isBroken) broken.add(promise.name);
      const name = words.names[promise.name] ?? promise.name;
      const verdict = isBroken
        ? words.brokenAt(moment(timeline.stepTime[step]))
        : !promise.claimed
          ? words.unclaimed
          : over && promise.kept
            ? words.keptAll
            : words.kept;
      const jump = () => {
        if (step !== null) {
          lab.pause();
          lab.goTo(step + 1);
        }
      };
      return el(
        "li",
        {},
        el(
          "button",
          {
            class: `light${isBroken ? " broken" : ""}${promise.claimed ? "" : " unclaimed"}`,
            type: "button",
            "data-testid": `promise-${promise.name}`,
            "data-state": isBroken ? "broken" : "kept",
            title: [words.means[promise.name], later ? words.willBreak(moment(timeline.stepTime[step ?? 0])) : ""]
              .filter(Boolean)
              .join(" · "),
            onclick: jump,
          },
          el("span", { class: "lamp", "aria-hidden": "true" }),
          el("span", { class: "promise-name" }, name),
          el("span", { class: "verdict" }, verdict),
          isBroken ? el("span", { class: "why" }, detailOf(timeline, promise.name)) : null,
        ),
      );
    });
    fill(lights, ...rows);
    const now = [...broken].map((name) => `${words.names[name]}: ${words.broken}`).join(". ");
    if (now !== said) setText(summary, (said = now));
  }
  let key = "";
  /** Only when a light changes. */
  function lazily() {
    const { timeline, side } = lab;
    if (!timeline) return;
    const next = `${countBelow(timeline.marks.violation, side.position)} ${side.position >= timeline.steps}`;
    if (next !== key) {
      key = next;
      update();
    }
  }
  lab.on(["run", "language", "sides"], () => {
    fill(panel, el("h2", { class: "label" }, t().promises.label), lights, summary);
    update();
  });
  lab.on("grow", () => (key = ""));
  lab.on("step", lazily);
}

/** The step that first broke a promise. @param {import("./timeline.js").Timeline} timeline @param {string} promise */
function violationOf(timeline, promise) {
  for (const step of timeline.marks.violation) {
    if (timeline.eventsOf(step).some((event) => event.event === "violation" && event.promise === promise)) return step;
  }
  return null;
}

/** @param {import("./timeline.js").Timeline} timeline @param {string} promise */
function detailOf(timeline, promise) {
  const step = violationOf(timeline, promise);
  const event =
    step === null
      ? null
      : timeline.eventsOf(step).find((other) => other.event === "violation" && other.promise === promise);
  return sayDetail(event?.detail ?? "");
}

/** @param {Lab} lab */
export function makeCounters(lab) {
  const panel = byId("panel-counters");
  const body = el("tbody");
  const costs = el("div", { class: "cost" });
  /** @type {HTMLElement[]} */
  let cells = [];
  function draw() {
    const { timeline } = lab;
    if (!timeline) return;
    const words = t().counters;
    const mutex = timeline.run.result.problem === "mutex";
    const names = [...timeline.kinds, words.total, words.lost, words.flight, mutex ? words.entries : words.elections];
    const finals = [
      ...timeline.countsAt(timeline.steps),
      timeline.messages.number.reduce((most, value) => Math.max(most, value), 0),
      timeline.lostAt(timeline.steps),
      timeline.flight.at(timeline.steps).length,
      timeline.marks[mutex ? "entry" : "election"].length,
    ];
    cells = names.map(() => el("td", { class: "count" }));
    fill(
      body,
      ...names.map((name, i) => {
        const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
        if (i < timeline.kinds.length) swatch.style.background = kindColour(i);
        return el(
          "tr",
          {
            "data-testid": `count-${i < timeline.kinds.length ? name : ["total", "lost", "flight", "outcome"][i - timeline.kinds.length]}`,
          },
          el("td", {}, swatch, name),
          cells[i],
          el("td", { class: "count muted" }, number(finals[i])),
        );
      }),
    );
    const algorithm = lab.algorithm(lab.side.scenario.algorithm);
    fill(costs, el("h2", { class: "label" }, words.cost), ...(algorithm?.costs ?? []).map((cost) => el("p", {}, say(cost))));
    fill(
      panel,
      el(
        "table",
        { class: "counters" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, words.kind),
            el("th", { scope: "col", class: "count" }, words.sent),
            el("th", { scope: "col", class: "count" }, words.final),
          ),
        ),
        body,
      ),
      costs,
    );
    panel.setAttribute("aria-label", words.label);
    update();
  }
  function update() {
    const { timeline, side } = lab;
    if (!timeline || panel.hidden) return;
    const mutex = timeline.run.result.problem === "mutex";
    const counts = timeline.countsAt(side.position);
    const total = counts.reduce((sum, count) => sum + count, 0);
    const values = [
      ...counts,
      total,
      timeline.lostAt(side.position),
      timeline.flight.at(side.position).length,
      countBelow(timeline.marks[mutex ? "entry" : "election"], side.position),
    ];
    values.forEach((value, i) => cells[i] && setText(cells[i], number(value)));
  }
  lab.on(["run", "grow", "language", "sides", "theme"], draw);
  lab.on("step", update);
  new ResizeObserver(update).observe(panel);
}
