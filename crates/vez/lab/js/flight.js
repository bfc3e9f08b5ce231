// @ts-check
// Which messages are under way at a position of the run. Going on is incremental; going anywhere
// else starts from the nearest checkpoint, so no seek costs more than a bounded stretch of steps.

import { countUpTo } from "./sorted.js";

/** A checkpoint is made after this many departures and arrivals, or more if more are under way. */
const STRETCH = 512;

export class Flight {
  /**
   * @param {number} steps
   * @param {Int32Array} departs the step at which each message left, ascending
   * @param {Int32Array} ends the step at which each was heard or lost
   */
  constructor(steps, departs, ends) {
    this.departs = departs;
    this.steps = steps;
    // Messages in the order of their ends, to walk both lists side by side.
    this.byEnd = endOrder(steps, ends);
    this.endOf = ends;
    /** @type {number[]} */
    this.list = [];
    this.place = new Int32Array(departs.length).fill(-1);
    this.position = 0;
    this.nextDeparture = 0;
    this.nextEnd = 0;
    /** @type {{position: number, departure: number, end: number, list: Uint32Array}[]} */
    this.checkpoints = [{ position: 0, departure: 0, end: 0, list: new Uint32Array() }];
    this.#index();
    /** @type {number[]} */
    this.positions = this.checkpoints.map((checkpoint) => checkpoint.position);
  }

  /**
   * The messages under way when `position` steps have happened. The array is reused.
   * @param {number} position
   * @returns {readonly number[]}
   */
  at(position) {
    const near = countUpTo(this.positions, position) - 1;
    const checkpoint = this.checkpoints[Math.max(0, near)];
    if (position < this.position || checkpoint.position > this.position) this.#restore(checkpoint);
    this.#walk(position);
    return this.list;
  }

  /** @param {number} position */
  #walk(position) {
    const { departs, endOf, byEnd } = this;
    while (this.nextDeparture < departs.length && departs[this.nextDeparture] < position) {
      const message = this.nextDeparture++;
      // It may have been lost in the step that sent it.
      if (endOf[message] >= position) this.#add(message);
    }
    while (this.nextEnd < byEnd.length && endOf[byEnd[this.nextEnd]] < position) {
      this.#remove(byEnd[this.nextEnd++]);
    }
    this.position = position;
  }

  /** @param {number} message */
  #add(message) {
    if (this.place[message] >= 0) return;
    this.place[message] = this.list.length;
    this.list.push(message);
  }

  /** @param {number} message */
  #remove(message) {
    const place = this.place[message];
    if (place < 0) return;
    const last = /** @type {number} */ (this.list.pop());
    if (last !== message) {
      this.list[place] = last;
      this.place[last] = place;
    }
    this.place[message] = -1;
  }

  /** @param {{position: number, departure: number, end: number, list: Uint32Array}} checkpoint */
  #restore(checkpoint) {
    for (const message of this.list) this.place[message] = -1;
    this.list.length = 0;
    for (const message of checkpoint.list) this.#add(message);
    this.position = checkpoint.position;
    this.nextDeparture = checkpoint.departure;
    this.nextEnd = checkpoint.end;
  }

  #index() {
    let done = 0;
    for (let position = 1; position <= this.steps; position++) {
      this.#walk(position);
      const moved = this.nextDeparture + this.nextEnd;
      // No oftener than their size, so that all checkpoints together stay as small as the trace.
      if (moved - done > Math.max(STRETCH, this.list.length)) {
        done = moved;
        const list = Uint32Array.from(this.list);
        this.checkpoints.push({ position, departure: this.nextDeparture, end: this.nextEnd, list });
      }
    }
    this.#restore(this.checkpoints[0]);
  }
}

/**
 * Messages sorted by the step that ended them, by counting.
 * @param {number} steps
 * @param {Int32Array} ends
 */
function endOrder(steps, ends) {
  const start = new Int32Array(steps + 2);
  for (const end of ends) start[end + 1]++;
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  const order = new Uint32Array(ends.length);
  for (let message = 0; message < ends.length; message++) order[start[ends[message]]++] = message;
  return order;
}
