// @ts-check
// The index of a trace: who is how, where, at any position of the run. A position is how many
// steps have happened. Everything is looked up by binary search, so going back costs what going
// forward does.

import { Flight } from "./flight.js";
import { Processes } from "./processes.js";
import { countBelow, countUpTo } from "./sorted.js";

/** What sets a step off. */
export const CAUSES = /** @type {const} */ ([
  "boot",
  "request",
  "receive",
  "timer",
  "crash",
  "restart",
  "pause",
  "resume",
  "partition",
  "cut",
  "heal",
  "lose",
  "repeat",
  "violation",
  "other",
]);
/** @typedef {typeof CAUSES[number]} Cause */

const FAULTS = new Set(["crash", "restart", "pause", "partition", "cut", "heal"]);
/** What a step leaves behind; all else begins a new one. */
const EFFECTS = new Set(["state", "send", "arm", "disarm", "notice", "unexpected"]);

export const HEARD = 1;
export const LOST = 2;
export const PENDING = 3;

export class Timeline {
  /** @param {import("./types.js").Run} run */
  constructor(run) {
    this.run = run;
    this.events = run.events;
    this.names = run.topology.nodes.map((node) => node.name);
    this.uids = run.topology.nodes.map((node) => node.uid);
    this.n = this.uids.length;
    /** @type {Map<number, number>} */
    this.indexOf = new Map(this.uids.map((uid, index) => [uid, index]));
    const steps = splitSteps(this.events, this.indexOf);
    this.steps = steps.cause.length;
    this.stepFrom = Int32Array.from(steps.from);
    this.stepTime = Float64Array.from(steps.time);
    this.stepNode = Int32Array.from(steps.node);
    this.stepCause = Uint8Array.from(steps.cause);
    this.processes = new Processes(this);
    const letters = new Letters(this);
    for (let step = 0; step < this.steps; step++) {
      for (let i = this.stepFrom[step]; i < this.stepFrom[step + 1]; i++) letters.read(this.events[i], i, step);
    }
    this.kinds = letters.kinds;
    this.kindSteps = letters.kindSteps.map((kind) => Int32Array.from(kind));
    this.lossSteps = Int32Array.from(letters.losses);
    this.messages = letters.close();
    this.messageIds = letters.byId;
    this.flight = new Flight(this.steps, this.messages.departs, this.messages.ends);
    this.marks = findMarks(this);
    this.duration = Math.max(run.result?.time_ms ?? 0, this.steps ? this.stepTime[this.steps - 1] : 0);
    /** Everyone has booted: where watching begins. */
    this.base = this.steps && this.cause(0) === "boot" && this.stepTime[0] === 0 ? 1 : 0;
  }

  /** @param {number} step @returns {Cause} */
  cause(step) {
    return CAUSES[this.stepCause[step]];
  }

  /** The events of a step, the cause first. @param {number} step */
  eventsOf(step) {
    return this.events.slice(this.stepFrom[step], this.stepFrom[step + 1]);
  }

  /** The first event of a step. @param {number} step */
  first(step) {
    return this.events[this.stepFrom[step]];
  }

  /** How many steps have happened at a time. @param {number} time */
  positionAt(time) {
    return Math.max(this.base, countUpTo(this.stepTime, time));
  }

  /** When the last of so many steps happened. @param {number} position */
  timeOf(position) {
    return position > 0 ? this.stepTime[position - 1] : 0;
  }

  /** @param {number} uid */
  name(uid) {
    const index = this.indexOf.get(uid);
    return index === undefined ? `P${uid}` : this.names[index];
  }

  /** A message by the id the trace gives it. @param {number} id */
  messageOf(id) {
    const row = this.messageIds.get(id);
    if (row === undefined) return null;
    const { from, to, event } = this.messages;
    return { row, from: from[row], to: to[row], text: this.events[event[row]].text ?? "" };
  }

  /** How often each kind was sent in the first so many steps. @param {number} position */
  countsAt(position) {
    return this.kindSteps.map((steps) => countBelow(steps, position));
  }

  /** @param {number} position */
  lostAt(position) {
    return countBelow(this.lossSteps, position);
  }

  /**
   * The nearest position after (or before) this one at which a marked step has just happened.
   * @param {number[]} marks
   * @param {number} position
   * @param {1|-1} way
   * @returns {number|null}
   */
  seekMark(marks, position, way) {
    const index = way > 0 ? countUpTo(marks, position - 1) : countBelow(marks, position - 1) - 1;
    const step = marks[index];
    return step === undefined ? null : step + 1;
  }
}

/**
 * Where each step begins, and what set it off.
 * @param {import("./types.js").TraceEvent[]} events
 * @param {Map<number, number>} indexOf
 */
function splitSteps(events, indexOf) {
  /** @type {{from: number[], time: number[], node: number[], cause: number[]}} */
  const steps = { from: [], time: [], node: [], cause: [] };
  let booting = false;
  /** Messages sent in this step: what becomes of them at once belongs to it. @type {Set<number>} */
  let sent = new Set();
  for (let i = 0; i < events.length; i++) {
    const event = events[i];
    const what = event.event;
    if (what === "send") sent.add(/** @type {number} */ (event.id));
    if (i > 0) {
      if (EFFECTS.has(what)) continue;
      if ((what === "lose" || what === "repeat") && sent.has(/** @type {number} */ (event.id))) continue;
      if (what === "violation" && event.t_ms === steps.time.at(-1)) continue;
      // Everyone boots at once, and nobody wants to step through that.
      if (what === "boot" && booting && event.t_ms === 0) {
        steps.node[steps.node.length - 1] = -1;
        continue;
      }
    }
    booting = what === "boot" && event.t_ms === 0;
    sent = new Set();
    steps.from.push(i);
    steps.time.push(event.t_ms);
    steps.node.push(event.node === undefined ? -1 : (indexOf.get(event.node) ?? -1));
    const cause = CAUSES.indexOf(/** @type {Cause} */ (what));
    steps.cause.push(cause < 0 ? CAUSES.length - 1 : cause);
  }
  steps.from.push(events.length);
  return steps;
}

/** @typedef {"receive"|"entry"|"election"|"violation"|"crash"|"edit"} Mark */

/** The steps worth jumping to. @param {Timeline} timeline */
function findMarks(timeline) {
  /** @type {Record<Mark, number[]>} */
  const marks = { receive: [], entry: [], election: [], violation: [], crash: [], edit: [] };
  for (let step = 0; step < timeline.steps; step++) {
    const cause = timeline.cause(step);
    if (cause === "receive") marks.receive.push(step);
    if (cause === "crash") marks.crash.push(step);
    if (FAULTS.has(cause)) marks.edit.push(step);
    /** @param {number[]} list */
    const mark = (list) => list[list.length - 1] !== step && list.push(step);
    for (let i = timeline.stepFrom[step]; i < timeline.stepFrom[step + 1]; i++) {
      const event = timeline.events[i];
      if (event.event === "violation") mark(marks.violation);
      if (event.event === "notice" && event.kind === "Entered") mark(marks.entry);
      if (event.event === "notice" && event.kind === "Leader" && event.notice?.Leader?.id === event.node) {
        mark(marks.election);
      }
    }
  }
  return marks;
}

/**
 * Messages as columns: `from`, `to` and `kind` are indices, `number` counts sends from 1 as
 * scenarios do (0 for the copy of another).
 * @typedef {object} Messages
 * @property {number} count
 * @property {Int32Array} from
 * @property {Int32Array} to
 * @property {Uint16Array} kind
 * @property {Int32Array} departs
 * @property {Int32Array} ends
 * @property {Float64Array} sent
 * @property {Float64Array} arrives
 * @property {Float64Array} latest the latest arrival of all up to this one
 * @property {Uint8Array} fate
 * @property {Int32Array} number
 * @property {Int32Array} event where in the trace it was sent
 * @property {number} delay how long one typically takes
 */

/** Collects messages while the trace is read. */
class Letters {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    /** @type {Map<number, number>} */
    this.byId = new Map();
    /** @type {string[]} */
    this.kinds = [];
    /** @type {number[][]} */
    this.kindSteps = [];
    /** @type {number[]} */
    this.losses = [];
    /**
     * @type {{from: number, to: number, kind: number, departs: number, ends: number, sent: number, arrives: number, fate: number, number: number, event: number}[]}
     */
    this.rows = [];
    this.sends = 0;
  }

  /**
   * @param {import("./types.js").TraceEvent} event
   * @param {number} index
   * @param {number} step
   */
  read(event, index, step) {
    const id = /** @type {number} */ (event.id);
    switch (event.event) {
      case "send": {
        const kind = this.#kind(event.kind ?? "");
        this.kindSteps[kind].push(step);
        this.#open(id, {
          from: this.#index(event.node),
          to: this.#index(event.to),
          kind,
          departs: step,
          sent: event.t_ms,
          number: ++this.sends,
          event: index,
        });
        break;
      }
      case "repeat": {
        const original = this.rows[this.byId.get(id) ?? -1];
        if (original) this.#open(/** @type {number} */ (event.copy), { ...original, departs: step, number: 0 });
        break;
      }
      case "receive":
        this.#end(id, step, event.t_ms, HEARD);
        break;
      case "lose":
        this.losses.push(step);
        this.#end(id, step, event.t_ms, LOST);
        break;
    }
  }

  /** @param {number|undefined} uid */
  #index(uid) {
    return this.timeline.indexOf.get(uid ?? -1) ?? 0;
  }

  /** @param {string} name */
  #kind(name) {
    const known = this.kinds.indexOf(name);
    if (known >= 0) return known;
    this.kindSteps.push([]);
    return this.kinds.push(name) - 1;
  }

  /**
   * @param {number} id
   * @param {{from: number, to: number, kind: number, departs: number, sent: number, number: number, event: number}} row
   */
  #open(id, row) {
    this.byId.set(id, this.rows.length);
    this.rows.push({ ...row, ends: this.timeline.steps, arrives: Infinity, fate: PENDING });
  }

  /** @param {number} id @param {number} step @param {number} time @param {number} fate */
  #end(id, step, time, fate) {
    const row = this.rows[this.byId.get(id) ?? -1];
    if (!row) return;
    row.ends = step;
    row.arrives = time;
    row.fate = fate;
  }

  /** @returns {Messages} */
  close() {
    const rows = this.rows;
    const delay = this.#typicalDelay();
    for (const row of rows) {
      if (row.fate === PENDING)
        row.arrives = Math.max(row.sent + delay, this.timeline.stepTime[this.timeline.steps - 1]);
      // Lost as it was sent: let it be seen leaving.
      if (row.fate === LOST && row.arrives <= row.sent) {
        row.arrives = row.sent + delay / 2;
        row.ends = Math.max(row.ends, countUpTo(this.timeline.stepTime, row.arrives) - 1);
      }
    }
    const latest = new Float64Array(rows.length);
    rows.forEach((row, i) => (latest[i] = Math.max(row.arrives, i ? latest[i - 1] : 0)));
    /** @param {(row: typeof rows[number]) => number} get */
    const ints = (get) => Int32Array.from(rows, get);
    return {
      count: rows.length,
      delay,
      latest,
      from: ints((row) => row.from),
      to: ints((row) => row.to),
      kind: Uint16Array.from(rows, (row) => row.kind),
      departs: ints((row) => row.departs),
      ends: ints((row) => row.ends),
      sent: Float64Array.from(rows, (row) => row.sent),
      arrives: Float64Array.from(rows, (row) => row.arrives),
      fate: Uint8Array.from(rows, (row) => row.fate),
      number: ints((row) => row.number),
      event: ints((row) => row.event),
    };
  }

  /** The median of a sample: the pace at which a run is shown. */
  #typicalDelay() {
    const heard = this.rows.filter((row) => row.fate === HEARD);
    const stride = Math.max(1, Math.floor(heard.length / 501));
    const sample = [];
    for (let i = 0; i < heard.length; i += stride) sample.push(heard[i].arrives - heard[i].sent);
    sample.sort((a, b) => a - b);
    return sample[sample.length >> 1] || 1;
  }
}
