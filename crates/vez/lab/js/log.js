// @ts-check
// The log: every step in words. Only the rows to be seen are there.

import { byId, el, fill, setText } from "./dom.js";
import { moment, t } from "./i18n.js";
import { countBelow } from "./sorted.js";
import { sentence, tellStep } from "./words.js";

/** As in the style sheet. */
const ROW = 58;
const SPARE = 6;

/** @param {import("./state.js").Lab} lab */
export function makeLog(lab) {
  const panel = byId("panel-log");
  const filter = el("select", { id: "log-filter", "data-testid": "log-filter", onchange: rebuild });
  const filterLabel = el("label", { for: "log-filter" });
  const canvas = el("div", { role: "presentation" });
  const list = el("div", { class: "log", role: "listbox", tabIndex: 0, "data-testid": "log" }, canvas);
  fill(panel, el("div", { class: "log-bar" }, filterLabel, filter), list);
  /** Which steps are shown; `null` for all. @type {number[]|null} */
  let chosen = null;
  /** @type {import("./timeline.js").Timeline|null} */
  let shown = null;
  let asked = 0;

  const count = () => chosen?.length ?? lab.timeline?.steps ?? 0;
  const stepAt = (/** @type {number} */ row) => (chosen ? chosen[row] : row);

  function rebuild() {
    const timeline = lab.timeline;
    const who = filter.value === "" ? -1 : Number(filter.value);
    chosen = null;
    if (timeline && who >= 0) {
      chosen = [];
      for (let step = 0; step < timeline.steps; step++) {
        if (timeline.stepNode[step] === who || timeline.first(step).from === timeline.uids[who]) chosen.push(step);
      }
    }
    canvas.style.height = `${count() * ROW}px`;
    follow();
    render(true);
  }

  function words() {
    const timeline = lab.timeline;
    setText(filterLabel, t().log.show);
    list.setAttribute("aria-label", t().log.label);
    const kept = filter.value;
    fill(
      filter,
      el("option", { value: "" }, t().log.all),
      ...(timeline?.names ?? []).map((name, i) => el("option", { value: String(i) }, t().log.only(name))),
    );
    filter.value = timeline && Number(kept) < timeline.n ? kept : "";
    shown = timeline;
    rebuild();
  }

  /** Keeps the current row in view. */
  function follow() {
    if (!lab.timeline || list.clientHeight === 0) return;
    const current = lab.side.position - 1;
    const row = chosen ? Math.max(0, countBelow(chosen, current + 1) - 1) : current;
    const top = row * ROW;
    const near = top >= list.scrollTop + ROW && top <= list.scrollTop + list.clientHeight - 2 * ROW;
    if (!near) list.scrollTop = Math.max(0, top - list.clientHeight / 2);
  }

  /** @param {boolean} [afresh] */
  function render(afresh = false) {
    const timeline = lab.timeline;
    if (!timeline || list.clientHeight === 0) return;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(count(), Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    /** @type {Map<number, HTMLElement>} */
    const kept = new Map();
    for (const row of /** @type {HTMLElement[]} */ ([...canvas.children])) {
      const index = Number(row.dataset.row);
      if (afresh || index < first || index >= last) row.remove();
      else kept.set(index, row);
    }
    for (let index = first; index < last; index++) {
      const row = kept.get(index) ?? canvas.appendChild(makeRow(timeline, index));
      mark(row, stepAt(index));
    }
  }

  /** @param {HTMLElement} row @param {number} step */
  function mark(row, step) {
    const current = step === lab.side.position - 1;
    row.classList.toggle("current", current);
    row.classList.toggle("future", step >= lab.side.position);
    row.setAttribute("aria-selected", String(current));
    if (current) list.setAttribute("aria-activedescendant", row.id);
  }

  /** @param {import("./timeline.js").Timeline} timeline @param {number} index */
  function makeRow(timeline, index) {
    const step = stepAt(index);
    const told = tellStep(timeline, step);
    const row = el(
      "div",
      {
        class: told.broken.length ? "log-row violation" : "log-row",
        role: "option",
        id: `log-row-${step}`,
        "data-row": index,
        "data-step": step,
        "aria-setsize": count(),
        "aria-posinset": index + 1,
        "data-testid": "log-row",
        title: [sentence(told), told.detail, ...told.broken].filter(Boolean).join("\n"),
        onclick: () => {
          lab.pause();
          lab.goTo(step + 1);
        },
      },
      el("time", {}, moment(timeline.stepTime[step])),
      el(
        "span",
        { class: "what" },
        told.broken.length ? el("span", { class: "why" }, `✗ ${told.broken.join("; ")} — `) : null,
        sentence(told),
      ),
      el("span", { class: "detail" }, told.detail),
    );
    row.style.top = `${index * ROW}px`;
    return row;
  }

  list.addEventListener("scroll", () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => render());
  });
  list.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    lab.step(/** @type {1|-1} */ (way));
  });
  new ResizeObserver(() => {
    follow();
    render();
  }).observe(list);
  lab.on("grow", rebuild);
  lab.on("run", () => (shown === lab.timeline ? render() : words()));
  lab.on("language", words);
  lab.on("step", () => {
    follow();
    render();
  });
}
