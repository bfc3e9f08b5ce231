// @ts-check
// Draws one moment of a run on a canvas.

import { t } from "./i18n.js";
import { LOST } from "./timeline.js";
import { colours, kindColour } from "./palette.js";

/** Up to so many processes have their state written beside them. */
const CARDS_MAX = 12;
/** Up to so many messages under way carry their kind. */
const PILLS_MAX = 40;
/** And only among so many processes. */
const PILLS_NODES_MAX = 24;
/** Messages of both directions of a link keep this far apart. */
const LANE = 6;

/**
 * What the pointer is doing: a line being drawn, or a message being dragged.
 * @typedef {{stroke: {x: number, y: number}[]|null, dragged: {message: number, x: number, y: number}|null}} Overlay
 */

/**
 * @typedef {object} Scene
 * @property {import("./timeline.js").Timeline} timeline
 * @property {number} position
 * @property {number} time
 * @property {import("./placement.js").Placement} placement
 * @property {{x: number, y: number}[]} points
 * @property {number} radius
 * @property {{groups: number[][], isDown: (a: number, b: number) => boolean, any: boolean}} wires
 * @property {number} selected
 * @property {Overlay} overlay
 * @property {boolean} radio
 */

/** A field that says nothing yet. */
const NOTHING = /^(?:(?:\w+=)?(?:–|0|false|\[\]|\{\})(?:, |$))+$/;

/** @param {number} n @param {number} size */
export function radiusFor(n, size) {
  const room = (size * 2.4) / (n + 4);
  return Math.max(4, Math.min(25, room * 0.42, size * 0.07));
}

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.backdrop = document.createElement("canvas");
    this.backdropKey = "";
    this.width = 0;
    this.height = 0;
    this.cards = false;
    this.crowded = false;
  }

  /**
   * @param {number} width
   * @param {number} height
   * @param {number} n
   * @param {boolean} isGraph where processes stand anywhere
   */
  resize(width, height, n, isGraph) {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.cards = n <= CARDS_MAX && width >= 300;
    this.crowded = n > 8 && isGraph;
    for (const canvas of [this.canvas, this.backdrop]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.backdropKey = "";
  }

  /** Room for what is written beside the processes. @param {number} radius */
  margins(radius) {
    const narrow = this.width < 560;
    if (!this.cards) return { marginX: radius + 22, marginY: radius + 32 };
    if (this.crowded) return { marginX: radius + 100, marginY: radius + 40 };
    if (narrow) return { marginX: radius + 34, marginY: radius + 34 };
    return { marginX: radius + Math.min(190, this.width * 0.2), marginY: radius + Math.min(86, this.height * 0.17) };
  }

  /** @param {Scene} scene */
  paint(scene) {
    const { ctx } = this;
    const ratio = this.ratio ?? 1;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.#backdrop(scene);
    ctx.drawImage(this.backdrop, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#suspicions(scene);
    if (this.cards)
      for (let i = 0; i < scene.timeline.n; i++)
        this.#card(scene, i, scene.timeline.processes.condition(i, scene.position));
    this.#messages(scene);
    this.#processes(scene);
    this.#overlay(scene);
  }

  /** The links, drawn once until they change. @param {Scene} scene */
  #backdrop(scene) {
    const key = [
      this.width,
      this.height,
      document.documentElement.dataset.theme,
      JSON.stringify(scene.wires.groups),
      scene.wires.any ? scene.position : "",
    ].join();
    if (key === this.backdropKey && this.backdropTopology === scene.placement) return;
    this.backdropKey = key;
    this.backdropTopology = scene.placement;
    const ctx = /** @type {CanvasRenderingContext2D} */ (this.backdrop.getContext("2d"));
    const ratio = this.ratio ?? 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, this.width, this.height);
    const palette = colours();
    const { points, placement, wires } = scene;
    if (scene.radio) this.#radio(ctx, scene);
    if (wires.groups.length > 1) this.#groups(ctx, scene);
    const many = placement.edges.length > 120;
    for (const [a, b] of placement.edges) {
      const [there, back] = [wires.isDown(a, b), wires.isDown(b, a)];
      ctx.beginPath();
      ctx.moveTo(points[a].x, points[a].y);
      ctx.lineTo(points[b].x, points[b].y);
      ctx.setLineDash(there || back ? [4, 6] : []);
      ctx.strokeStyle = there && back ? palette.broken : there || back ? palette.inside : palette["strong-line"];
      ctx.globalAlpha = there || back ? 0.75 : many ? 0.16 : placement.edges.length > 30 ? 0.28 : 0.5;
      ctx.lineWidth = many ? 0.7 : 1.2;
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }

  /** How far each can be heard. @param {CanvasRenderingContext2D} ctx @param {Scene} scene */
  #radio(ctx, { points, placement }) {
    const reach = points.map(() => 0);
    for (const [a, b] of placement.edges) {
      const length = Math.hypot(points[a].x - points[b].x, points[a].y - points[b].y);
      reach[a] = Math.max(reach[a], length);
      reach[b] = Math.max(reach[b], length);
    }
    ctx.fillStyle = colours().accent;
    points.forEach((point, i) => {
      ctx.globalAlpha = 0.035;
      ctx.beginPath();
      ctx.arc(point.x, point.y, reach[i], 0, 2 * Math.PI);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
  }

  /** The sides of a parted network. @param {CanvasRenderingContext2D} ctx @param {Scene} scene */
  #groups(ctx, { wires, points, radius }) {
    wires.groups.forEach((group, i) => {
      const outline = hull(group.map((index) => points[index]));
      ctx.beginPath();
      outline.forEach((point, j) => (j ? ctx.lineTo(point.x, point.y) : ctx.moveTo(point.x, point.y)));
      ctx.closePath();
      ctx.fillStyle = ctx.strokeStyle = kindColour(i);
      ctx.lineJoin = "round";
      ctx.lineWidth = radius * 3.4;
      ctx.globalAlpha = 0.1;
      ctx.stroke();
      ctx.fill();
    });
    ctx.globalAlpha = 1;
  }

  /** @param {Scene} scene */
  #suspicions(scene) {
    const { ctx } = this;
    const { timeline, position, points, radius } = scene;
    if (timeline.n > 60) return;
    ctx.strokeStyle = colours().broken;
    ctx.fillStyle = colours().broken;
    ctx.lineWidth = 1.3;
    ctx.font = `600 12px ${colours().sans}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let i = 0; i < timeline.n; i++) {
      for (const other of timeline.processes.condition(i, position).suspects) {
        const [from, to] = [points[i], points[other]];
        const bend = 0.16;
        const cx = (from.x + to.x) / 2 + (to.y - from.y) * bend;
        const cy = (from.y + to.y) / 2 - (to.x - from.x) * bend;
        const [start, end] = [shorten(from, { x: cx, y: cy }, radius + 3), shorten(to, { x: cx, y: cy }, radius + 5)];
        ctx.setLineDash([2, 4]);
        ctx.beginPath();
        ctx.moveTo(start.x, start.y);
        ctx.quadraticCurveTo(cx, cy, end.x, end.y);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.fillText("?", (start.x + 2 * cx + end.x) / 4, (start.y + 2 * cy + end.y) / 4);
      }
    }
  }

  /** @param {Scene} scene */
  #messages(scene) {
    const { ctx } = this;
    const { timeline, position } = scene;
    const flying = timeline.flight.at(position);
    const pills = flying.length <= PILLS_MAX && timeline.n <= PILLS_NODES_MAX;
    const size = flying.length > 2000 ? 3 : timeline.n > 60 ? 4 : 6;
    const { kind, fate, arrives, sent, departs, ends } = timeline.messages;
    for (let k = 0; k < timeline.kinds.length; k++) {
      ctx.fillStyle = kindColour(k);
      for (const message of flying) {
        if (kind[message] !== k || scene.overlay.dragged?.message === message) continue;
        const { x, y } = messageAt(scene, message);
        const lostAtOnce =
          fate[message] === LOST &&
          departs[message] <= ends[message] &&
          arrives[message] - sent[message] <= timeline.messages.delay / 2;
        ctx.globalAlpha = lostAtOnce ? 1 - progress(timeline, message, scene.time) : 1;
        if (pills) this.#pill(x, y, timeline.kinds[k], k);
        else ctx.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }
    ctx.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {string} text @param {number} kind */
  #pill(x, y, text, kind) {
    const { ctx } = this;
    ctx.font = `600 11px ${colours().sans}`;
    const width = ctx.measureText(text).width + 14;
    ctx.fillStyle = kindColour(kind);
    ctx.beginPath();
    ctx.roundRect(x - width / 2, y - 9, width, 18, 9);
    ctx.fill();
    ctx.fillStyle = colours().card;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, y + 0.5);
  }

  /** @param {Scene} scene */
  #processes(scene) {
    const { timeline, position } = scene;
    const current = position > 0 ? timeline.stepNode[position - 1] : -1;
    for (let i = 0; i < timeline.n; i++) {
      const now = timeline.processes.condition(i, position);
      this.#process(scene, i, now, i === current);
    }
  }

  /** @param {Scene} scene @param {number} i @param {import("./processes.js").Condition} now @param {boolean} acts */
  #process(scene, i, now, acts) {
    const { ctx } = this;
    const palette = colours();
    const { radius } = scene;
    const { x, y } = scene.points[i];
    const leads = now.up && now.leader === i;
    if (acts || i === scene.selected) {
      ctx.beginPath();
      ctx.arc(x, y, radius + Math.max(3, radius * 0.28), 0, 2 * Math.PI);
      ctx.fillStyle = i === scene.selected ? palette.accent : palette["accent-soft"];
      ctx.globalAlpha = i === scene.selected ? 0.3 : 1;
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    const [fillColour, line] = !now.up
      ? [palette.sunk, palette.down]
      : now.user === "inside"
        ? [palette["inside-soft"], palette.inside]
        : leads
          ? [palette["leader-soft"], palette.leader]
          : now.user === "waiting"
            ? [palette["waiting-soft"], palette.waiting]
            : [palette.card, palette["strong-line"]];
    ctx.fillStyle = fillColour;
    ctx.fill();
    ctx.strokeStyle = line;
    ctx.lineWidth = now.user === "inside" || leads ? Math.max(2, radius * 0.14) : Math.max(1, radius * 0.07);
    ctx.setLineDash(now.up ? [] : [3, 3]);
    ctx.stroke();
    ctx.setLineDash([]);
    this.#name(scene, i, now);
    if (leads && radius >= 8) this.#crown(x, y - radius - 3, Math.max(7, radius * 0.5));
  }

  /** @param {Scene} scene @param {number} i @param {import("./processes.js").Condition} now */
  #name(scene, i, now) {
    const { ctx } = this;
    const palette = colours();
    const { radius } = scene;
    const { x, y } = scene.points[i];
    if (radius < 7.5) return;
    const name = scene.timeline.names[i];
    ctx.font = `600 ${Math.max(8, Math.min(15, (radius * 2.6) / Math.max(2.4, name.length)))}px ${palette.sans}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = now.up ? palette.ink : palette.muted;
    ctx.fillText(name, x, y + 0.5);
    if (!now.up) {
      ctx.strokeStyle = palette.broken;
      ctx.lineWidth = 2;
      ctx.beginPath();
      const reach = radius * 0.72;
      ctx.moveTo(x - reach, y + reach);
      ctx.lineTo(x + reach, y - reach);
      ctx.stroke();
    } else if (now.pausedUntil !== null) {
      ctx.fillStyle = palette.inside;
      ctx.fillRect(x + radius * 0.62, y - radius - 2, 3.5, 11);
      ctx.fillRect(x + radius * 0.62 + 6, y - radius - 2, 3.5, 11);
    }
  }

  /** @param {number} x @param {number} y @param {number} size */
  #crown(x, y, size) {
    const { ctx } = this;
    ctx.fillStyle = colours().leader;
    ctx.beginPath();
    ctx.moveTo(x - size, y);
    ctx.lineTo(x - size, y - size);
    ctx.lineTo(x - size * 0.45, y - size * 0.5);
    ctx.lineTo(x, y - size * 1.15);
    ctx.lineTo(x + size * 0.45, y - size * 0.5);
    ctx.lineTo(x + size, y - size);
    ctx.lineTo(x + size, y);
    ctx.closePath();
    ctx.fill();
  }

  /**
   * What it is and knows, written on the side where there is room.
   * @param {Scene} scene
   * @param {number} i
   * @param {import("./processes.js").Condition} now
   */
  #card(scene, i, now) {
    const { ctx } = this;
    const palette = colours();
    const { timeline, points, radius, placement } = scene;
    const few = timeline.n <= 6 && this.height > 380;
    const lines = cardLines(
      scene,
      i,
      now,
      this.crowded ? 1 : few ? 4 : timeline.n <= 8 ? 3 : 2,
      this.width < 560 ? 0 : 1,
    );
    if (lines.length === 0) return;
    const [ax, ay] = [placement.awayX[i], placement.awayY[i]];
    // On a phone there is room above and below only.
    const side = Math.abs(ax) > 0.35 && this.width >= 560 ? Math.sign(ax) : 0;
    const height = lines.length * 14;
    const x = points[i].x + (side ? side * (radius + 9) : 0);
    let y = side
      ? points[i].y - height / 2 + 7 + ay * 8
      : ay < 0
        ? points[i].y - radius - (now.leader === i ? 22 : 10) - height + 7
        : points[i].y + radius + 15;
    y = Math.max(12, Math.min(this.height - height, y));
    const room = Math.min(side > 0 ? this.width - x - 6 : side < 0 ? x - 6 : 190, this.crowded ? 120 : 210);
    ctx.textAlign = side > 0 ? "left" : side < 0 ? "right" : "center";
    ctx.textBaseline = "middle";
    lines.forEach((line, j) => {
      ctx.font = j === 0 && line.status ? `600 12px ${palette.sans}` : `11px ${palette.mono}`;
      const text = fit(ctx, line.text, room);
      if (line.fresh > 0) {
        const width = ctx.measureText(text).width + 8;
        const left = side > 0 ? x - 4 : side < 0 ? x - width + 4 : x - width / 2;
        ctx.globalAlpha = line.fresh;
        ctx.fillStyle = palette["inside-soft"];
        ctx.beginPath();
        ctx.roundRect(left, y + j * 14 - 7, width, 14, 4);
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      ctx.fillStyle = line.status ? statusColour(now, i) : line.fresh > 0 ? palette.ink : palette.muted;
      ctx.fillText(text, x, y + j * 14);
    });
  }

  /** @param {Scene} scene */
  #overlay({ overlay, timeline }) {
    const { ctx } = this;
    if (overlay.stroke && overlay.stroke.length > 1) {
      ctx.strokeStyle = colours().broken;
      ctx.lineWidth = 2.5;
      ctx.setLineDash([7, 5]);
      ctx.beginPath();
      overlay.stroke.forEach((point, i) => (i ? ctx.lineTo(point.x, point.y) : ctx.moveTo(point.x, point.y)));
      ctx.stroke();
      ctx.setLineDash([]);
    }
    if (overlay.dragged) {
      const { message, x, y } = overlay.dragged;
      const kind = timeline.messages.kind[message];
      this.#pill(x, y, timeline.kinds[kind], kind);
    }
  }
}

/** @param {import("./processes.js").Condition} now @param {number} i */
function statusColour(now, i) {
  const palette = colours();
  if (!now.up) return palette.muted;
  if (now.user === "inside") return palette.inside;
  if (now.leader === i) return palette.leader;
  return now.user === "waiting" ? palette.waiting : palette.muted;
}

/**
 * @param {Scene} scene
 * @param {number} i
 * @param {import("./processes.js").Condition} now
 * @param {number} max
 * @param {0|1} fields whether there is room for more than the first line
 */
function cardLines(scene, i, now, max, fields) {
  const { timeline, position, time } = scene;
  const words = t().stage;
  /** @type {{text: string, fresh: number, status: boolean}[]} */
  const lines = [];
  const status = [];
  if (!now.up) status.push(words.down);
  if (now.pausedUntil !== null) status.push(words.paused);
  if (now.user === "inside") status.push(words.inside);
  if (now.user === "waiting") status.push(words.waiting);
  if (now.leader === i) status.push(now.term ? `${words.leads} · ${words.term(now.term)}` : words.leads);
  else if (now.leader >= 0 && now.up) status.push(words.follows(timeline.names[now.leader]));
  if (status.length) lines.push({ text: status.join(" · "), fresh: 0, status: true });
  if (!fields || !now.up) return lines;
  const fade = Math.max(timeline.messages.delay * 0.9, 0.001);
  const fresh = timeline.processes.state(i, position).map((field) => ({
    text: field.name ? `${field.name}: ${field.text}` : field.text,
    status: false,
    step: field.step,
    plain: field.name === "leader" || NOTHING.test(field.text),
    // What just changed is marked, and the mark fades as time goes on.
    fresh:
      field.step < timeline.base
        ? 0
        : field.step === position - 1
          ? 1
          : Math.max(0, 1 - (time - timeline.stepTime[field.step]) / fade),
  }));
  const shown = fresh
    .filter((field) => !field.plain || field.fresh > 0)
    .sort((a, b) => b.step - a.step)
    .slice(0, max);
  return lines.concat(shown);
}

/**
 * How far a message has come, from 0 to 1.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} message
 * @param {number} time
 */
export function progress(timeline, message, time) {
  const { sent, arrives } = timeline.messages;
  const whole = arrives[message] - sent[message];
  return whole > 0 ? Math.max(0, Math.min(1, (time - sent[message]) / whole)) : 1;
}

/** Where a message is. @param {Scene} scene @param {number} message */
export function messageAt({ timeline, points, radius, time }, message) {
  const { from, to, kind, fate, sent, arrives, delay } = timeline.messages;
  const [a, b] = [points[from[message]], points[to[message]]];
  let share = progress(timeline, message, time);
  // One that is lost as it is sent gets half way.
  if (fate[message] === LOST && arrives[message] - sent[message] <= delay / 2) share /= 2;
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [ux, uy] = [(b.x - a.x) / length, (b.y - a.y) / length];
  // Beside the process, not under it, when it has just been sent.
  const half = timeline.n <= PILLS_NODES_MAX ? timeline.kinds[kind[message]].length * 3.3 + 7 : 2;
  const gap = Math.min(radius + 3 + Math.abs(ux) * half + Math.abs(uy) * Math.min(half, 9), length / 2);
  const along = gap + (length - 2 * gap) * share;
  return { x: a.x + ux * along - uy * LANE, y: a.y + uy * along + ux * LANE };
}

/** @param {{x: number, y: number}} from @param {{x: number, y: number}} towards @param {number} by */
function shorten(from, towards, by) {
  const length = Math.hypot(towards.x - from.x, towards.y - from.y) || 1;
  return { x: from.x + ((towards.x - from.x) / length) * by, y: from.y + ((towards.y - from.y) / length) * by };
}

/**
 * As much of a text as there is room for.
 * @param {CanvasRenderingContext2D} ctx
 * @param {string} text
 * @param {number} room
 */
function fit(ctx, text, room) {
  if (text.length <= 4 || ctx.measureText(text).width <= room) return text;
  let length = Math.min(text.length, Math.floor(room / 6));
  while (length > 3 && ctx.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return `${text.slice(0, length)}…`;
}

/** The convex hull. @param {{x: number, y: number}[]} points */
function hull(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  /** @param {{x: number, y: number}} o @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
  const turn = (o, a, b) => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
  /** @param {{x: number, y: number}[]} list */
  const half = (list) => {
    /** @type {{x: number, y: number}[]} */
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain[chain.length - 2], chain[chain.length - 1], point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}
