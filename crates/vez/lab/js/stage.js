// @ts-check
// The stage: processes on their topology, messages moving along the links. What moves is drawn on
// a canvas; over it lies a button for each process, for the keyboard and screen readers.

import { el, fill, reducedMotion, setText } from "./dom.js";
import { say, t } from "./i18n.js";
import { place } from "./placement.js";
import { Painter, radiusFor } from "./painter.js";
import { handleStage } from "./pointing.js";
import { wiresAt } from "./wires.js";

/** A step's messages glide to their new places in this time. */
const GLIDE_MS = 280;
/** A jump over more steps than this is not shown as movement. */
const GLIDE_STEPS_MAX = 300;
/** Room for the hint below, in pixels. */
const HINT = 14;
const HEAD = 30;
/** Labels of buttons follow this often while playing. */
const LABEL_INTERVAL_MS = 500;

export class Stage {
  /**
   * @param {import("./state.js").Lab} lab
   * @param {import("./state.js").Side} side
   */
  constructor(lab, side) {
    this.lab = lab;
    this.side = side;
    this.canvas = el("canvas", { "aria-hidden": "true", "data-testid": "stage-canvas" });
    this.heading = el("button", {
      type: "button",
      hidden: true,
      "data-testid": "side-heading",
      onclick: () => lab.activate(lab.sides.indexOf(side)),
    });
    this.buttons = el("div", { class: "nodes", role: "group" });
    this.hint = el("p", { class: "stage-hint", "aria-hidden": "true" });
    const head = el("div", { class: "stage-head" }, this.heading);
    this.root = el("section", { class: "stage", "data-testid": "stage" }, this.canvas, head, this.buttons, this.hint);
    this.painter = new Painter(this.canvas);
    /** @type {import("./timeline.js").Timeline|null} */
    this.timeline = null;
    /** @type {import("./placement.js").Placement|null} */
    this.placement = null;
    /** Places in pixels. @type {{x: number, y: number}[]} */
    this.points = [];
    this.radius = 20;
    this.visualTime = 0;
    /** @type {{from: number, to: number, start: number}|null} */
    this.glide = null;
    this.asked = false;
    this.labelled = 0;
    /** @type {import("./painter.js").Overlay} */
    this.overlay = { stroke: null, dragged: null };
    /** @type {ReturnType<typeof wiresAt>|null} */
    this.wires = null;
    this.wiresKey = "";
    new ResizeObserver(() => this.#resize()).observe(this.root);
    handleStage(this);
  }

  /** Takes up the run of its side. */
  update() {
    const { timeline } = this.side;
    if (timeline !== this.timeline) {
      this.timeline = timeline;
      this.wiresKey = "";
      this.glide = null;
      this.visualTime = this.lab.time;
      this.placement = timeline ? place(timeline.run.topology, timeline.indexOf) : null;
      this.#makeButtons();
      this.#resize();
    }
    const two = this.lab.sides.length > 1;
    this.root.classList.toggle("active-side", two && this.lab.side === this.side);
    this.root.classList.toggle("busy", this.side.asking !== null);
    if (this.heading.hidden === two) {
      this.heading.hidden = !two;
      this.#resize();
    }
    const algorithm = this.lab.algorithm(this.side.scenario.algorithm);
    setText(this.heading, `${say(algorithm?.title)} · ${t().setup.seed} ${this.side.scenario.seed ?? 0}`);
    this.heading.setAttribute("aria-pressed", String(this.lab.side === this.side));
    this.heading.title = t().compare.active;
    this.root.setAttribute("aria-label", t().stage.label);
    this.buttons.setAttribute("aria-label", t().stage.processes);
    setText(this.hint, two ? "" : t().stage.hint);
    this.#label();
    this.invalidate();
  }

  /** The time moved. */
  moved() {
    if (this.lab.playing) {
      this.glide = null;
      this.visualTime = this.lab.time;
      this.draw();
      return;
    }
    const timeline = this.timeline;
    if (timeline && this.visualTime !== this.lab.time && this.glide?.to !== this.lab.time) {
      const crossed = Math.abs(timeline.positionAt(this.visualTime) - this.side.position);
      const still = reducedMotion() || crossed > GLIDE_STEPS_MAX;
      this.glide = still ? null : { from: this.visualTime, to: this.lab.time, start: performance.now() };
      if (still) this.visualTime = this.lab.time;
    }
    this.invalidate();
  }

  invalidate() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.#glideOn();
      this.draw();
    });
  }

  #glideOn() {
    if (!this.glide) {
      this.visualTime = this.lab.time;
      return;
    }
    const share = Math.min(1, (performance.now() - this.glide.start) / GLIDE_MS);
    const eased = 1 - (1 - share) ** 2;
    this.visualTime = this.glide.from + (this.glide.to - this.glide.from) * eased;
    if (share >= 1) {
      this.visualTime = this.glide.to;
      this.glide = null;
    } else {
      setTimeout(() => this.invalidate(), 0);
    }
  }

  draw() {
    const timeline = this.timeline;
    if (!timeline || !this.placement || this.points.length === 0) return;
    const position = this.position();
    const key = `${timeline.processes.wiresAt(position).length}`;
    if (this.wiresKey !== key || !this.wires) {
      this.wiresKey = key;
      this.wires = wiresAt(timeline, position);
    }
    this.painter.paint({
      timeline,
      position,
      time: this.visualTime,
      placement: this.placement,
      points: this.points,
      radius: this.radius,
      wires: this.wires,
      selected: this.side.selected,
      overlay: this.overlay,
      radio: this.side.scenario.algorithm === "wireless",
    });
    const now = performance.now();
    if (!this.lab.playing || now - this.labelled > LABEL_INTERVAL_MS) {
      this.labelled = now;
      this.#label();
    }
  }

  /** How many steps are to be seen: while gliding, those of the moment shown. */
  position() {
    if (!this.timeline) return 0;
    return this.glide ? this.timeline.positionAt(this.visualTime) : this.side.position;
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!this.timeline || !this.placement || width === 0) return;
    const n = this.timeline.n;
    this.radius = radiusFor(n, Math.min(width, height));
    this.painter.resize(width, height, n, this.timeline.run.topology.shape === "graph");
    const { marginX, marginY } = this.painter.margins(this.radius);
    // The lowest line is the hint's; of two stages each has a heading.
    const head = this.heading.hidden ? 0 : HEAD;
    const middle = head + (height - HINT - head) / 2;
    const [halfX, halfY] = [width / 2 - marginX, middle - head - marginY];
    const { x, y } = this.placement;
    this.points = Array.from(x, (_, i) => ({ x: width / 2 + x[i] * halfX, y: middle + y[i] * halfY }));
    [...this.buttons.children].forEach((button, i) => {
      const { style } = /** @type {HTMLElement} */ (button);
      style.left = `${this.points[i].x}px`;
      style.top = `${this.points[i].y}px`;
      style.width = style.height = `${this.radius * 2}px`;
    });
    this.invalidate();
  }

  #makeButtons() {
    const timeline = this.timeline;
    if (!timeline) return;
    // The same processes keep their buttons, and whoever is on one keeps the focus.
    const names = timeline.names.join();
    if (names === this.buttons.dataset.names) return;
    this.buttons.dataset.names = names;
    fill(
      this.buttons,
      ...timeline.names.map((name, i) =>
        el(
          "button",
          {
            class: "node-button",
            type: "button",
            "data-testid": `process-${timeline.uids[i]}`,
            "data-index": i,
            "aria-haspopup": "menu",
            // A tab stop for each of hundreds would be a wall; arrows go on from the first.
            tabIndex: i === 0 || timeline.n <= 20 ? 0 : -1,
          },
          name,
        ),
      ),
    );
  }

  /** Says to screen readers what is to be seen. */
  #label() {
    const timeline = this.timeline;
    if (!timeline) return;
    const buttons = this.buttons.children;
    for (let i = 0; i < buttons.length; i++) {
      const label = describe(timeline, i, this.side.position);
      if (buttons[i].getAttribute("aria-label") !== label) buttons[i].setAttribute("aria-label", label);
    }
  }
}

/**
 * A process in words.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} index
 * @param {number} position
 */
export function describe(timeline, index, position) {
  return [timeline.names[index], ...conditionWords(timeline, index, position)].join(", ");
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} index @param {number} position */
export function conditionWords(timeline, index, position) {
  const words = t().stage;
  const now = timeline.processes.condition(index, position);
  if (!now.up) return [words.down];
  const parts = [];
  if (now.pausedUntil !== null) parts.push(words.paused);
  if (now.user === "inside") parts.push(now.fence ? `${words.inside} (${now.fence})` : words.inside);
  if (now.user === "waiting") parts.push(words.waiting);
  if (now.leader === index) parts.push(now.term ? `${words.leads}, ${words.term(now.term)}` : words.leads);
  else if (now.leader >= 0) parts.push(words.follows(timeline.names[now.leader]));
  if (now.suspects.length) parts.push(words.suspects(t().list(now.suspects.map((i) => timeline.names[i]))));
  return parts;
}
