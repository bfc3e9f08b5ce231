// @ts-check
// The space–time diagram: a line for each process, an arrow for each message, in step with the
// stage. Only what is in the window is drawn.

import { byId, el, fill, watchSize } from "./dom.js";
import { icon } from "./icons.js";
import { moment, t } from "./i18n.js";
import { colours, kindColour } from "./palette.js";
import { countBelow, countUpTo } from "./sorted.js";
import { LOST } from "./timeline.js";

const LEFT = 46;
const TOP = 20;
const ROW_MIN = 15;
const ROW_MAX = 44;
/** More arrows than this in the window are thinned out. */
const ARROWS_MAX = 2500;
/** The window first shows so many message delays. */
const FIRST_DELAYS = 26;
/** Of processes that really run, so much time: a message takes next to none of it. */
const LIVE_MS = 4000;

/** @param {import("./state.js").Lab} lab */
export function makeSpacetime(lab) {
  const panel = byId("panel-diagram");
  const canvas = el("canvas", { role: "img", "data-testid": "diagram" });
  const button = (
    /** @type {string} */ id,
    /** @type {import("./icons.js").Icon} */ sign,
    /** @type {() => void} */ run,
  ) => el("button", { class: "icon-button", type: "button", "data-testid": id, onclick: run }, icon(sign));
  const zoomIn = button("diagram-in", "plus", () => zoom(0.6));
  const zoomOut = button("diagram-out", "minus", () => zoom(1 / 0.6));
  const whole = button("diagram-fit", "fit", () => {
    view.from = 0;
    view.width = Math.max(lab.duration, 0.001) * 1.03;
    free = true;
    invalidate();
  });
  const host = el("div", { class: "diagram" }, canvas, el("div", { class: "diagram-bar" }, zoomOut, zoomIn, whole));
  fill(panel, host);

  /** The window: from when, how long, and how far down. */
  const view = { from: 0, width: 20, top: 0 };
  /** Someone has moved it; then it follows only when the time leaves it. */
  let free = false;
  /** @type {import("./timeline.js").Timeline|null} */
  let shown = null;
  let asked = false;

  function words() {
    canvas.setAttribute("aria-label", t().diagram.label);
    for (const [element, label] of /** @type {[HTMLElement, string][]} */ ([
      [zoomIn, t().diagram.zoomIn],
      [zoomOut, t().diagram.zoomOut],
      [whole, t().diagram.fit],
    ])) {
      element.setAttribute("aria-label", label);
      element.title = label;
    }
  }
  function fresh() {
    const timeline = lab.timeline;
    if (timeline && shown !== timeline) {
      const isLive = lab.side.live !== null;
      const kept =
        shown !== null &&
        shown.n === timeline.n &&
        (isLive ? shown.run.scenario === timeline.run.scenario : view.width <= timeline.duration * 1.1);
      shown = timeline;
      if (!kept) {
        const some = Math.min(timeline.duration * 1.03, timeline.messages.delay * FIRST_DELAYS);
        view.width = isLive ? LIVE_MS : Math.max(0.001, some);
        view.from = 0;
        view.top = 0;
        free = false;
      }
    }
    invalidate();
  }
  /** @param {number} factor @param {number} [around] */
  function zoom(factor, around = lab.time) {
    const width = Math.max(0.01, Math.min(view.width * factor, lab.duration * 1.2 || 1));
    view.from = Math.max(0, around - ((around - view.from) / view.width) * width);
    view.width = width;
    free = true;
    invalidate();
  }
  function follow() {
    const inside = lab.time >= view.from && lab.time <= view.from + view.width;
    if (!inside) free = false;
    if (!free) {
      const ahead = view.from + view.width * 0.7;
      if (lab.time > ahead) view.from = lab.time - view.width * 0.7;
      if (lab.time < view.from + view.width * 0.1) view.from = lab.time - view.width * 0.1;
    }
    view.from = Math.max(-view.width * 0.02, Math.min(view.from, lab.duration - view.width * 0.3));
  }
  function draw() {
    const timeline = lab.timeline;
    const { width, height } = size;
    if (!timeline || width === 0) return;
    follow();
    const ctx = sized(canvas, width, height);
    const scene = new Scene(ctx, timeline, lab, view, width, height);
    view.top = Math.max(0, Math.min(view.top, scene.rows - (height - TOP)));
    scene.top = view.top;
    scene.draw();
  }
  function invalidate() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  }

  /** @param {PointerEvent|WheelEvent} event */
  const timeAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return view.from + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * view.width;
  };
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, timeAt(event));
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        view.from += ((event.deltaX || event.deltaY) / canvas.clientWidth) * view.width;
        free = true;
      } else view.top += event.deltaY;
      invalidate();
    },
    { passive: false },
  );
  /** @type {{x: number, from: number, moved: boolean}|null} */
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = event.clientX - drag.x;
    drag.moved ||= Math.abs(by) > 5;
    if (!drag.moved) return;
    view.from = drag.from - (by / (canvas.clientWidth - LEFT)) * view.width;
    free = true;
    invalidate();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      lab.pause();
      lab.seek(timeAt(event));
    }
    drag = null;
  });
  const size = watchSize(host, invalidate);
  lab.on(["run", "grow", "sides"], fresh);
  lab.on(["theme", "select"], invalidate);
  lab.on("language", () => {
    words();
    invalidate();
  });
  lab.on("frame", () => (lab.playing ? draw() : invalidate()));
  words();
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sized(canvas, width, height) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

/** One window of the diagram. */
class Scene {
  /**
   * @param {CanvasRenderingContext2D} ctx
   * @param {import("./timeline.js").Timeline} timeline
   * @param {import("./state.js").Lab} lab
   * @param {{from: number, width: number, top: number}} view
   * @param {number} width
   * @param {number} height
   */
  constructor(ctx, timeline, lab, view, width, height) {
    this.ctx = ctx;
    this.timeline = timeline;
    this.lab = lab;
    this.view = view;
    this.width = width;
    this.height = height;
    this.row = Math.max(ROW_MIN, Math.min(ROW_MAX, (height - TOP - 6) / timeline.n));
    this.rows = this.row * timeline.n + 6;
    this.top = 0;
    this.until = view.from + view.width;
  }

  /** @param {number} time */
  x(time) {
    return LEFT + ((time - this.view.from) / this.view.width) * (this.width - LEFT);
  }

  /** @param {number} index */
  y(index) {
    return TOP + this.row * (index + 0.5) - this.top;
  }

  draw() {
    const { ctx } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT, TOP - 6, this.width - LEFT, this.height);
    ctx.clip();
    this.#lives();
    this.#messages();
    this.#events();
    ctx.restore();
    this.#axis();
    this.#names();
    this.#playhead();
  }

  /** The rows in sight. */
  #visible() {
    const first = Math.max(0, Math.floor(this.top / this.row) - 1);
    return [first, Math.min(this.timeline.n, Math.ceil((this.top + this.height) / this.row) + 1)];
  }

  /** Lines of life: thin, thick while inside, coloured while waiting or leading, absent while down. */
  #lives() {
    const { ctx, timeline } = this;
    const palette = colours();
    const [first, last] = this.#visible();
    for (let i = first; i < last; i++) {
      const { steps, conditions } = timeline.processes.histories[i];
      const y = this.y(i);
      const start = countBelow(steps, countUpTo(timeline.stepTime, this.view.from)) - 1;
      for (let j = Math.max(-1, start); j < steps.length; j++) {
        const from = j < 0 ? 0 : timeline.stepTime[steps[j]];
        if (from > this.until) break;
        const to = j + 1 < steps.length ? timeline.stepTime[steps[j + 1]] : timeline.duration;
        if (to < this.view.from || to <= from) continue;
        const now = j < 0 ? null : conditions[j];
        this.#life(now, i, Math.max(LEFT, this.x(from)), Math.min(this.width, this.x(to)), y);
      }
    }
    ctx.setLineDash([]);
    ctx.strokeStyle = palette.line;
  }

  /**
   * @param {import("./processes.js").Condition|null} now
   * @param {number} i
   * @param {number} x1
   * @param {number} x2
   * @param {number} y
   */
  #life(now, i, x1, x2, y) {
    const { ctx } = this;
    const palette = colours();
    const thick = Math.min(11, this.row * 0.55);
    ctx.setLineDash([]);
    if (now?.up && (now.user === "inside" || now.leader === i)) {
      ctx.fillStyle = now.user === "inside" ? palette.inside : palette.leader;
      ctx.globalAlpha = now.user === "inside" ? 0.75 : 0.4;
      ctx.fillRect(x1, y - thick / 2, x2 - x1, thick);
      ctx.globalAlpha = 1;
    }
    if (now && !now.up) ctx.setLineDash([2, 5]);
    ctx.strokeStyle =
      now && !now.up ? palette.down : now?.user === "waiting" ? palette.waiting : palette["strong-line"];
    ctx.lineWidth = now?.user === "waiting" ? 2.4 : 1;
    if (now?.pausedUntil != null) ctx.setLineDash([6, 3]);
    ctx.beginPath();
    ctx.moveTo(x1, y);
    ctx.lineTo(x2, y);
    ctx.stroke();
  }

  #messages() {
    const { ctx, timeline } = this;
    const { from, to, kind, sent, arrives, latest, fate } = timeline.messages;
    const first = countBelow(latest, this.view.from);
    const last = countUpTo(sent, this.until);
    const stride = Math.max(1, Math.ceil((last - first) / ARROWS_MAX));
    const dense = last - first > 250;
    ctx.lineWidth = dense ? 0.8 : 1.3;
    for (let k = 0; k < timeline.kinds.length; k++) {
      ctx.strokeStyle = ctx.fillStyle = kindColour(k);
      ctx.globalAlpha = dense ? 0.45 : 0.85;
      ctx.beginPath();
      for (let i = first; i < last; i += stride) {
        if (kind[i] !== k || arrives[i] < this.view.from) continue;
        const [x1, y1, x2, y2] = [this.x(sent[i]), this.y(from[i]), this.x(arrives[i]), this.y(to[i])];
        const share = fate[i] === LOST && arrives[i] - sent[i] <= timeline.messages.delay / 2 ? 0.5 : 1;
        ctx.moveTo(x1, y1);
        ctx.lineTo(x1 + (x2 - x1) * 1, y1 + (y2 - y1) * share);
      }
      ctx.stroke();
      if (!dense) for (let i = first; i < last; i++) if (kind[i] === k) this.#end(i);
    }
    ctx.globalAlpha = 1;
  }

  /** The tip of an arrow, or a cross. @param {number} i */
  #end(i) {
    const { ctx, timeline } = this;
    const { from, to, sent, arrives, fate, delay } = timeline.messages;
    const [x1, y1, x2] = [this.x(sent[i]), this.y(from[i]), this.x(arrives[i])];
    const half = fate[i] === LOST && arrives[i] - sent[i] <= delay / 2;
    const y2 = y1 + (this.y(to[i]) - y1) * (half ? 0.5 : 1);
    if (fate[i] === LOST) {
      ctx.font = `700 12px ${colours().sans}`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText("✕", x2, y2);
      return;
    }
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    ctx.beginPath();
    ctx.moveTo(x2, y2);
    ctx.lineTo(x2 - ux * 8 - uy * 3.4, y2 - uy * 8 + ux * 3.4);
    ctx.lineTo(x2 - ux * 8 + uy * 3.4, y2 - uy * 8 - ux * 3.4);
    ctx.fill();
  }

  /** What befalls processes, and broken promises. */
  #events() {
    const { ctx, timeline } = this;
    const palette = colours();
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (const step of window_(timeline.marks.edit, timeline.stepTime, this.view.from, this.until)) {
      const node = timeline.stepNode[step];
      const x = this.x(timeline.stepTime[step]);
      ctx.strokeStyle = ctx.fillStyle = palette.ink;
      if (node < 0) {
        ctx.setLineDash([3, 3]);
        ctx.beginPath();
        ctx.moveTo(x, TOP);
        ctx.lineTo(x, this.height);
        ctx.stroke();
        ctx.setLineDash([]);
      } else if (timeline.cause(step) === "crash") {
        ctx.font = `700 15px ${palette.sans}`;
        ctx.fillStyle = palette.broken;
        ctx.fillText("✗", x, this.y(node));
      } else {
        ctx.beginPath();
        ctx.arc(x, this.y(node), 3.5, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    for (const step of window_(timeline.marks.violation, timeline.stepTime, this.view.from, this.until)) {
      const x = this.x(timeline.stepTime[step]);
      ctx.fillStyle = ctx.strokeStyle = palette.broken;
      ctx.globalAlpha = 0.8;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(x, TOP - 6);
      ctx.lineTo(x, this.height);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - 5, TOP - 6);
      ctx.lineTo(x + 5, TOP - 6);
      ctx.lineTo(x, TOP + 3);
      ctx.fill();
    }
  }

  #axis() {
    const { ctx } = this;
    const palette = colours();
    const rough = (this.view.width / (this.width - LEFT)) * 90;
    const power = 10 ** Math.floor(Math.log10(rough));
    const unit = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power;
    ctx.fillStyle = palette.muted;
    ctx.font = `11px ${palette.sans}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    for (let time = Math.max(0, Math.ceil(this.view.from / unit) * unit); time <= this.until; time += unit) {
      const x = this.x(time);
      if (x > this.width - 110 || x < LEFT) continue;
      ctx.fillText(moment(Math.round(time * 1000) / 1000), x, 3);
    }
  }

  #names() {
    const { ctx, timeline } = this;
    const palette = colours();
    const [first, last] = this.#visible();
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (let i = first; i < last; i++) {
      const y = this.y(i);
      if (y < TOP) continue;
      const now = timeline.processes.condition(i, this.lab.side.position);
      ctx.font = `${i === this.lab.side.selected ? 700 : 500} ${Math.min(12, this.row * 0.75)}px ${palette.sans}`;
      ctx.fillStyle = !now.up
        ? palette.muted
        : now.user === "inside"
          ? palette.inside
          : now.leader === i
            ? palette.leader
            : palette.ink;
      ctx.fillText(timeline.names[i], LEFT - 8, y, LEFT - 10);
    }
  }

  #playhead() {
    const { ctx } = this;
    const x = this.x(this.lab.time);
    if (x < LEFT - 1 || x > this.width) return;
    ctx.strokeStyle = ctx.fillStyle = colours().accent;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    ctx.moveTo(x, TOP - 4);
    ctx.lineTo(x, this.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, TOP - 4, 4, 0, 2 * Math.PI);
    ctx.fill();
  }
}

/**
 * The marked steps between two times.
 * @param {number[]} marks
 * @param {Float64Array} times
 * @param {number} from
 * @param {number} until
 */
function window_(marks, times, from, until) {
  const first = countBelow(times, from);
  const last = countUpTo(times, until);
  return marks.slice(countBelow(marks, first), countBelow(marks, last));
}
