// @ts-check
// Which links are down at a position.

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} position
 */
export function wiresAt(timeline, position) {
  /** @type {Set<string>} */
  const cut = new Set();
  /** @type {number[][]} */
  let groups = [];
  for (const change of timeline.processes.wiresAt(position)) {
    if (change.groups) groups = withRest(change.groups, timeline.n);
    if (change.cut) {
      const [a, b, both] = change.cut;
      cut.add(`${a}>${b}`);
      if (both) cut.add(`${b}>${a}`);
    }
    if (change.heal === "all") {
      cut.clear();
      groups = [];
    } else if (change.heal) {
      const [a, b, both] = change.heal;
      cut.delete(`${a}>${b}`);
      if (both) cut.delete(`${b}>${a}`);
    }
  }
  const side = new Int16Array(timeline.n);
  groups.forEach((group, i) => group.forEach((index) => (side[index] = i)));
  /** @param {number} a @param {number} b */
  const isDown = (a, b) => side[a] !== side[b] || cut.has(`${a}>${b}`);
  return { groups, isDown, any: groups.length > 1 || cut.size > 0 };
}

/** Those in no group are a side of their own. @param {number[][]} groups @param {number} n */
function withRest(groups, n) {
  const named = new Set(groups.flat());
  const rest = Array.from({ length: n }, (_, i) => i).filter((index) => !named.has(index));
  return rest.length ? [...groups, rest] : groups;
}
