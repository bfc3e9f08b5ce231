// @ts-check
// The whole state of the page: one or two scenarios with their runs, and one clock over both.

import * as api from "./api.js";
import { toast } from "./dom.js";
import { leaveOutImpossible } from "./health.js";
import { t } from "./i18n.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./types.js").Scenario} Scenario */

/** A scenario as it was, and the story it came from. @typedef {{scenario: Scenario, origin: Scenario|null}} Version */

/** A scenario, its run, and what it was before it was changed. */
export class Side {
  /** @param {Scenario} scenario */
  constructor(scenario) {
    this.scenario = scenario;
    /** @type {Timeline|null} */
    this.timeline = null;
    this.position = 0;
    /** @type {Version[]} */
    this.past = [];
    /** @type {Version[]} */
    this.future = [];
    /** The process looked at. */
    this.selected = -1;
    /** The story as it was loaded, to tell whether it was changed. @type {Scenario|null} */
    this.origin = null;
    /** @type {AbortController|null} */
    this.asking = null;
    this.readOnly = false;
    /** The cluster that runs, if this is one. @type {import("./live.js").Live|null} */
    this.live = null;
  }
}

/**
 * - `run`: a side has another run; `grow`: its run has become longer; `sides`: there are one or two now, or another is active
 * - `frame`: the time moved; `step`: a position moved, at most four times a second while playing
 * - `play`, `select`, `language`, `theme`, `busy`: what they say; `watch`: someone wants to see the
 *   state of the process selected
 * @typedef {"run"|"grow"|"sides"|"frame"|"step"|"play"|"select"|"watch"|"language"|"theme"|"busy"} Topic
 */

/** While playing, what is read (not watched) follows this often. */
const STEP_INTERVAL_MS = 250;

export class Lab {
  constructor() {
    /** @type {import("./types.js").Catalogue} */
    this.catalogue = { limits: { nodes: 500, events: 200_000, body_bytes: 1 << 20 }, algorithms: [], stories: [], live: false };
    /** @type {Side[]} */
    this.sides = [];
    this.active = 0;
    this.time = 0;
    this.playing = false;
    this.speed = 1;
    this.skipQuiet = true;
    /** @type {Map<Topic, (() => void)[]>} */
    this.listeners = new Map();
    this.told = 0;
    /** @type {ReturnType<typeof setTimeout>|null} */
    this.tellLater = null;
  }

  /** @param {Topic|Topic[]} topics @param {() => void} listener */
  on(topics, listener) {
    for (const topic of [topics].flat()) {
      this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
    }
  }

  /** @param {Topic} topic */
  emit(topic) {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  }

  get side() {
    return this.sides[this.active];
  }

  get timeline() {
    return this.side?.timeline ?? null;
  }

  get duration() {
    return Math.max(0, ...this.sides.map((side) => side.timeline?.duration ?? 0));
  }

  /** @param {string} name */
  algorithm(name) {
    return this.catalogue.algorithms.find((algorithm) => algorithm.name === name) ?? null;
  }

  /** The story a side tells, if it still is one. @param {Side} side */
  storyOf(side) {
    return this.catalogue.stories.find((story) => story.scenario === side.origin) ?? null;
  }

  /**
   * Runs a scenario. `keep` holds on to the time; `remember` makes it a change that can be undone.
   * @param {Side} side
   * @param {Scenario} scenario
   * @param {{keep?: boolean, remember?: boolean, at?: number, origin?: Scenario|null}} [options]
   */
  async load(side, scenario, options = {}) {
    side.asking?.abort();
    const asking = new AbortController();
    side.asking = asking;
    this.emit("busy");
    try {
      const run = await api.run(scenario, asking.signal);
      if (asking.signal.aborted) return false;
      if (options.remember) {
        side.past.push({ scenario: side.scenario, origin: side.origin });
        side.future = [];
      }
      if (options.origin !== undefined) side.origin = options.origin;
      side.scenario = scenario;
      this.show(side, run, options);
      return true;
    } catch (error) {
      if (asking.signal.aborted) return false;
      toast(error instanceof TypeError ? t().app.offline : String(/** @type {Error} */ (error).message), "error");
      return false;
    } finally {
      if (side.asking === asking) side.asking = null;
      this.emit("busy");
    }
  }

  /**
   * Shows a run, from wherever it came.
   * @param {Side} side
   * @param {import("./types.js").Run} run
   * @param {{keep?: boolean, at?: number, grows?: boolean}} [options]
   */
  show(side, run, options = {}) {
    side.timeline = new Timeline(run);
    if (side.selected >= side.timeline.n) side.selected = -1;
    if (run.dropped > 0) toast(t().app.dropped(run.dropped));
    if (!this.sides.includes(side)) return;
    if (options.at !== undefined) this.time = options.at;
    else if (!options.keep) this.time = 0;
    side.position = side.timeline.positionAt(this.time);
    this.seek(Math.min(this.time, this.duration));
    // A run begins before anything of its first moment has happened.
    if (!options.keep && options.at === undefined) this.#place(this.sides.map((other) => other.timeline?.base ?? 0));
    this.emit(options.grows ? "grow" : "run");
    this.emit("step");
  }

  /**
   * Changes a scenario and runs it again; the playhead stays, or goes to `at`.
   * @param {(scenario: Scenario) => Scenario} change gets a copy of its own
   * @param {number} [at]
   */
  async edit(change, at) {
    const side = this.side;
    if (side.readOnly) {
      toast(side.live ? t().live.readOnly : t().edit.readOnly, "error");
      return false;
    }
    this.pause();
    const scenario = change(structuredClone(side.scenario));
    const left = leaveOutImpossible(scenario);
    const done = await this.load(side, scenario, { keep: true, remember: true, at });
    if (done && left > 0) toast(t().edit.leftOut(left));
    return done;
  }

  /** @param {1|-1} way -1 undoes, 1 does again */
  async undo(way) {
    const side = this.side;
    const [from, to] = way < 0 ? [side.past, side.future] : [side.future, side.past];
    const version = from.pop();
    if (!version) return;
    to.push({ scenario: side.scenario, origin: side.origin });
    // At once, so that a second undo before the run is back goes one further.
    side.scenario = version.scenario;
    side.origin = version.origin;
    await this.load(side, version.scenario, { keep: true });
  }

  /**
   * Puts a scenario in place of what the active side shows.
   * @param {Scenario} scenario
   * @param {Scenario|null} [origin]
   */
  async open(scenario, origin = null) {
    this.pause();
    const side = this.side;
    // What was only shown cannot be run again.
    const remember = side.timeline !== null && !side.readOnly;
    side.readOnly = false;
    side.live = null;
    side.selected = -1;
    return this.load(side, structuredClone(scenario), { remember, origin });
  }

  /** @param {Side[]} sides @param {number} active */
  setSides(sides, active) {
    this.sides = sides;
    this.active = active;
    this.seek(this.time);
    this.emit("sides");
    this.emit("run");
    this.emit("step");
  }

  /** @param {number} active */
  activate(active) {
    if (this.active === active || !this.sides[active]) return;
    this.active = active;
    this.emit("sides");
    this.emit("run");
    this.emit("step");
  }

  /** @param {number} index of a process of the active side; -1 for none */
  select(index) {
    if (!this.side) return;
    this.side.selected = index;
    this.emit("select");
    this.emit("frame");
  }

  /** Goes to a time: everything up to it has happened. @param {number} time */
  seek(time) {
    this.time = Math.max(0, Math.min(time, this.duration));
    this.#place(this.sides.map((side) => side.timeline?.positionAt(this.time) ?? 0));
  }

  /** Goes to a position of the active side. @param {number} position */
  goTo(position) {
    const timeline = this.timeline;
    if (!timeline) return;
    const to = Math.max(timeline.base, Math.min(position, timeline.steps));
    const first = to === timeline.base;
    this.time = timeline.timeOf(to);
    const other = (/** @type {Timeline|null} */ run) => (first ? run?.base : run?.positionAt(this.time)) ?? 0;
    this.#place(this.sides.map((side) => (side === this.side ? to : other(side.timeline))));
  }

  /** One step on or back: on whichever side it is next. @param {1|-1} way */
  step(way) {
    this.pause();
    const [only] = this.sides;
    if (this.sides.length === 1) return this.goTo(only.position + way);
    // Of two runs the next step is the earlier of the two next ones; positions move alone.
    const times = this.sides.map(({ timeline, position }) => {
      const step = way > 0 ? position : position - 1;
      const there = timeline && step < timeline.steps && step >= timeline.base;
      return there ? timeline.stepTime[step] : way > 0 ? Infinity : -Infinity;
    });
    const next = way > 0 ? Math.min(...times) : Math.max(...times);
    if (!Number.isFinite(next)) return;
    const moving = times.indexOf(next);
    const positions = this.sides.map((side, i) => side.position + (i === moving ? way : 0));
    this.time = way > 0 ? next : Math.max(0, ...this.sides.map((side, i) => side.timeline?.timeOf(positions[i]) ?? 0));
    this.#place(positions);
  }

  /** @param {import("./timeline.js").Mark} mark @param {1|-1} way */
  jump(mark, way) {
    this.pause();
    const timeline = this.timeline;
    if (!timeline) return;
    const position = timeline.seekMark(timeline.marks[mark], this.side.position, way);
    if (position === null) toast(t().transport.noMore[mark === "edit" ? "crash" : mark]);
    else this.goTo(position);
  }

  /** @param {number[]} positions */
  #place(positions) {
    let moved = false;
    this.sides.forEach((side, i) => {
      moved ||= side.position !== positions[i];
      side.position = positions[i];
    });
    this.emit("frame");
    if (moved) this.#tell();
  }

  #tell() {
    const now = performance.now();
    const wait = this.told + STEP_INTERVAL_MS - now;
    if (!this.playing || wait <= 0) {
      this.told = now;
      return this.emit("step");
    }
    this.tellLater ??= setTimeout(() => {
      this.tellLater = null;
      this.told = performance.now();
      this.emit("step");
    }, wait);
  }

  play() {
    if (this.playing || this.duration === 0) return;
    if (this.time >= this.duration) this.goTo(0);
    this.playing = true;
    this.emit("play");
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.emit("play");
    this.emit("step");
  }
}
