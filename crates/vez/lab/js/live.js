// @ts-check
// A cluster of real processes, followed while it runs: what has happened is fetched bit by bit,
// and the menus act on the processes themselves.

import * as api from "./api.js";
import { byId, toast } from "./dom.js";
import { moment, t } from "./i18n.js";
import { openMenu } from "./menu.js";
import { Side } from "./state.js";

/** @typedef {import("./state.js").Lab} Lab */
/** @typedef {import("./types.js").Stretch} Stretch */

/** How often to ask. */
const PACE_MS = 300;
/** More events than this are fetched anew: the server thins out what is old. */
const EVENTS_MAX = 12_000;
/** What is offered in menus. */
const HOLD = "200ms";
const SLOW = "100ms";
const LOSS = 0.3;

export class Live {
  /** @param {Lab} lab */
  constructor(lab) {
    this.lab = lab;
    this.button = /** @type {HTMLButtonElement} */ (byId("follow"));
    /** @type {import("./types.js").TraceEvent[]} */
    this.events = [];
    this.next = 0;
    /** @type {Stretch|null} */
    this.last = null;
    /** @type {Side|null} */
    this.side = null;
    this.following = false;
    /** Where the page was put; elsewhere, somebody has moved it. */
    this.time = 0;
    this.over = false;
    this.button.addEventListener("click", () => (this.following ? this.stop() : this.follow()));
    lab.on(["sides", "language"], () => this.#mark());
  }

  /** Begins to watch; the first look shows it. */
  async start() {
    this.button.hidden = false;
    this.following = true;
    await this.#look();
  }

  follow() {
    this.following = true;
    this.time = this.lab.time;
    this.lab.pause();
    this.#show();
  }

  stop() {
    this.following = false;
    this.#mark();
  }

  async #look() {
    let more = false;
    try {
      const stretch = await api.live(this.next);
      this.events.push(...stretch.events);
      this.next = stretch.next;
      more = stretch.more;
      if (stretch.stuck && stretch.stuck !== this.last?.stuck) toast(stretch.stuck, "error");
      this.last = stretch;
      this.#mark();
      if (!more && this.following) this.#show();
      if (!more && this.events.length > EVENTS_MAX) [this.events, this.next] = [[], 0];
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.over = true;
      this.stop();
      toast(t().live.over, "error");
      return;
    }
    setTimeout(() => void this.#look(), more ? 0 : PACE_MS);
  }

  #show() {
    const { lab, last } = this;
    if (!last) return;
    const isShown = this.#isShown();
    // Whoever plays, steps or opens something else is not to be disturbed.
    if (isShown && this.following && (lab.playing || lab.time !== this.time)) this.following = false;
    if (!this.following) return this.#mark();
    if (!isShown) {
      // The first look, or somebody wants to see it again.
      this.side = new Side({ ...last.scenario, title: TITLE, look: LOOK });
      this.side.readOnly = true;
      this.side.live = this;
    }
    const side = /** @type {Side} */ (this.side);
    const events = this.events;
    /** @type {import("./types.js").Run} */
    const run = {
      scenario: side.scenario,
      events,
      dropped: 0,
      topology: last.topology,
      result: {
        algorithm: last.scenario.algorithm,
        problem: last.problem,
        outcome: "",
        time_ms: Math.max(last.now_ms, events.at(-1)?.t_ms ?? 0),
        messages: { total: 0, by_kind: {}, lost: 0 },
        promises: last.promises,
      },
    };
    if (!isShown) {
      lab.pause();
      lab.setSides([side], 0);
    }
    lab.show(side, run, { at: Infinity, grows: isShown });
    this.time = lab.time;
    this.#mark();
  }

  /** Whether the page shows the cluster, and not something that was opened in its place. */
  #isShown() {
    return this.side !== null && this.lab.side === this.side && this.side.live === this;
  }

  #mark() {
    if (this.side !== null && !this.#isShown()) this.following = false;
    this.button.setAttribute("aria-pressed", String(this.following));
    this.button.disabled = this.over;
    this.button.title = this.following ? t().live.following : t().live.behind;
  }

  /** Has something done to the processes. @param {string} line */
  async order(line) {
    try {
      await api.sayLive(line);
    } catch (error) {
      toast(error instanceof TypeError ? t().live.over : String(/** @type {Error} */ (error).message), "error");
    }
  }
}

const TITLE = { en: "A cluster of real processes", pt: "Um grupo de processos reais" };
const LOOK = {
  en: "It runs now, on this machine. Click a process or a link to break it; what has happened cannot be changed.",
  pt: "Está rodando agora, nesta máquina. Clique num processo ou enlace para quebrá-lo; o que aconteceu não pode ser mudado.",
};

/** @param {Live} live @param {number} index @param {{x: number, y: number}} place */
export function liveProcessMenu(live, index, place) {
  const { lab } = live;
  const timeline = /** @type {import("./timeline.js").Timeline} */ (lab.timeline);
  const words = t().live;
  const uid = timeline.uids[index];
  const now = timeline.processes.condition(index, timeline.steps);
  const isPaused = now.pausedUntil !== null;
  const others = timeline.uids.filter((other) => other !== uid);
  /** @param {string} id @param {string} label @param {string} line @param {boolean} can */
  const item = (id, label, line, can) => ({ id, label, disabled: !can, run: () => void live.order(line) });
  const asks =
    timeline.run.result.problem === "mutex"
      ? [
          item("acquire", t().edit.acquire(HOLD), `acquire ${uid} ${HOLD}`, now.up),
          item("withdraw", t().edit.withdraw, `withdraw ${uid}`, now.up && now.user === "waiting"),
        ]
      : [
          item("start", t().edit.start, `elect ${uid}`, now.up),
          ...others.slice(0, 12).map((other) => {
            const label = `${t().edit.suspectWord}: ${timeline.name(other)}`;
            return item(`suspect-${other}`, label, `suspect ${uid} ${other}`, now.up);
          }),
        ];
  openMenu(place, words.menu(timeline.names[index]), [
    { ...item("crash", words.kill, `kill ${uid}`, now.up), danger: true },
    item("restart", words.start, `start ${uid}`, !now.up),
    item("pause", words.stop, `stop ${uid}`, now.up && !isPaused),
    item("resume", words.cont, `cont ${uid}`, now.up && isPaused),
    "line",
    ...asks,
    "line",
    { ...item("isolate", t().edit.isolate, `partition ${uid}/${others.join(",")}`, others.length > 0), danger: true },
    item("heal-all", t().edit.healAll, "heal", true),
    {
      id: "watch",
      label: t().edit.watch,
      run: () => {
        lab.select(index);
        lab.emit("watch");
      },
    },
  ]);
}

/** @param {Live} live @param {number} a @param {number} b @param {{x: number, y: number}} place */
export function liveLinkMenu(live, a, b, place) {
  const timeline = /** @type {import("./timeline.js").Timeline} */ (live.lab.timeline);
  const words = t().edit;
  const [one, other] = [timeline.uids[a], timeline.uids[b]];
  const [oneName, otherName] = [timeline.names[a], timeline.names[b]];
  /** @param {string} id @param {string} label @param {string} line */
  const item = (id, label, line) => ({ id, label, run: () => void live.order(line) });
  openMenu(place, t().live.menu(`${oneName}–${otherName}`), [
    { ...item("cut", words.cut, `cut ${one}-${other}`), danger: true },
    { ...item("cut-there", words.cutOne(oneName, otherName), `cut ${one}>${other}`), danger: true },
    { ...item("cut-back", words.cutOne(otherName, oneName), `cut ${other}>${one}`), danger: true },
    item("heal", words.heal, `heal ${one}-${other}`),
    "line",
    item("delay", words.delay(moment(100)), `delay ${SLOW} ${one}-${other}`),
    item("loss", words.loss(`${LOSS * 100} %`), `loss ${LOSS} ${one}-${other}`),
    {
      id: "fast",
      label: words.fast,
      run: async () => {
        await live.order(`delay 0ms ${one}-${other}`);
        await live.order(`loss 0 ${one}-${other}`);
      },
    },
  ]);
}
