// @ts-check
// What each process was at any position: up or down, waiting or inside, whom it follows and
// suspects, and every field of its state.

import { countBelow } from "./sorted.js";

/** @typedef {"out"|"waiting"|"inside"} User */

/**
 * What is known of a process between two changes.
 * @typedef {object} Condition
 * @property {boolean} up
 * @property {number|null} pausedUntil
 * @property {User} user
 * @property {number} since when its user began to wait or came in
 * @property {number} leader index of the one it follows, -1 for none
 * @property {number} term
 * @property {number} downSince
 * @property {readonly number[]} suspects
 * @property {string|null} fence
 */

/** @type {Condition} */
const FRESH = {
  up: true,
  pausedUntil: null,
  user: "out",
  since: 0,
  leader: -1,
  term: 0,
  downSince: 0,
  suspects: [],
  fence: null,
};

/** @typedef {{name: string, text: string, step: number}} Field */

class History {
  constructor() {
    /** @type {number[]} */
    this.steps = [];
    /** @type {Condition[]} */
    this.conditions = [];
    /** @type {Map<string, {steps: number[], texts: string[]}>} */
    this.fields = new Map();
  }
}

/**
 * @typedef {{step: number, groups?: number[][], cut?: [number, number, boolean], heal?: [number, number, boolean]|"all"}} WireChange
 */

export class Processes {
  /** @param {import("./timeline.js").Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.histories = Array.from({ length: timeline.n }, () => new History());
    /** @type {WireChange[]} */
    this.wires = [];
    for (let step = 0; step < timeline.steps; step++) {
      for (let i = timeline.stepFrom[step]; i < timeline.stepFrom[step + 1]; i++) {
        this.#read(timeline.events[i], step);
      }
    }
    this.wireSteps = this.wires.map((change) => change.step);
  }

  /** @param {number} index @param {number} position @returns {Condition} */
  condition(index, position) {
    const { steps, conditions } = this.histories[index];
    return conditions[countBelow(steps, position) - 1] ?? FRESH;
  }

  /** The state of a process, field by field. @param {number} index @param {number} position */
  state(index, position) {
    /** @type {Field[]} */
    const state = [];
    for (const [name, { steps, texts }] of this.histories[index].fields) {
      const at = countBelow(steps, position) - 1;
      if (at >= 0) state.push({ name, text: texts[at], step: steps[at] });
    }
    return state;
  }

  /** Every change of the wires so far. @param {number} position */
  wiresAt(position) {
    return this.wires.slice(0, countBelow(this.wireSteps, position));
  }

  /** @param {import("./types.js").TraceEvent} event @param {number} step */
  #read(event, step) {
    const index = event.node === undefined ? undefined : this.timeline.indexOf.get(event.node);
    if (index === undefined) return this.#readWires(event, step);
    const now = this.histories[index].conditions.at(-1) ?? FRESH;
    /** @param {Partial<Condition>} change */
    const set = (change) => this.#set(index, step, { ...now, ...change });
    switch (event.event) {
      case "boot":
        // A process that comes back knows nothing of what its user was told.
        if (!now.up) set({ ...FRESH });
        break;
      case "state":
        this.#readState(index, event, step);
        break;
      case "request":
        this.#readRequest(event, now, set);
        break;
      case "notice":
        this.#readNotice(event, now, set);
        break;
      case "crash":
        set({ ...FRESH, up: false, downSince: event.t_ms });
        break;
      case "restart":
        set({ ...FRESH });
        break;
      case "pause":
        set({ pausedUntil: event.until_ms ?? null });
        break;
      case "resume":
        set({ pausedUntil: null });
        break;
    }
  }

  /**
   * @param {import("./types.js").TraceEvent} event
   * @param {Condition} now
   * @param {(change: Partial<Condition>) => void} set
   */
  #readRequest(event, now, set) {
    if (event.kind === "Acquire") set({ user: "waiting", since: event.t_ms });
    if (event.kind === "Release" || event.kind === "Withdraw") set({ user: "out", fence: null });
    const suspected = this.timeline.indexOf.get(event.request?.Suspect ?? -1);
    if (suspected !== undefined) set({ suspects: with_(now.suspects, suspected) });
  }

  /**
   * @param {import("./types.js").TraceEvent} event
   * @param {Condition} now
   * @param {(change: Partial<Condition>) => void} set
   */
  #readNotice(event, now, set) {
    const inner = event.notice?.[event.kind ?? ""] ?? {};
    const other = this.timeline.indexOf.get(inner.id ?? -1) ?? -1;
    switch (event.kind) {
      case "Entered":
        set({ user: "inside", since: event.t_ms, fence: inner.fence == null ? null : String(inner.fence) });
        break;
      case "Expelled":
        set({ user: "out", fence: null });
        break;
      case "Leader":
        // Whoever is followed is no longer suspected.
        set({ leader: other, term: inner.term ?? 0, suspects: without(now.suspects, other) });
        break;
      case "NoLeader":
        set({ leader: -1, term: inner.term ?? now.term });
        break;
      case "Suspects":
        set({ suspects: with_(now.suspects, other) });
        break;
      case "Trusts":
        set({ suspects: without(now.suspects, other) });
        break;
    }
  }

  /** @param {number} index @param {import("./types.js").TraceEvent} event @param {number} step */
  #readState(index, event, step) {
    const changed = event.changed ?? [];
    if (changed.length === 0 && event.state !== undefined) {
      for (const [name, value] of Object.entries(event.state ?? {})) this.#setField(index, step, name, tell(value));
      return;
    }
    for (const line of changed) {
      const colon = line.indexOf(": ");
      this.#setField(index, step, line.slice(0, Math.max(0, colon)), line.slice(colon < 0 ? 0 : colon + 2));
    }
  }

  /** @param {import("./types.js").TraceEvent} event @param {number} step */
  #readWires(event, step) {
    const at = (/** @type {number|undefined} */ uid) => this.timeline.indexOf.get(uid ?? -1) ?? -1;
    if (event.event === "partition") {
      this.wires.push({ step, groups: (event.groups ?? []).map((group) => group.map(at)) });
    } else if (event.event === "cut") {
      this.wires.push({ step, cut: [at(event.from), at(event.to), event.both ?? true] });
    } else if (event.event === "heal") {
      const link = event.link;
      this.wires.push({ step, heal: link ? [at(link[0]), at(link[1]), link[2]] : "all" });
    }
  }

  /** @param {number} index @param {number} step @param {Condition} condition */
  #set(index, step, condition) {
    const { steps, conditions } = this.histories[index];
    if (steps.at(-1) === step) {
      conditions[conditions.length - 1] = condition;
    } else {
      steps.push(step);
      conditions.push(condition);
    }
  }

  /** @param {number} index @param {number} step @param {string} name @param {string} text */
  #setField(index, step, name, text) {
    const { fields } = this.histories[index];
    let field = fields.get(name);
    if (!field) fields.set(name, (field = { steps: [], texts: [] }));
    if (field.steps.at(-1) === step) {
      field.texts[field.texts.length - 1] = text;
    } else {
      field.steps.push(step);
      field.texts.push(text);
    }
  }
}

/** @param {readonly number[]} list @param {number} item */
function with_(list, item) {
  return list.includes(item) || item < 0 ? list : [...list, item];
}

/** @param {readonly number[]} list @param {number} item */
function without(list, item) {
  return list.includes(item) ? list.filter((other) => other !== item) : list;
}

/** A value of a first state, as short as the trace tells later ones. @param {any} value @returns {string} */
export function tell(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return `[${value.map(tell).join(", ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).filter(([, part]) => part !== null && part !== false);
  const [only] = entries;
  if (entries.length === 0) return "[]";
  if (entries.length === 1 && /^[A-Z]/.test(only[0])) return `${only[0]}(${tell(only[1])})`;
  return entries.map(([name, part]) => (part === true ? name : `${name}=${tell(part)}`)).join(", ");
}
