// @ts-check
// Predict mode: before a step the page asks what will happen, and keeps score.

import { byId, el, fill } from "./dom.js";
import { t } from "./i18n.js";
import { countUpTo } from "./sorted.js";
import { tellStep } from "./words.js";

const KEY = "vez-lab-score";
/** At most so many answers to choose from. */
const OPTIONS_MAX = 5;

/** @typedef {{text: string, options: string[], answer: string}} Question */

/** @param {import("./state.js").Lab} lab */
export function makePredict(lab) {
  const root = byId("predict");
  const toggle = byId("toggle-predict");
  let on = false;
  let score = readScore();
  /** @type {Question|null} */
  let question = null;
  let asked = 0;

  toggle.addEventListener("click", () => {
    on = !on;
    lab.pause();
    toggle.setAttribute("aria-pressed", String(on));
    root.hidden = !on;
    if (on) ask();
    else question = null;
  });

  function ask() {
    const { timeline, side } = lab;
    if (!timeline) return;
    question = side.position < timeline.steps ? makeQuestion(timeline, side.position, asked) : null;
    draw(null);
  }

  /** @param {string|null} given */
  function draw(given) {
    const words = t().predict;
    if (!question) {
      fill(root, el("p", { class: "question" }, words.ended), scoreLine());
      return;
    }
    const { text, options, answer } = question;
    const verdict = given === null ? null : given === answer ? words.right : words.wrong(answer);
    fill(
      root,
      el("p", { class: "question", id: "predict-question", "data-testid": "predict-question" }, text),
      el(
        "div",
        { class: "options", role: "group", "aria-labelledby": "predict-question" },
        ...options.map((option) =>
          el(
            "button",
            {
              type: "button",
              disabled: given !== null,
              "data-testid": "predict-option",
              "data-answer": option === answer ? "right" : "wrong",
              class: given === null ? "" : option === answer ? "right" : option === given ? "wrong" : "",
              onclick: () => choose(option),
            },
            option,
          ),
        ),
      ),
      given !== null ? el("p", { role: "status", "data-testid": "predict-verdict" }, verdict) : null,
      given !== null
        ? el("button", { type: "button", class: "primary", "data-testid": "predict-next", onclick: ask }, words.next)
        : null,
      scoreLine(),
    );
    if (given !== null) /** @type {HTMLElement|null} */ (root.querySelector("[data-testid=predict-next]"))?.focus();
  }

  function scoreLine() {
    const words = t().predict;
    return el(
      "span",
      { class: "score", "data-testid": "predict-score" },
      words.score(score.right, score.asked),
      score.streak > 1 ? ` · ${words.streak(score.streak)}` : "",
      " ",
      el(
        "button",
        {
          type: "button",
          class: "small",
          "data-testid": "predict-reset",
          onclick: () => {
            score = { right: 0, asked: 0, streak: 0 };
            keepScore(score);
            draw(null);
          },
        },
        words.reset,
      ),
    );
  }

  /** @param {string} option */
  function choose(option) {
    if (!question) return;
    const right = option === question.answer;
    score = { right: score.right + (right ? 1 : 0), asked: score.asked + 1, streak: right ? score.streak + 1 : 0 };
    keepScore(score);
    asked++;
    lab.step(1);
    draw(option);
  }

  lab.on("run", () => on && ask());
  lab.on("language", () => on && ask());
  lab.on("play", () => {
    // Playing would give the answers away.
    if (on && lab.playing) queueMicrotask(() => lab.pause());
  });
  return {
    /** A step by key or button: in predict mode it must be earned. @param {1|-1} way */
    step(way) {
      lab.step(way);
      if (on) ask();
    },
  };
}

/**
 * A question about the next step; which kind it is goes round.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} position
 * @param {number} turn
 * @returns {Question}
 */
export function makeQuestion(timeline, position, turn) {
  const makers = [whoNext, howMany, whoWins, which];
  for (let i = 0; i < makers.length; i++) {
    const question = makers[(turn + i) % makers.length](timeline, position);
    if (question) return question;
  }
  const answer = tellStep(timeline, position).head;
  return { text: t().predict.whoNext, options: [answer, t().predict.nobody], answer };
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} position @returns {Question|null} */
function whoNext(timeline, position) {
  const node = timeline.stepNode[position];
  if (node < 0 || timeline.n < 2) return null;
  const { to } = timeline.messages;
  // Those for whom a message is under way are the likely ones.
  const likely = timeline.flight.at(position).map((message) => timeline.names[to[message]]);
  const answer = timeline.names[node];
  return { text: t().predict.whoNext, options: mix([answer, ...likely, ...timeline.names], position), answer };
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} position @returns {Question|null} */
function howMany(timeline, position) {
  const cause = timeline.cause(position);
  if (cause !== "receive" && cause !== "timer" && cause !== "request") return null;
  const count = timeline.eventsOf(position).filter((event) => event.event === "send").length;
  const options = mix([count, 0, 1, 2, timeline.n - 1].map(String), position);
  return {
    text: t().predict.howMany(tellStep(timeline, position).head),
    options: options.sort((a, b) => Number(a) - Number(b)),
    answer: String(count),
  };
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} position @returns {Question|null} */
function whoWins(timeline, position) {
  const mutex = timeline.run.result.problem === "mutex";
  const marks = mutex ? timeline.marks.entry : timeline.marks.election;
  const next = marks[countUpTo(marks, position - 1)];
  if (timeline.n < 2) return null;
  const answer = next === undefined ? t().predict.nobody : winnerOf(timeline, next);
  const options = mix([answer, t().predict.nobody, ...timeline.names], position);
  return { text: mutex ? t().predict.whoEnters : t().predict.whoWins, options, answer };
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} step */
function winnerOf(timeline, step) {
  const event = timeline
    .eventsOf(step)
    .find((other) => other.event === "notice" && (other.kind === "Entered" || other.notice?.Leader?.id === other.node));
  return timeline.name(event?.node ?? -1);
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} position @returns {Question|null} */
function which(timeline, position) {
  const event = timeline.first(position);
  if (event.event !== "receive" || timeline.kinds.length < 2) return null;
  const answer = event.kind ?? "";
  return {
    text: t().predict.which(timeline.name(event.node ?? -1)),
    options: mix([answer, ...timeline.kinds], position),
    answer,
  };
}

/**
 * The first (the answer) among a few others, in an order that tells nothing.
 * @param {string[]} options
 * @param {number} salt
 */
function mix(options, salt) {
  const few = [...new Set(options)].slice(0, OPTIONS_MAX);
  return few.sort((a, b) => hash(a, salt) - hash(b, salt));
}

/** @param {string} text @param {number} salt */
function hash(text, salt) {
  let value = salt * 2654435761;
  for (const sign of text) value = Math.imul(value ^ (sign.codePointAt(0) ?? 0), 16777619);
  return value >>> 0;
}

function readScore() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "");
    if (Number.isInteger(kept.right) && Number.isInteger(kept.asked))
      return { right: kept.right, asked: kept.asked, streak: kept.streak | 0 };
  } catch {
    // Nothing kept, or nothing sensible.
  }
  return { right: 0, asked: 0, streak: 0 };
}

/** @param {{right: number, asked: number, streak: number}} score */
function keepScore(score) {
  try {
    localStorage.setItem(KEY, JSON.stringify(score));
  } catch {
    // It counts for this visit.
  }
}
