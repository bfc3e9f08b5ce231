// @ts-check
// Play, pause, step, jump; and the scrubber with its marks.

import { byId, el, fill, setText, watchSize } from "./dom.js";
import { icon } from "./icons.js";
import { moment, number, t } from "./i18n.js";
import { colours } from "./palette.js";

/** Speeds are powers of two from a quarter to 64 times. */
const SPEED_MIN = -2;
const SPEED_MAX = 6;
/** The scrubber goes from 0 to this. */
const SCRUB_MAX = 10_000;

/** @typedef {"receive"|"entry"|"election"|"violation"} Jump */

/** @param {import("./state.js").Lab} lab @param {{step: (way: 1|-1) => void}} stepper */
export function makeTransport(lab, stepper) {
  const root = byId("transport");
  const canvas = el("canvas", { "aria-hidden": "true" });
  const scrub = el("input", {
    type: "range",
    id: "scrubber",
    min: "0",
    max: String(SCRUB_MAX),
    step: "1",
    value: "0",
    "data-testid": "scrubber",
    oninput: () => {
      lab.pause();
      lab.seek((Number(scrub.value) / SCRUB_MAX) * lab.duration);
    },
  });
  /** @param {string} id @param {import("./icons.js").Icon} sign @param {() => void} run */
  const button = (id, sign, run) =>
    el("button", { id, class: "icon-button", type: "button", "data-testid": id, onclick: run }, icon(sign));
  const play = button("play", "play", () => (lab.playing ? lab.pause() : lab.play()));
  const start = button("to-start", "start", () => {
    lab.pause();
    lab.goTo(0);
  });
  const back = button("step-back", "back", () => stepper.step(-1));
  const forward = button("step-forward", "forward", () => stepper.step(1));
  const end = button("to-end", "end", () => {
    lab.pause();
    lab.goTo(Infinity);
    lab.seek(lab.duration);
  });
  const position = el("span", { id: "position", "data-testid": "position" });
  const speed = el("input", {
    type: "range",
    id: "speed",
    min: String(SPEED_MIN),
    max: String(SPEED_MAX),
    step: "1",
    value: "0",
    "data-testid": "speed",
    oninput: () => setSpeed(lab, Number(speed.value)),
  });
  const speedOut = el("output", { for: "speed" });
  const quiet = el("input", {
    type: "checkbox",
    id: "skip-quiet",
    checked: true,
    "data-testid": "skip-quiet",
    onchange: () => (lab.skipQuiet = quiet.checked),
  });
  const quietLabel = el("span", { class: "quiet-label" });
  const jumps = el("span", { class: "transport-row" });
  fill(
    root,
    el(
      "div",
      { class: "transport-row scrub-row" },
      el("div", { class: "scrub" }, canvas, scrub),
      el("label", { class: "speed" }, speed, speedOut),
      el("label", { class: "speed" }, quiet, quietLabel),
    ),
    el(
      "div",
      { class: "transport-row" },
      start,
      back,
      play,
      forward,
      end,
      position,
      el("span", { class: "spacer" }),
      jumps,
    ),
  );

  function words() {
    const text = t().transport;
    for (const [element, label] of /** @type {[HTMLElement, string][]} */ ([
      [start, text.start],
      [back, text.stepBack],
      [forward, text.stepForward],
      [end, text.end],
      [scrub, text.scrubber],
      [speed, text.speed],
      [quiet, text.quiet],
    ])) {
      element.setAttribute("aria-label", label);
      element.title = label;
    }
    setText(quietLabel, text.quietShort);
    const mutex = lab.timeline?.run.result.problem !== "election";
    /** @type {Jump[]} */
    const kinds = ["receive", mutex ? "entry" : "election", "violation"];
    fill(jumps, ...kinds.map((kind) => jumper(lab, kind)));
    playing();
  }
  function playing() {
    const label = lab.playing ? t().transport.pause : t().transport.play;
    play.setAttribute("aria-label", label);
    play.title = label;
    fill(play, icon(lab.playing ? "pause" : "play"));
    setText(speedOut, `${number(lab.speed)}×`);
    speed.value = String(Math.log2(lab.speed));
  }
  function moved() {
    const share = lab.duration ? lab.time / lab.duration : 0;
    if (document.activeElement !== scrub || lab.playing) scrub.value = String(Math.round(share * SCRUB_MAX));
    drawScrubber(lab, canvas, size);
  }
  function stepped() {
    const { timeline, side } = lab;
    if (!timeline) return;
    setText(position, t().transport.position(side.position - timeline.base, timeline.steps - timeline.base));
    scrub.setAttribute("aria-valuetext", `${moment(lab.time)}, ${position.textContent}`);
    back.disabled = lab.sides.every((other) => other.position <= (other.timeline?.base ?? 0));
    forward.disabled = lab.sides.every((other) => other.position >= (other.timeline?.steps ?? 0));
  }
  let frame = 0;
  const redraw = () => {
    if (lab.playing) return moved();
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(moved);
  };
  lab.on(["language", "run"], words);
  lab.on("play", playing);
  lab.on(["frame", "run", "grow", "theme"], redraw);
  lab.on(["step", "run", "language"], stepped);
  const size = watchSize(canvas, redraw);
}

/** @param {import("./state.js").Lab} lab @param {number} power */
export function setSpeed(lab, power) {
  lab.speed = 2 ** Math.max(SPEED_MIN, Math.min(SPEED_MAX, power));
  lab.emit("play");
}

/** @param {import("./state.js").Lab} lab @param {Jump} kind */
function jumper(lab, kind) {
  const text = t().transport;
  /** @param {1|-1} way @param {string} sign @param {string} label */
  const button = (way, sign, label) =>
    el(
      "button",
      {
        type: "button",
        "data-testid": `${way > 0 ? "next" : "previous"}-${kind}`,
        "aria-label": `${label} ${text[kind]}`,
        title: `${label} ${text[kind]}`,
        onclick: () => lab.jump(kind, way),
      },
      sign,
    );
  return el(
    "span",
    { class: "jump" },
    button(-1, "‹", text.previous),
    el(
      "span",
      { "aria-hidden": "true" },
      el("i", { class: `dot dot-${kind}` }),
      el("span", { class: "word" }, text[kind]),
    ),
    button(1, "›", text.next),
  );
}

/**
 * @param {import("./state.js").Lab} lab
 * @param {HTMLCanvasElement} canvas
 * @param {{width: number, height: number}} size
 */
function drawScrubber(lab, canvas, { width, height }) {
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const ratio = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  const palette = colours();
  const middle = height / 2;
  const inset = 8;
  const at = (/** @type {number} */ time) => inset + (lab.duration ? time / lab.duration : 0) * (width - 2 * inset);
  ctx.lineCap = "round";
  ctx.lineWidth = 5;
  ctx.strokeStyle = palette.sunk;
  line(ctx, inset, middle, width - inset, middle);
  ctx.strokeStyle = palette.accent;
  ctx.globalAlpha = 0.55;
  line(ctx, inset, middle, at(lab.time), middle);
  ctx.globalAlpha = 1;
  lab.sides.forEach(({ timeline }, side) => {
    if (!timeline) return;
    const up = lab.sides.length === 1 ? null : side === 0;
    marks(
      ctx,
      timeline.marks.edit.map((step) => at(timeline.stepTime[step])),
      middle,
      palette.ink,
      "square",
      up,
    );
    marks(
      ctx,
      timeline.marks.entry.map((step) => at(timeline.stepTime[step])),
      middle,
      palette.inside,
      "dot",
      up,
    );
    marks(
      ctx,
      timeline.marks.election.map((step) => at(timeline.stepTime[step])),
      middle,
      palette.leader,
      "dot",
      up,
    );
    marks(
      ctx,
      timeline.marks.violation.map((step) => at(timeline.stepTime[step])),
      middle,
      palette.broken,
      "flag",
      up,
    );
  });
  ctx.fillStyle = palette.card;
  ctx.strokeStyle = palette.accent;
  ctx.lineWidth = 3;
  ctx.beginPath();
  ctx.arc(at(lab.time), middle, 7, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
}

/** @param {CanvasRenderingContext2D} ctx @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function line(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

/**
 * One mark a pixel is enough.
 * @param {CanvasRenderingContext2D} ctx
 * @param {number[]} places
 * @param {number} middle
 * @param {string} colour
 * @param {"dot"|"square"|"flag"} form
 * @param {boolean|null} up which of two runs: above or below the line
 */
function marks(ctx, places, middle, colour, form, up) {
  ctx.fillStyle = colour;
  const shift = up === null ? 0 : up ? -4 : 4;
  let last = -9;
  for (const x of places) {
    if (x - last < 1.5) continue;
    last = x;
    if (form === "dot") {
      ctx.beginPath();
      ctx.arc(x, middle + shift, 3.4, 0, 2 * Math.PI);
      ctx.fill();
    } else if (form === "square") {
      ctx.fillRect(x - 1, middle + shift + 5, 2, 7);
    } else {
      ctx.beginPath();
      ctx.moveTo(x - 5, middle + shift - 13);
      ctx.lineTo(x + 5, middle + shift - 13);
      ctx.lineTo(x, middle + shift - 4);
      ctx.fill();
    }
  }
}
