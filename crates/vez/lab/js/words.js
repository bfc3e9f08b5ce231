// @ts-check
// A step of the run in a sentence: what set it off, and what came of it.

import { moment, sayDetail, t } from "./i18n.js";

/**
 * @typedef {object} Told
 * @property {string} head what happened
 * @property {string} effects what came of it; empty if nothing need be said
 * @property {string} detail what changed inside, for those who look closer
 * @property {string[]} broken the details of promises broken here
 */

/** At most this many names are listed. */
const NAMES_MAX = 4;

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} step
 * @returns {Told}
 */
export function tellStep(timeline, step) {
  const words = t().words;
  const events = timeline.eventsOf(step);
  const cause = events[0];
  const broken = events.filter((event) => event.event === "violation").map((event) => sayDetail(event.detail ?? ""));
  const head = headOf(timeline, step, cause);
  const boots = timeline.cause(step) === "boot" && timeline.stepNode[step] < 0;
  const parts = boots ? tellCrowd(events) : tellEffects(timeline, cause, events);
  const detail = boots ? "" : tellDetail(events);
  const quiet = parts.length === 0 && (cause.event === "receive" || cause.event === "timer");
  if (quiet) parts.push(events.some((event) => event.event === "state") ? words.notes : words.nothing);
  return { head, effects: parts.join(", "), detail, broken };
}

/** As one sentence. @param {Told} told */
export function sentence(told) {
  return told.effects ? `${told.head}: ${told.effects}` : told.head;
}

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} step
 * @param {import("./types.js").TraceEvent} cause
 */
function headOf(timeline, step, cause) {
  const words = t().words;
  const name = (/** @type {number|undefined} */ uid) => timeline.name(uid ?? -1);
  const p = name(cause.node);
  switch (timeline.cause(step)) {
    case "boot":
      return timeline.stepNode[step] < 0 ? words.allBoot(timeline.n) : words.boots(p);
    case "request":
      return tellRequest(cause, p, name);
    case "receive":
      return words.hears(p, cause.text ?? cause.kind ?? "", name(cause.from));
    case "timer":
      return words.timer(p, cause.text ?? "");
    case "crash":
      return words.crash(p);
    case "restart":
      return cause.forgot ? words.restartForgot(p) : words.restart(p);
    case "pause":
      return words.pause(p, moment(cause.until_ms ?? 0));
    case "resume":
      return words.resume(p);
    case "partition":
      return words.partition((cause.groups ?? []).map((group) => namesOf(group.map(name), timeline.n)).join(" | "));
    case "cut":
      return (cause.both ? words.cut : words.cutOne)(name(cause.from), name(cause.to));
    case "heal":
      return cause.link ? words.heal(name(cause.link[0]), name(cause.link[1])) : words.healAll;
    case "lose":
    case "repeat":
      return tellFate(timeline, cause);
    case "violation":
      return words.broken(t().promises.names[cause.promise ?? ""] ?? cause.promise ?? "");
    default:
      return cause.text ?? cause.event;
  }
}

/** @param {import("./types.js").TraceEvent} cause @param {string} p @param {(uid: number|undefined) => string} name */
function tellRequest(cause, p, name) {
  const words = t().words;
  switch (cause.kind) {
    case "Acquire":
      return words.Acquire(p);
    case "Release":
      return words.Release(p);
    case "Withdraw":
      return words.Withdraw(p);
    case "Start":
      return words.Start(p);
    case "Suspect":
      return words.Suspect(p, name(cause.request?.Suspect));
    default:
      return words.request(p, cause.text ?? "");
  }
}

/** @param {import("./timeline.js").Timeline} timeline @param {import("./types.js").TraceEvent} cause */
function tellFate(timeline, cause) {
  const words = t().words;
  const row = timeline.messageOf(/** @type {number} */ (cause.id));
  if (!row) return cause.event;
  const [kind, from, to] = [row.text, timeline.names[row.from], timeline.names[row.to]];
  if (cause.event === "repeat") return words.repeat(kind, from, to);
  return (cause.cause === "receiver-down" ? words.lostDown : words.lost)(kind, from, to);
}

/** What many did at once, by count. @param {import("./types.js").TraceEvent[]} events */
function tellCrowd(events) {
  const words = t().words;
  /** @type {Map<string, number>} */
  const sends = new Map();
  for (const event of events) {
    if (event.event === "send") sends.set(event.kind ?? "", (sends.get(event.kind ?? "") ?? 0) + 1);
  }
  return [...sends].map(([kind, count]) => `${count} × ${kind}`).concat(tellLosses(events, words));
}

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {import("./types.js").TraceEvent} cause
 * @param {import("./types.js").TraceEvent[]} events
 */
function tellEffects(timeline, cause, events) {
  const words = t().words;
  /** @type {string[]} */
  const parts = [];
  const leads = (/** @type {import("./types.js").TraceEvent} */ event) =>
    event.event === "notice" && event.notice?.Leader?.id === event.node;
  // Whoever wins says so first, and then tells the others.
  for (const event of events) if (leads(event)) parts.push(tellNotice(timeline, event));
  parts.push(...tellSends(timeline, cause, events));
  for (const event of events) {
    if (event.event === "notice" && !leads(event)) parts.push(tellNotice(timeline, event));
    if (event.event === "unexpected") parts.push(words.unexpected(event.text ?? ""));
    if (event.event === "crash" && event !== cause) parts.push(words.crash("").trim());
  }
  return parts.concat(tellLosses(events, words));
}

/** @param {import("./types.js").TraceEvent[]} events @param {import("./i18n.js").Dictionary["words"]} words */
function tellLosses(events, words) {
  const lost = events.filter((event, i) => i > 0 && event.event === "lose").length;
  const repeated = events.filter((event, i) => i > 0 && event.event === "repeat").length;
  return [...(lost ? [words.lostAtOnce(lost)] : []), ...(repeated ? [words.repeatedAtOnce(repeated)] : [])];
}

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {import("./types.js").TraceEvent} cause
 * @param {import("./types.js").TraceEvent[]} events
 */
function tellSends(timeline, cause, events) {
  const words = t().words;
  /** @type {Map<string, {kind: string, text: string, to: number[]}>} */
  const groups = new Map();
  for (const event of events) {
    if (event.event !== "send") continue;
    const key = `${event.kind} ${event.to === cause.from ? "back" : ""}`;
    const group = groups.get(key) ?? { kind: event.kind ?? "", text: event.text ?? "", to: [] };
    // Several of a kind with other contents are told by their kind.
    if (group.to.length && group.text !== event.text) group.text = group.kind;
    group.to.push(event.to ?? 0);
    groups.set(key, group);
  }
  const heard = cause.event === "receive" ? cause : null;
  const answered = [...groups.values()].some((group) => heard && group.to.every((to) => to === heard.from));
  return [...groups.values()].map((group) => {
    const to = namesOf(
      group.to.map((uid) => timeline.name(uid)),
      timeline.n,
    );
    if (heard && group.to.every((uid) => uid === heard.from)) return words.answers(group.text);
    if (heard && group.kind === heard.kind && answered) return words.sendsOwn(group.text, to);
    if (heard && group.text === heard.text) return words.passes(to);
    return words.sends(group.text, to);
  });
}

/** @param {import("./timeline.js").Timeline} timeline @param {import("./types.js").TraceEvent} event */
function tellNotice(timeline, event) {
  const words = t().words;
  const inner = event.notice?.[event.kind ?? ""] ?? {};
  const q = timeline.name(inner.id ?? -1);
  switch (event.kind) {
    case "Entered":
      return inner.fence == null ? words.enters : words.entersFence(String(inner.fence));
    case "Expelled":
      return words.expelled;
    case "Leader":
      if (inner.id === event.node) return inner.term ? words.leadsTerm(inner.term) : words.leads;
      return inner.term ? words.followsTerm(q, inner.term) : words.follows(q);
    case "NoLeader":
      return words.noLeader;
    case "Suspects":
      return words.suspects(q);
    case "Trusts":
      return words.trusts(q);
    default:
      return words.told(event.text ?? "");
  }
}

/** @param {import("./types.js").TraceEvent[]} events */
function tellDetail(events) {
  /** @type {string[]} */
  const parts = [];
  for (const event of events) {
    if (event.event === "state") parts.push(...(event.changed ?? []));
    if (event.event === "arm") parts.push(t().words.waits(event.text ?? "", moment(event.until_ms ?? 0)));
  }
  return parts.join(" · ");
}

/** @param {string[]} names @param {number} n */
export function namesOf(names, n) {
  if (names.length <= NAMES_MAX) return t().list(names);
  return names.length === n - 1 ? t().words.allOthers : t().words.others(names.length);
}
