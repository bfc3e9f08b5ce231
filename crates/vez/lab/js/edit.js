// @ts-check
// The panel that breaks things: by form what the stage does by pointer, and a list of all that
// happens, each of which can be taken back.

import { delays, messageActions } from "./actions.js";
import { byId, el, fill } from "./dom.js";
import { millis, moment, span, t } from "./i18n.js";
import { addAt, editTime, happenings, setLink } from "./scenario.js";
import { conditionWords } from "./stage.js";

/** At most so many messages under way are listed. */
const FLIGHT_MAX = 24;
/** At most so many happenings are listed. */
const HAPPENINGS_MAX = 200;

/** What each action asks for. */
const FIELDS = /** @type {const} */ ({
  crash: ["who"],
  crashUnsent: ["who"],
  restart: ["who"],
  restartAmnesia: ["who"],
  pause: ["who", "span"],
  acquire: ["who", "span"],
  withdraw: ["who"],
  start: ["who"],
  suspect: ["who", "whom"],
  cut: ["who", "whom"],
  heal: ["who", "whom"],
  healAll: [],
  partition: ["groups"],
  delay: ["who", "whom", "span"],
  loss: ["who", "whom", "value"],
});
/** @typedef {keyof typeof FIELDS} Action */

/** @param {import("./state.js").Lab} lab */
export function makeEdit(lab) {
  const panel = byId("panel-edit");
  /** What was typed, kept while the page goes on. */
  const typed = {
    action: /** @type {Action} */ ("crash"),
    who: "",
    whom: "",
    span: "",
    value: "0.5",
    groups: "",
    at: "",
  };
  const state = el("div", { class: "process-state", "data-testid": "process-state" });
  const form = el("form", {
    class: "form",
    "data-testid": "edit-form",
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      submit();
    },
  });
  const flights = el("ul", { class: "entries" });
  const list = el("ul", { class: "entries" });
  const headings = [el("h2", { class: "label" }), el("h2", { class: "label" })];
  const plain = el("p", { class: "prose", "data-testid": "edit-live" });
  fill(panel, state, plain, form, headings[0], flights, headings[1], list);

  const actions = () => {
    const mutex = lab.timeline?.run.result.problem === "mutex";
    return /** @type {Action[]} */ (Object.keys(FIELDS)).filter((action) =>
      mutex ? !["start", "suspect"].includes(action) : !["acquire", "withdraw"].includes(action),
    );
  };
  /** @param {Action} action */
  const label = (action) => {
    const words = t().edit;
    /** @type {Partial<Record<Action, string>>} */
    const short = {
      pause: words.pauseWord,
      acquire: words.acquireWord,
      suspect: words.suspectWord,
      delay: words.delayWord,
      loss: words.lossWord,
    };
    return short[action] ?? String(words[action]);
  };

  function drawForm() {
    const timeline = lab.timeline;
    if (!timeline) return;
    const words = t().edit;
    if (!actions().includes(typed.action)) typed.action = "crash";
    const people = timeline.uids.map((uid, i) => el("option", { value: String(uid) }, timeline.names[i]));
    const choose = (/** @type {"who"|"whom"} */ key) => {
      const select = el(
        "select",
        { id: `edit-${key}`, "data-testid": `edit-${key}`, onchange: () => (typed[key] = select.value) },
        ...people.map((option) => option.cloneNode(true)),
      );
      if (!timeline.indexOf.has(Number(typed[key])) || typed[key] === "")
        typed[key] = String(timeline.uids[key === "who" ? Math.max(0, lab.side.selected) : timeline.n - 1]);
      select.value = typed[key];
      return select;
    };
    const text = (/** @type {"span"|"value"|"groups"|"at"} */ key, /** @type {string} */ hint) => {
      const input = el("input", {
        type: "text",
        id: `edit-${key}`,
        value: typed[key],
        placeholder: hint,
        "data-testid": `edit-${key}`,
        oninput: () => (typed[key] = input.value),
      });
      return input;
    };
    const action = el(
      "select",
      {
        id: "edit-action",
        "data-testid": "edit-action",
        onchange: () => {
          typed.action = /** @type {Action} */ (action.value);
          drawForm();
        },
      },
      ...actions().map((name) => el("option", { value: name }, label(name))),
    );
    action.value = typed.action;
    const field = (/** @type {string} */ name, /** @type {HTMLElement} */ input, /** @type {boolean} */ wide = false) =>
      el("label", { class: wide ? "field wide" : "field" }, name, input);
    const fields = FIELDS[typed.action].map((key) => {
      if (key === "who" || key === "whom")
        return field(key === "whom" && typed.action !== "suspect" ? "–" : words[key], choose(key));
      if (key === "groups") return field(words.groups, text("groups", words.groupsHint), true);
      return field(words[key], text(key, key === "value" ? "0.5" : span(delays(lab, 10))));
    });
    fill(
      form,
      field(words.label, action, true),
      ...fields,
      field(words.at, text("at", `${words.now} (${span(editTime(lab))})`)),
      el("button", { class: "primary", type: "submit", "data-testid": "edit-apply" }, t().app.apply),
    );
  }

  function submit() {
    const at = typed.at.trim() ? millis(typed.at) : editTime(lab);
    const who = Number(typed.who);
    const whom = Number(typed.whom);
    const length = typed.span.trim() || span(delays(lab, 10));
    const happen = (/** @type {string} */ word, /** @type {any} */ value) =>
      lab.edit((scenario) => addAt(scenario, at, word, value), at);
    switch (typed.action) {
      case "crash":
        return happen("crash", [who]);
      case "crashUnsent":
        return happen("crash", [{ node: who, unsent: true }]);
      case "restart":
        return happen("restart", [who]);
      case "restartAmnesia":
        return happen("restart", [{ node: who, amnesia: true }]);
      case "pause":
        return happen("pause", [{ node: who, for: length }]);
      case "acquire":
        return happen("acquire", [{ node: who, hold: length }]);
      case "withdraw":
        return happen("withdraw", [who]);
      case "start":
        return happen("start", [who]);
      case "suspect":
        return happen("suspect", [{ node: who, of: whom }]);
      case "cut":
        return happen("cut", [[who, whom]]);
      case "heal":
        return happen("heal", [[who, whom]]);
      case "healAll":
        return happen("heal", true);
      case "partition":
        return happen(
          "partition",
          typed.groups
            .split(/[|/]/)
            .map((group) => (group.match(/\d+/g) ?? []).map(Number))
            .filter((group) => group.length),
        );
      case "delay":
        return lab.edit((scenario) => setLink(scenario, who, whom, { delay: length }));
      case "loss":
        return lab.edit((scenario) => setLink(scenario, who, whom, { loss: Number(typed.value) }));
    }
  }

  function drawList() {
    const words = t().edit;
    fill(headings[1], words.happenings);
    const entries = happenings(lab.side.scenario).slice(0, HAPPENINGS_MAX);
    fill(
      list,
      ...entries.map((entry) =>
        el(
          "li",
          { "data-testid": "happening" },
          el(
            "button",
            {
              type: "button",
              onclick: () => {
                if (entry.time >= 0) {
                  lab.pause();
                  lab.seek(entry.time);
                }
              },
            },
            entry.time >= 0 ? el("time", {}, moment(entry.time)) : null,
            entry.text,
          ),
          el(
            "button",
            {
              type: "button",
              class: "icon-button",
              "aria-label": `${t().app.delete}: ${entry.text}`,
              "data-testid": "happening-remove",
              onclick: () => lab.edit((scenario) => entry.remove(scenario)),
            },
            "✕",
          ),
        ),
      ),
      entries.length === 0 ? el("li", { class: "muted" }, words.nothing) : null,
    );
  }

  function drawNow() {
    const { timeline, side } = lab;
    if (!timeline || panel.hidden || lab.playing) return;
    const words = t().edit;
    const at = /** @type {HTMLInputElement|null} */ (document.getElementById("edit-at"));
    if (at) at.placeholder = `${words.now} (${span(editTime(lab))})`;
    fill(headings[0], words.flight);
    const { from, to, event } = timeline.messages;
    const flying = timeline.flight.at(side.position).slice(0, FLIGHT_MAX);
    fill(
      flights,
      ...flying.map((message) => {
        const actions = messageActions(lab, message);
        const text = `${timeline.events[event[message]].text}, ${timeline.names[from[message]]} → ${timeline.names[to[message]]}`;
        const button = (/** @type {string} */ id, /** @type {string} */ label, /** @type {() => void} */ run) =>
          el(
            "button",
            {
              type: "button",
              class: "small",
              disabled: !actions.possible,
              "aria-label": `${label}: ${text}`,
              "data-testid": `flight-${id}`,
              onclick: run,
            },
            label,
          );
        return el(
          "li",
          { "data-testid": "flight" },
          el("span", { class: "mono" }, text),
          el("span", { class: "spacer" }),
          button("drop", t().stage.drop, actions.drop),
          button("twice", t().stage.twice, actions.duplicate),
          button("hold", t().stage.hold, actions.holdIt),
        );
      }),
      flying.length === 0 ? el("li", { class: "muted" }, words.noFlight) : null,
    );
    drawState(timeline);
  }

  /** @param {import("./timeline.js").Timeline} timeline */
  function drawState(timeline) {
    const { selected, position } = lab.side;
    state.hidden = selected < 0;
    if (selected < 0) return;
    const fields = timeline.processes.state(selected, position);
    fill(
      state,
      el("h2", {}, t().stage.state(timeline.names[selected])),
      el("p", {}, conditionWords(timeline, selected, position).join(" · ") || t().stage.idle),
      el(
        "dl",
        { class: "state-list" },
        ...fields.flatMap((field) => [
          el("dt", {}, field.name),
          el("dd", { class: field.step === position - 1 && position > timeline.base ? "fresh" : "" }, field.text),
        ]),
      ),
    );
  }

  function draw() {
    if (!lab.timeline) return;
    const isLive = lab.side.live !== null;
    for (const part of [form, flights, list, ...headings]) part.style.display = isLive ? "none" : "";
    plain.hidden = !isLive;
    fill(plain, t().live.hint);
    drawForm();
    drawList();
    drawNow();
  }
  lab.on(["run", "language", "sides"], draw);
  lab.on(["step", "play"], drawNow);
  lab.on("select", () => {
    const { timeline, side } = lab;
    if (timeline && side.selected >= 0) typed.who = String(timeline.uids[side.selected]);
    draw();
  });
  new ResizeObserver(drawNow).observe(panel);
}
