// @ts-check
// Leases, members and what happened.

import { byId, el, fill, setText } from "../../js/dom.js";
import { number } from "../../js/i18n.js";
import { makeBar } from "./queues.js";
import { lapse, span, t, whoIs } from "./words.js";

const HISTORY_MAX = 100;

export function makeLeases() {
  const list = byId("leases-list");
  /** @type {{root: HTMLElement, bar: ReturnType<typeof makeBar>, name: HTMLElement, left: HTMLElement}[]} */
  const rows = [];
  return (/** @type {import("./types.js").Service["leases"]} */ { total, counted_here, ending }) => {
    setText(byId("leases-count"), number(total));
    while (rows.length < ending.length) {
      const [name, left] = [el("bdi", { class: "lease-key", dir: "auto" }), el("span", { class: "lease-left" })];
      const bar = makeBar();
      const root = el("li", { class: "lease", "data-testid": "lease" }, name, left, bar.root);
      rows.push({ root, bar, name, left });
    }
    rows.length = ending.length;
    ending.forEach((lease, index) => {
      const row = rows[index];
      const more = lease.keys > 1 ? ` ${t().keys(lease.keys - 1)}` : "";
      setText(row.name, (lease.key ?? `${lease.id} · ${t().noKeys}`) + more);
      row.name.title = `${t().lease} ${lease.id}`;
      setText(row.left, lease.left_ms ? span(lease.left_ms) : t().expired);
      row.bar.show(lease.left_ms, lease.ttl_ms);
    });
    const none = total && !counted_here ? t().countedElsewhere : t().noLeases;
    const wanted = rows.length ? rows.map((row) => row.root) : [el("li", { class: "empty muted" }, none)];
    if (wanted.length !== list.children.length || !rows.length) fill(list, ...wanted);
  };
}

/** @param {import("./types.js").Member[]} members */
export function showMembers(members) {
  fill(
    byId("members-list"),
    ...members.map((member) =>
      el(
        "div",
        { class: "member", "data-testid": "member" },
        el(
          "p",
          {},
          el("bdi", { class: "member-name" }, member.name),
          el("span", { class: `chip ${member.leads ? "leads" : ""}` }, role(member)),
          " ",
          member.own && members.length > 1 ? el("span", { class: "chip" }, t().asked) : null,
        ),
        el("p", { class: "mono muted" }, member.client_urls.join(", ")),
        member.own && el("dl", { class: "facts" }, ...facts(member.own)),
      ),
    ),
  );
}

/** @param {import("./types.js").Member} member */
function role({ leads, learns }) {
  if (leads) return t().leader;
  return learns ? t().learner : t().follower;
}

/** @param {import("./types.js").Own} own */
function facts(own) {
  const pairs = [
    [t().term, number(own.term)],
    [t().revision, number(own.revision)],
    [t().keysTotal, number(own.keys)],
    [t().disk, `${number(own.disk_bytes / 2 ** 20, 1)} MiB`],
    [t().version, own.version],
  ];
  return pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

/** What happened, newest first; each is kept until a hundred more have. */
export function makeHistory() {
  const list = byId("history-list");
  /** @type {{one: import("./types.js").Happening, at: number}[]} */
  let kept = [];
  return {
    last: () => kept[0]?.one.number ?? 0,
    clear() {
      kept = [];
    },
    /** @param {import("./types.js").Happening[]} news */
    show(news) {
      const now = performance.now();
      kept.unshift(...news.map((one) => ({ one, at: now - one.ago_ms })).reverse());
      kept.length = Math.min(kept.length, HISTORY_MAX);
      if (!kept.length) fill(list, el("li", { class: "empty muted" }, t().noHistory));
      else fill(list, ...kept.map(({ one, at }) => item(one, now - at)));
    },
  };
}

/** @param {import("./types.js").Happening} one @param {number} ago */
function item(one, ago) {
  const kind = /** @type {keyof ReturnType<typeof t>["whats"]} */ (one.why ? `${one.what}-${one.why}` : one.what);
  const took =
    one.what === "granted"
      ? ""
      : one.what === "ended"
        ? t().afterHold(lapse(one.took))
        : t().afterWait(lapse(one.took));
  const bad = one.why === "lease-expired" || one.why === "lease-revoked" || one.why === "by-hand";
  return el(
    "li",
    { class: `happening ${bad ? "bad" : one.what}`, "data-testid": "happening", "data-what": kind },
    el("p", {}, el("bdi", { class: "happening-name", dir: "auto", title: one.name }, one.name), " ", t().whats[kind]),
    el(
      "p",
      { class: "muted" },
      el("bdi", {}, whoIs(one)),
      ` · ${t().fence} ${one.fence}${took ? ` · ${took}` : ""} · ${t().ago(span(Math.max(1000, ago)))}`,
    ),
  );
}
