// @ts-check
// Why someone waits: whom it asked without an answer, who is inside, and whether they wait in a
// circle.

import { byId, el, fill } from "./dom.js";
import { moment, t } from "./i18n.js";
import { colours } from "./palette.js";
import { HEARD } from "./timeline.js";

/** Answers that are none: whoever gets one goes on waiting. */
const REFUSALS = new Set(["Failed", "Denied", "Refuse"]);
/** More waiting than this are told one by one only when asked. */
const WAITING_MAX = 12;
/** A look back over at most so many messages of one process. */
const LOOK_BACK = 2000;

/**
 * Why one process waits.
 * @typedef {object} Reason
 * @property {number} who
 * @property {number} since
 * @property {number[]} unanswered
 * @property {number[]} refused
 * @property {number[]} inside
 */

/**
 * Everyone who waits at a position, and why.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} position
 * @returns {Reason[]}
 */
export function reasons(timeline, position) {
  const mutex = timeline.run.result.problem === "mutex";
  const conditions = timeline.uids.map((_, i) => timeline.processes.condition(i, position));
  const inside = conditions.flatMap((now, i) => (now.user === "inside" && now.up ? [i] : []));
  /** @type {Map<number, number>} */
  const waiting = new Map();
  conditions.forEach((now, i) => {
    if (now.up && (mutex ? now.user === "waiting" : now.leader < 0)) waiting.set(i, mutex ? now.since : 0);
  });
  if (waiting.size === 0) return [];
  const talk = lastTalk(timeline, position, waiting);
  /** @type {Reason[]} */
  const list = [];
  for (const [who, since] of waiting) {
    const { asked, refused, first } = talk.get(who) ?? { asked: [], refused: [], first: since };
    // In an election only those who asked something wait for anything.
    if (!mutex && asked.length === 0) continue;
    list.push({
      who,
      since: mutex ? since : first,
      unanswered: asked,
      refused,
      inside: inside.filter((i) => i !== who),
    });
  }
  return list;
}

/**
 * For each who waits: whom it asked since it began to wait and has not heard from since.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} position
 * @param {Map<number, number>} waiting
 */
function lastTalk(timeline, position, waiting) {
  const { from, to, kind, sent, departs, ends, fate, count } = timeline.messages;
  let last = count;
  // Messages are in the order of their sending.
  let low = 0;
  while (low < last) {
    const middle = (low + last) >>> 1;
    if (departs[middle] < position) low = middle + 1;
    else last = middle;
  }
  /** @type {Map<number, Map<number, {step: number, time: number}>>} */
  const asked = new Map();
  /** @type {Map<string, {step: number, refusal: boolean}>} */
  const heard = new Map();
  const start = Math.max(0, last - LOOK_BACK * Math.min(4, waiting.size));
  for (let i = start; i < last; i++) {
    const since = waiting.get(from[i]);
    if (since !== undefined && sent[i] >= since) {
      const mine = asked.get(from[i]) ?? new Map();
      mine.set(to[i], { step: departs[i], time: sent[i] });
      asked.set(from[i], mine);
    }
    if (waiting.has(to[i]) && fate[i] === HEARD && ends[i] < position) {
      heard.set(`${to[i]} ${from[i]}`, { step: ends[i], refusal: REFUSALS.has(timeline.kinds[kind[i]]) });
    }
  }
  /** @type {Map<number, {asked: number[], refused: number[], first: number}>} */
  const result = new Map();
  for (const [who, mine] of asked) {
    const open = { asked: /** @type {number[]} */ ([]), refused: /** @type {number[]} */ ([]), first: Infinity };
    for (const [other, { step, time }] of mine) {
      const answer = heard.get(`${who} ${other}`);
      if (answer && answer.step >= step && !answer.refusal) continue;
      open.first = Math.min(open.first, time);
      (answer && answer.step >= step ? open.refused : open.asked).push(other);
    }
    result.set(who, open);
  }
  return result;
}

/** A circle of those who wait for each other, if there is one. @param {Reason[]} list @returns {number[]} */
export function circle(list) {
  const edges = new Map(list.map((reason) => [reason.who, targets(reason)]));
  /** @type {Map<number, "open"|"done">} */
  const seen = new Map();
  /** @type {number[]} */
  const path = [];
  /** @param {number} at @returns {number[]} */
  const visit = (at) => {
    if (seen.get(at) === "done") return [];
    if (seen.get(at) === "open") return path.slice(path.indexOf(at));
    seen.set(at, "open");
    path.push(at);
    for (const next of edges.get(at) ?? []) {
      const found = edges.has(next) ? visit(next) : [];
      if (found.length) return found;
    }
    path.pop();
    seen.set(at, "done");
    return [];
  };
  for (const who of edges.keys()) {
    const found = visit(who);
    if (found.length) return found;
  }
  return [];
}

/** @param {Reason} reason */
function targets(reason) {
  return [...new Set([...reason.unanswered, ...reason.refused, ...reason.inside])];
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} position @param {Reason} reason */
export function tellReason(timeline, position, reason) {
  const words = t().waiting;
  const name = (/** @type {number} */ i) => timeline.names[i];
  const head = words.since(name(reason.who), moment(reason.since));
  const few = (/** @type {number[]} */ list) =>
    t().list(
      list
        .slice(0, 6)
        .map(name)
        .concat(list.length > 6 ? [`+${list.length - 6}`] : []),
    );
  const parts = [];
  if (reason.unanswered.length) {
    parts.push(
      `${words.forMany(few(reason.unanswered))}, ${reason.unanswered.length > 1 ? words.noAnswers : words.noAnswer}`,
    );
  }
  for (const other of [...reason.unanswered, ...reason.refused].slice(0, 6)) {
    const now = timeline.processes.condition(other, position);
    if (!now.up) parts.push(words.isDown(name(other), moment(now.downSince)));
    else if (now.pausedUntil !== null) parts.push(words.isPaused(name(other), moment(now.pausedUntil)));
    else if (reason.refused.includes(other)) parts.push(words.refused(name(other)));
  }
  for (const other of reason.inside)
    parts.push(words.inside(name(other), moment(timeline.processes.condition(other, position).since)));
  if (parts.length === 0) parts.push(words.nothing);
  return `${head} ${reason.unanswered.length ? "" : "– "}${parts.join("; ")}.`;
}

/** @param {import("./state.js").Lab} lab */
export function makeWaiting(lab) {
  const panel = byId("panel-waiting");
  const graph = el("canvas", { class: "wait-graph", role: "img" });
  function update() {
    const { timeline, side } = lab;
    if (!timeline || panel.hidden) return;
    const words = t().waiting;
    const all = reasons(timeline, side.position);
    const chosen = all.filter((reason) => reason.who === side.selected);
    const told = chosen.length ? chosen : all.slice(0, WAITING_MAX);
    const round = circle(all);
    graph.hidden = all.length === 0 || timeline.n > 60;
    graph.setAttribute("aria-label", words.graph);
    fill(
      panel,
      el("h2", {}, chosen.length ? words.question(timeline.names[side.selected]) : words.label),
      round.length
        ? el(
            "p",
            { class: "deadlock", "data-testid": "wait-circle" },
            words.cycle([...round, round[0]].map((i) => timeline.names[i]).join(" → ")),
          )
        : null,
      all.length === 0
        ? el("p", { class: "muted" }, words.nobody)
        : el(
            "ul",
            { class: "waits" },
            ...told.map((reason) =>
              el("li", { "data-testid": "wait-reason" }, tellReason(timeline, side.position, reason)),
            ),
          ),
      graph,
    );
    if (!graph.hidden) drawGraph(graph, timeline, all, round);
  }
  lab.on(["step", "run", "language", "select", "sides", "theme"], update);
  new ResizeObserver(update).observe(panel);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("./timeline.js").Timeline} timeline
 * @param {Reason[]} list
 * @param {number[]} round
 */
function drawGraph(canvas, timeline, list, round) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = Math.min(2, devicePixelRatio || 1);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.scale(ratio, ratio);
  const palette = colours();
  const shown = [...new Set(list.flatMap((reason) => [reason.who, ...targets(reason)]))].sort((a, b) => a - b);
  const reach = Math.min(width, height) / 2 - 26;
  const at = new Map(
    shown.map((index, i) => {
      const angle = (2 * Math.PI * i) / shown.length - Math.PI / 2;
      return [
        index,
        {
          x: width / 2 + Math.cos(angle) * reach * Math.min(1.7, width / height),
          y: height / 2 + Math.sin(angle) * reach,
        },
      ];
    }),
  );
  const inRound = (/** @type {number} */ a, /** @type {number} */ b) =>
    round.length > 0 && round[(round.indexOf(a) + 1) % round.length] === b && round.includes(a);
  for (const reason of list) {
    for (const other of targets(reason)) {
      const [from, to] = [at.get(reason.who), at.get(other)];
      if (!from || !to) continue;
      const hot = inRound(reason.who, other);
      ctx.strokeStyle = ctx.fillStyle = hot ? palette.broken : palette.waiting;
      ctx.lineWidth = hot ? 2.6 : 1.2;
      arrow(ctx, from, to, 15);
    }
  }
  for (const [index, { x, y }] of at) {
    ctx.beginPath();
    ctx.arc(x, y, 14, 0, 2 * Math.PI);
    ctx.fillStyle = palette.card;
    ctx.fill();
    ctx.strokeStyle = round.includes(index) ? palette.broken : palette["strong-line"];
    ctx.lineWidth = 1.5;
    ctx.stroke();
    ctx.fillStyle = palette.ink;
    ctx.font = `600 11px ${palette.sans}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(timeline.names[index], x, y, 26);
  }
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {{x: number, y: number}} from
 * @param {{x: number, y: number}} to
 * @param {number} gap
 */
function arrow(ctx, from, to, gap) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  // A little to the right, so that two that wait for each other are two lines.
  const [ox, oy] = [-uy * 3, ux * 3];
  const [x1, y1, x2, y2] = [from.x + ux * gap + ox, from.y + uy * gap + oy, to.x - ux * gap + ox, to.y - uy * gap + oy];
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x2, y2);
  ctx.lineTo(x2 - ux * 9 - uy * 4, y2 - uy * 9 + ux * 4);
  ctx.lineTo(x2 - ux * 9 + uy * 4, y2 - uy * 9 - ux * 4);
  ctx.fill();
}
