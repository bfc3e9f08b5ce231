// @ts-check
// Locks and elections: who has them, who waits, and for how long.

import { byId, el, fill, setText } from "../../js/dom.js";
import { openRelease } from "./release.js";
import { lapse, span, t, whoIs } from "./words.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./types.js").Standing} Standing */
/** @typedef {"locks"|"elections"} Kind */

/**
 * One of the two lists.
 * @param {Kind} kind
 * @param {(offset: number) => void} turn Asks for another page.
 */
export function makeQueues(kind, turn) {
  const list = el("ul", { class: "lines" });
  const pager = makePager(kind, turn);
  const host = byId(`${kind}-list`);
  /** @type {Map<string, ReturnType<typeof makeLine>>} */
  let rows = new Map();
  let empty = "";
  return (/** @type {import("./types.js").Lines} */ found, /** @type {boolean} */ searched) => {
    setText(byId(`${kind}-count`), String(found.total));
    if (!found.lines.length) {
      // Made anew only when it says something else: somebody may be about to copy from it.
      const says = (searched ? t().noneFound : kind === "locks" ? t().noLocks : t().noElections) + t().copy;
      if (says !== empty) fill(host, makeEmpty(kind, searched));
      empty = says;
      rows.clear();
      return;
    }
    empty = "";
    const next = new Map();
    for (const line of found.lines) {
      const row = rows.get(line.name) ?? makeLine(kind);
      row.show(line);
      next.set(line.name, row);
    }
    rows = next;
    arrange(list, [...rows.values()].map((row) => row.root));
    pager.show(found);
    if (list.parentElement !== host) fill(host, list, pager.root);
  };
}

/** Puts elements into an order, moving only what is not where it belongs. @param {Element} parent @param {Element[]} wanted */
function arrange(parent, wanted) {
  wanted.forEach((element, index) => {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
  while (parent.children.length > wanted.length) parent.lastElementChild?.remove();
}

/** @param {Kind} kind */
function makeLine(kind) {
  /** @type {Line|null} */
  let shown = null;
  const name = el("bdi", { class: "line-name", dir: "auto" });
  const fence = el("span", { class: "chip fence" });
  const who = el("bdi", { class: "who" });
  const since = el("span", { class: "muted" });
  const bar = makeBar();
  const waits = el("span", { class: "waits" });
  const queue = el("ol", { class: "queue", "data-testid": "queue" });
  const button = el("button", {
    class: "secondary release",
    type: "button",
    "data-testid": "release",
    onclick: () => shown && openRelease(kind, shown),
  });
  const root = el(
    "li",
    { class: `line ${kind}`, "data-testid": "line" },
    el("div", { class: "line-what" }, name, fence),
    el("div", { class: "line-who" }, el("span", { class: "dot", "aria-hidden": "true" }), who, since, bar.root),
    el("div", { class: "line-queue" }, waits, queue),
    button,
  );
  return {
    root,
    /** @param {Line} line */
    show(line) {
      shown = line;
      const { first, waiting, waiting_total: total } = line;
      setText(name, line.name);
      name.title = line.name;
      setText(fence, `${t().fence} ${first.fence}`);
      setText(who, whoIs(first));
      who.title = `${t().lease} ${first.lease}`;
      setText(since, kind === "locks" ? t().held(lapse(first.since)) : t().leads(lapse(first.since)));
      bar.show(first.left_ms, first.ttl_ms);
      setText(waits, total ? t().waits(total) : t().nobody);
      root.classList.toggle("contended", total > 0);
      showQueue(queue, waiting, total);
      setText(button, kind === "locks" ? t().release : t().depose);
      button.setAttribute("aria-label", `${button.textContent}: ${line.name}`);
      button.hidden = !first.id;
    },
  };
}

/** @param {Element} queue @param {Standing[]} waiting @param {number} total */
function showQueue(queue, waiting, total) {
  const texts = waiting.map((one) => [whoIs(one), lapse(one.since)]);
  const more = total - waiting.length;
  const wanted = texts.length + (more > 0 ? 1 : 0);
  while (queue.children.length > wanted) queue.lastElementChild?.remove();
  while (queue.children.length < wanted) queue.append(el("li", {}, el("bdi", {}), el("span", { class: "muted" })));
  texts.forEach(([who, since], index) => {
    const item = queue.children[index];
    setText(item.children[0], who);
    setText(item.children[1], since);
  });
  if (more > 0) {
    setText(queue.children[wanted - 1].children[0], "");
    setText(queue.children[wanted - 1].children[1], t().more(more));
  }
}

/** What is left of a lease. */
export function makeBar() {
  const rest = el("span", { class: "bar-rest" });
  const root = el("span", { class: "bar", role: "img" }, rest);
  return {
    root,
    /** @param {number|null} left @param {number|null} ttl */
    show(left, ttl) {
      root.hidden = left === null || !ttl;
      if (left === null || !ttl) return;
      const part = Math.min(1, left / ttl);
      rest.style.setProperty("width", `${(part * 100).toFixed(1)}%`);
      root.classList.toggle("low", part < 0.25);
      const said = left ? t().left(span(left), span(ttl)) : t().expired;
      root.title = said;
      root.setAttribute("aria-label", said);
    },
  };
}

/** @param {Kind} kind @param {(offset: number) => void} turn */
function makePager(kind, turn) {
  let [offset, size] = [0, 1];
  const go = (/** @type {number} */ by) => turn(Math.max(0, offset + by * size));
  const make = (/** @type {string} */ id, /** @type {number} */ by) =>
    el("button", { class: "secondary", type: "button", "data-testid": `${kind}-${id}`, onclick: () => go(by) });
  const [previous, next] = [make("previous", -1), make("next", 1)];
  const where = el("span", { class: "muted", "data-testid": `${kind}-where` });
  const root = el("div", { class: "pager" }, previous, where, next);
  return {
    root,
    /** @param {import("./types.js").Lines} found */
    show(found) {
      offset = found.offset;
      size = Math.max(size, found.lines.length);
      root.hidden = found.total <= found.lines.length;
      setText(previous, t().previous);
      setText(next, t().next);
      setText(where, t().shown(offset + 1, offset + found.lines.length, found.total));
      previous.disabled = offset === 0;
      next.disabled = offset + found.lines.length >= found.total;
    },
  };
}

/** What to do when there is nothing to see. @param {Kind} kind @param {boolean} searched */
function makeEmpty(kind, searched) {
  if (searched) return el("p", { class: "empty muted" }, t().noneFound);
  const commands =
    kind === "locks"
      ? ["vez lock demo -- sleep 30", "etcdctl lock demo"]
      : ["vez elect demo -- sleep 30", "etcdctl elect demo me"];
  return el(
    "div",
    { class: "empty", "data-testid": `${kind}-empty` },
    el("p", { class: "muted" }, kind === "locks" ? t().noLocks : t().noElections),
    ...commands.map((command) => el("code", { class: "command" }, command)),
  );
}
