// @ts-check
// Who is down or paused as a scenario goes on. A change of the past can make a later event
// impossible: the dead do not ask. Such events are left out.

import { millis } from "./i18n.js";

/**
 * Leaves out what cannot happen any more.
 * @param {import("./types.js").Scenario} scenario which it may alter
 * @returns {number} how many events were left out
 */
export function leaveOutImpossible(scenario) {
  const health = new Health();
  let left = 0;
  const moments = [...(scenario.at ?? [])].sort((a, b) => millis(a.time) - millis(b.time));
  for (const entry of moments) {
    for (const [word, value] of Object.entries(entry)) {
      if (word === "time" || !Array.isArray(value)) continue;
      const kept = value.filter((item) => health.allows(word, item, millis(entry.time)));
      left += value.length - kept.length;
      if (kept.length) entry[word] = kept;
      else delete entry[word];
    }
  }
  if (left > 0) scenario.at = scenario.at?.filter((entry) => Object.keys(entry).length > 1);
  return left;
}

class Health {
  constructor() {
    /** @type {Set<number>} */
    this.down = new Set();
    /** Up to when each is paused. @type {Map<number, number>} */
    this.paused = new Map();
    /** Will crash in its next step, whenever that is. @type {Set<number>} */
    this.doomed = new Set();
  }

  /**
   * Whether this can happen now; if so, it does.
   * @param {string} word
   * @param {any} item
   * @param {number} time
   */
  allows(word, item, time) {
    const node = typeof item === "object" ? item.node : item;
    const isDown = this.down.has(node) && !this.doomed.has(node);
    switch (word) {
      case "crash":
        if (isDown) return false;
        this.down.add(node);
        this.paused.delete(node);
        if (item.unsent) this.doomed.add(node);
        return true;
      case "restart":
        this.down.delete(node);
        this.doomed.delete(node);
        this.paused.delete(node);
        return true;
      case "pause":
        if (isDown || time < (this.paused.get(node) ?? 0)) return false;
        this.paused.set(node, time + millis(item.for));
        return true;
      case "acquire":
      case "withdraw":
      case "start":
      case "suspect":
        return !isDown;
      default:
        return true;
    }
  }
}
