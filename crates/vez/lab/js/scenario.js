// @ts-check
// Changes to a scenario. All take a scenario they may alter and give it back.

import { millis, moment, number, span, t } from "./i18n.js";

/** @typedef {import("./types.js").Scenario} Scenario */

/** The smallest step of time, in milliseconds. */
const TICK = 0.001;

/**
 * When a change made now happens. What comes from outside comes first in its moment: once
 * something of the moment has been seen, the change comes right after it.
 * @param {import("./state.js").Lab} lab
 */
export function editTime(lab) {
  const time = Math.max(0, Math.ceil(lab.time / TICK - 1e-6)) * TICK;
  const { timeline, side } = lab;
  if (!timeline || side.position <= timeline.base) return round(time);
  const seen = timeline.timeOf(side.position) >= time;
  return round(seen ? time + TICK : time);
}

/** @param {number} ms */
function round(ms) {
  // Never a negative zero.
  return Math.round(ms * 1000) / 1000 + 0;
}

/**
 * Lets something happen at a moment, after what already happens then.
 * @param {Scenario} scenario
 * @param {number} time
 * @param {string} word as in `crash`
 * @param {any} value as the scenario file has it
 */
export function addAt(scenario, time, word, value) {
  const moments = scenario.at ?? [];
  let place = moments.length;
  while (place > 0 && millis(moments[place - 1].time) > time) place--;
  moments.splice(place, 0, { time: span(time), [word]: value });
  scenario.at = moments;
  delete scenario.expect;
  return scenario;
}

/**
 * Fixes when a message arrives; `null` leaves it to the network.
 * @param {Scenario} scenario
 * @param {number} number
 * @param {number[]|null} delays
 */
export function setMessage(scenario, number, delays) {
  const others = (scenario.message ?? []).filter((entry) => entry.number !== number);
  if (delays) others.push({ number, arrives: delays.map(span) });
  others.sort((a, b) => a.number - b.number);
  if (others.length) scenario.message = others;
  else delete scenario.message;
  delete scenario.expect;
  return scenario;
}

/**
 * Rules for a link, both ways; `null` leaves it to the network.
 * @param {Scenario} scenario
 * @param {number} a
 * @param {number} b
 * @param {{delay?: string, loss?: number}|null} rules
 */
export function setLink(scenario, a, b, rules) {
  /** @param {{from: number, to: number}} link */
  const same = (link) => (link.from === a && link.to === b) || (link.from === b && link.to === a);
  const old = (scenario.link ?? []).filter(same);
  const links = (scenario.link ?? []).filter((link) => !same(link));
  if (rules) {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ]) {
      links.push({ ...old.find((link) => link.from === from), from, to, ...rules });
    }
  }
  if (links.length) scenario.link = links;
  else delete scenario.link;
  delete scenario.expect;
  return scenario;
}

/**
 * A first scenario of an algorithm.
 * @param {import("./types.js").Algorithm} algorithm
 * @param {number} [nodes]
 * @returns {Scenario}
 */
export function firstScenario(algorithm, nodes = 5) {
  const moment =
    algorithm.problem === "mutex"
      ? { time: "0ms", acquire: [{ node: "all", hold: "2ms" }] }
      : { time: "0ms", start: algorithm.layout === "complete" ? [1] : "all" };
  return { algorithm: algorithm.name, nodes, seed: 0, at: [moment] };
}

/**
 * The same world, another algorithm: who takes part and what befalls them stays, what only the
 * old algorithm understood goes.
 * @param {Scenario} scenario
 * @param {import("./types.js").Algorithm} from
 * @param {import("./types.js").Algorithm} to
 */
export function adapt(scenario, from, to) {
  scenario.algorithm = to.name;
  for (const key of /** @type {const} */ (["config", "message", "timer", "choices", "expect", "name", "title", "look"]))
    delete scenario[key];
  if (to.layout !== from.layout) {
    delete scenario.topology;
    delete scenario.edges;
  }
  if (to.problem !== from.problem) scenario.at = firstScenario(to).at;
  return scenario;
}

/** How many take part. @param {Scenario} scenario */
export function sizeOf(scenario) {
  return scenario.ids?.length ?? scenario.nodes ?? 5;
}

/**
 * @typedef {object} Happening
 * @property {number} time in milliseconds; -1 for what has no moment
 * @property {string} text
 * @property {(scenario: Scenario) => Scenario} remove
 */

/** Everything a scenario says will happen, in words. @param {Scenario} scenario @returns {Happening[]} */
export function happenings(scenario) {
  /** @type {Happening[]} */
  const list = [];
  (scenario.at ?? []).forEach((entry, index) => {
    for (const [word, value] of Object.entries(entry)) {
      if (word === "time") continue;
      list.push({
        time: millis(entry.time),
        text: tellHappening(word, value),
        remove: (other) => removeAt(other, index, word),
      });
    }
  });
  for (const { number: which, arrives } of scenario.message ?? []) {
    const fate = arrives.length ? t().edit.arrives(arrives.join(" + ")) : t().edit.dropped;
    list.push({
      time: -1,
      text: `${t().edit.messageNumber(which)}: ${fate}`,
      remove: (other) => setMessage(other, which, null),
    });
  }
  for (const link of scenario.link ?? []) {
    const rules = Object.entries(link)
      .filter(([key]) => key !== "from" && key !== "to")
      .map(([key, value]) => `${key} ${value}`);
    list.push({
      time: -1,
      text: t().edit.linkRule(`P${link.from}`, `P${link.to}`, rules.join(", ")),
      remove: (other) => ({
        ...other,
        link: other.link?.filter((entry) => entry.from !== link.from || entry.to !== link.to),
      }),
    });
  }
  for (const timer of scenario.timer ?? []) {
    list.push({
      time: -1,
      text: t().edit.timer(timer.number, timer.after),
      remove: (other) => ({ ...other, timer: other.timer?.filter((entry) => entry.number !== timer.number) }),
    });
  }
  if (scenario.choices?.length) {
    list.push({
      time: -1,
      text: t().edit.choices(scenario.choices.join(", ")),
      remove: ({ choices: _, ...other }) => other,
    });
  }
  return list;
}

/** @param {Scenario} scenario @param {number} index @param {string} word */
function removeAt(scenario, index, word) {
  const entry = scenario.at?.[index];
  if (!entry) return scenario;
  delete entry[word];
  if (Object.keys(entry).length === 1) scenario.at?.splice(index, 1);
  delete scenario.expect;
  return scenario;
}

/** @param {string} word @param {any} value */
function tellHappening(word, value) {
  const words = t().words;
  const edit = t().edit;
  const name = (/** @type {any} */ who) => (who === "all" ? edit.all : `P${typeof who === "object" ? who.node : who}`);
  const each = (/** @type {(item: any) => string} */ tell) =>
    [value]
      .flat()
      .map((item) => tell(item))
      .join(", ");
  const link = (/** @type {any} */ item) =>
    typeof item === "string" ? item.replace(/(\d+)/g, "P$1") : `P${item[0]}–P${item[1]}`;
  switch (word) {
    case "crash":
      return each((item) => (item.unsent ? `${name(item)}: ${edit.crashUnsent}` : words.crash(name(item))));
    case "restart":
      return each((item) => (item.amnesia ? words.restartForgot : words.restart)(name(item)));
    case "pause":
      return each((item) => `${name(item)}: ${edit.pause(moment(millis(item.for)))}`);
    case "acquire":
      return each((item) => words.Acquire(name(item.node ?? item)) + (item.hold ? ` (${item.hold})` : ""));
    case "withdraw":
      return each((item) => words.Withdraw(name(item)));
    case "start":
      return each((item) => words.Start(name(item)));
    case "suspect":
      return each((item) => words.Suspect(name(item), `P${item.of}`));
    case "partition":
      return words.partition(
        value.map((/** @type {number[]} */ group) => group.map((uid) => `P${uid}`).join(", ")).join(" | "),
      );
    case "cut":
      return value.map((/** @type {any} */ item) => `${edit.cut} ${link(item)}`).join(", ");
    case "heal":
      return value === true
        ? words.healAll
        : value.map((/** @type {any} */ item) => `${edit.heal} ${link(item)}`).join(", ");
    default:
      return `${word} ${JSON.stringify(value)}`;
  }
}

/** A share as people write it. @param {number} share */
export function percent(share) {
  return `${number(share * 100)} %`;
}
