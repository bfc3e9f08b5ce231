// @ts-check
// What can be done to processes, links and messages: the menus of the stage.

import { moment, span, t } from "./i18n.js";
import { liveLinkMenu, liveProcessMenu } from "./live.js";
import { openMenu } from "./menu.js";
import { HEARD } from "./timeline.js";
import { addAt, editTime, percent, setLink, setMessage } from "./scenario.js";
import { namesOf } from "./words.js";

/** @typedef {import("./state.js").Lab} Lab */
/** @typedef {{x: number, y: number}} Place */

/** Times offered in menus, in typical message delays. */
const PAUSE = 10;
const HOLD = 5;
const SLOW = 5;
const LOSS = 0.5;

/** A round number of so many message delays. @param {Lab} lab @param {number} count */
export function delays(lab, count) {
  const exact = (lab.timeline?.messages.delay ?? 1) * count;
  const unit = 10 ** Math.floor(Math.log10(exact));
  return Math.max(0.001, Math.round(exact / unit) * unit);
}

/** Lets something happen now. @param {Lab} lab @param {string} word @param {any} value */
export function happenNow(lab, word, value) {
  // Of real processes only the network is parted this way.
  if (lab.side.live && word === "partition")
    return lab.side.live.order(`partition ${value.map((/** @type {number[]} */ group) => group.join(",")).join("/")}`);
  const at = editTime(lab);
  return lab.edit((scenario) => addAt(scenario, at, word, value), at);
}

/** @param {Lab} lab @param {number} index @param {Place} place */
export function processMenu(lab, index, place) {
  const timeline = lab.timeline;
  if (!timeline) return;
  if (lab.side.live) return liveProcessMenu(lab.side.live, index, place);
  const words = t().edit;
  const uid = timeline.uids[index];
  const name = timeline.names[index];
  const now = timeline.processes.condition(index, lab.side.position);
  const mutex = timeline.run.result.problem === "mutex";
  const [pause, hold] = [delays(lab, PAUSE), delays(lab, 2)];
  /** @type {import("./menu.js").Item[]} */
  const asks = mutex
    ? [
        {
          id: "acquire",
          label: words.acquire(moment(hold)),
          disabled: !now.up,
          run: () => happenNow(lab, "acquire", [{ node: uid, hold: span(hold) }]),
        },
        {
          id: "withdraw",
          label: words.withdraw,
          disabled: now.user !== "waiting",
          run: () => happenNow(lab, "withdraw", [uid]),
        },
      ]
    : [
        { id: "start", label: words.start, disabled: !now.up, run: () => happenNow(lab, "start", [uid]) },
        {
          id: "suspect",
          label: words.suspect,
          disabled: !now.up || timeline.n < 2,
          run: () => suspectMenu(lab, index, place),
        },
      ];
  openMenu(place, words.menuProcess(name, moment(editTime(lab))), [
    { id: "crash", label: words.crash, danger: true, disabled: !now.up, run: () => happenNow(lab, "crash", [uid]) },
    {
      id: "crash-unsent",
      label: words.crashUnsent,
      danger: true,
      disabled: !now.up,
      run: () => happenNow(lab, "crash", [{ node: uid, unsent: true }]),
    },
    { id: "restart", label: words.restart, run: () => happenNow(lab, "restart", [uid]) },
    {
      id: "restart-amnesia",
      label: words.restartAmnesia,
      run: () => happenNow(lab, "restart", [{ node: uid, amnesia: true }]),
    },
    {
      id: "pause",
      label: words.pause(moment(pause)),
      disabled: !now.up,
      run: () => happenNow(lab, "pause", [{ node: uid, for: span(pause) }]),
    },
    "line",
    ...asks,
    "line",
    {
      id: "isolate",
      label: words.isolate,
      danger: true,
      disabled: timeline.n < 2,
      run: () => happenNow(lab, "partition", [[uid]]),
    },
    { id: "heal-all", label: words.healAll, run: () => happenNow(lab, "heal", true) },
    {
      id: "watch",
      label: words.watch,
      run: () => {
        lab.select(index);
        lab.emit("watch");
      },
    },
  ]);
}

/** @param {Lab} lab @param {number} index @param {Place} place */
function suspectMenu(lab, index, place) {
  const timeline = lab.timeline;
  if (!timeline) return;
  const node = timeline.uids[index];
  const others = timeline.uids.filter((uid) => uid !== node);
  openMenu(
    place,
    t().edit.suspectWhom(timeline.names[index]),
    others.map((of) => ({
      id: `suspect-${of}`,
      label: timeline.name(of),
      run: () => happenNow(lab, "suspect", [{ node, of }]),
    })),
  );
}

/** @param {Lab} lab @param {number} a @param {number} b @param {Place} place */
export function linkMenu(lab, a, b, place) {
  const timeline = lab.timeline;
  if (!timeline) return;
  if (lab.side.live) return liveLinkMenu(lab.side.live, a, b, place);
  const words = t().edit;
  const [one, other] = [timeline.uids[a], timeline.uids[b]];
  const [oneName, otherName] = [timeline.names[a], timeline.names[b]];
  const slow = delays(lab, SLOW);
  openMenu(place, words.menuLink(oneName, otherName, moment(editTime(lab))), [
    { id: "cut", label: words.cut, danger: true, run: () => happenNow(lab, "cut", [[one, other]]) },
    {
      id: "cut-there",
      label: words.cutOne(oneName, otherName),
      danger: true,
      run: () => happenNow(lab, "cut", [`${one}>${other}`]),
    },
    {
      id: "cut-back",
      label: words.cutOne(otherName, oneName),
      danger: true,
      run: () => happenNow(lab, "cut", [`${other}>${one}`]),
    },
    { id: "heal", label: words.heal, run: () => happenNow(lab, "heal", [[one, other]]) },
    "line",
    {
      id: "delay",
      label: words.delay(moment(slow)),
      run: () => lab.edit((scenario) => setLink(scenario, one, other, { delay: span(slow) })),
    },
    {
      id: "loss",
      label: words.loss(percent(LOSS)),
      run: () => lab.edit((scenario) => setLink(scenario, one, other, { loss: LOSS })),
    },
    { id: "fast", label: words.fast, run: () => lab.edit((scenario) => setLink(scenario, one, other, null)) },
  ]);
}

/** What can be done to a message. @param {Lab} lab @param {number} message */
export function messageActions(lab, message) {
  const timeline = /** @type {import("./timeline.js").Timeline} */ (lab.timeline);
  const { number, sent, arrives, fate, delay } = timeline.messages;
  const which = number[message];
  const usual = fate[message] === HEARD ? arrives[message] - sent[message] : delay;
  const passed = Math.max(0, lab.time - sent[message]);
  const hold = delays(lab, HOLD);
  const set = (/** @type {number[]|null} */ arrives) => lab.edit((scenario) => setMessage(scenario, which, arrives));
  return {
    /** A copy has no number of its own. */
    possible: which > 0,
    hold,
    drop: () => set([]),
    duplicate: () => set([usual, usual + delay]),
    holdIt: () => set([Math.max(usual, passed) + hold]),
    normal: () => set(null),
  };
}

/** @param {Lab} lab @param {number} message @param {Place} place */
export function messageMenu(lab, message, place) {
  const timeline = lab.timeline;
  if (!timeline) return;
  const words = t().edit;
  const actions = messageActions(lab, message);
  const { from, to, event } = timeline.messages;
  const text = timeline.events[event[message]].text ?? "";
  openMenu(place, words.menuMessage(text, timeline.names[from[message]], timeline.names[to[message]]), [
    { id: "drop", label: words.drop, danger: true, disabled: !actions.possible, run: actions.drop },
    { id: "duplicate", label: words.duplicate, disabled: !actions.possible, run: actions.duplicate },
    { id: "hold", label: words.hold(moment(actions.hold)), disabled: !actions.possible, run: actions.holdIt },
    { id: "normal", label: words.normal, disabled: !actions.possible, run: actions.normal },
  ]);
}

/** @param {Lab} lab @param {number[]} inside indices on one side of what was drawn @param {Place} place */
export function partitionMenu(lab, inside, place) {
  const timeline = lab.timeline;
  if (!timeline) return;
  const set = new Set(inside);
  const groups = [inside, timeline.uids.map((_, i) => i).filter((i) => !set.has(i))];
  if (groups.some((group) => group.length === 0)) return;
  const names = groups.map((group) =>
    namesOf(
      group.map((i) => timeline.names[i]),
      timeline.n,
    ),
  );
  openMenu(place, t().edit.menuPartition(names.join(" | ")), [
    {
      id: "partition",
      label: t().edit.doPartition,
      danger: true,
      run: () =>
        happenNow(
          lab,
          "partition",
          groups.map((group) => group.map((i) => timeline.uids[i])),
        ),
    },
    { id: "cancel", label: t().app.cancel, run: () => {} },
  ]);
}
