// @ts-check
// Keeping a run: a link that holds it, files of many kinds, and the way back in.

import * as api from "./api.js";
import { beside } from "./compare.js";
import { byId, el, showDialog, toast } from "./dom.js";
import { t } from "./i18n.js";
import { parseToml } from "./toml.js";

/** @typedef {import("./types.js").Scenario} Scenario */

/** A second scenario shown beside the first goes along. @typedef {{s: Scenario, b?: Scenario, t?: number}} Kept */

/** @param {Kept} kept @returns {Promise<string>} */
async function pack(kept) {
  const stream = new Blob([JSON.stringify(kept)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text @returns {Promise<Kept>} */
async function unpack(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

/** Without what a story says should come out: a link is about what is run. @param {Scenario} scenario */
function bare(scenario) {
  const { expect: _, ...rest } = scenario;
  return rest;
}

/** @param {import("./state.js").Lab} lab */
export function makeShare(lab) {
  byId("open-share").addEventListener("click", () => openShare(lab));
  let last = location.hash;
  /** The address always holds what is shown. */
  async function remember() {
    if (!lab.side || lab.sides.some((side) => side.readOnly || !side.timeline)) return;
    const [first, second] = lab.sides;
    const story = lab.storyOf(first);
    const untouched = story && !second && JSON.stringify(first.scenario) === JSON.stringify(story.scenario);
    const hash = untouched
      ? `#${story.id}`
      : `#s=${await pack({ s: bare(first.scenario), ...(second ? { b: bare(second.scenario) } : {}) })}`;
    if (hash === last) return;
    last = hash;
    history.replaceState(null, "", hash);
  }
  lab.on(["run", "sides"], () => void remember());
  addEventListener("hashchange", () => {
    if (location.hash !== last) void openLink(lab, location.hash);
    last = location.hash;
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (file) void importFile(lab, file);
  });
}

/**
 * Opens what an address holds; false if it holds nothing.
 * @param {import("./state.js").Lab} lab
 * @param {string} hash
 */
export async function openLink(lab, hash) {
  const text = decodeURIComponent(hash.slice(1));
  const story = lab.catalogue.stories.find((other) => other.id === text);
  if (story) return lab.open(story.scenario, story.scenario);
  if (!text.startsWith("s=")) return false;
  try {
    const kept = await unpack(text.slice(2));
    if (lab.sides.length > 1) lab.setSides([lab.sides[0]], 0);
    const opened = await lab.open(kept.s);
    if (opened && kept.b) await beside(lab, kept.b);
    if (opened && kept.t) lab.seek(kept.t);
    return opened;
  } catch (error) {
    toast(t().share.wrong(String(/** @type {Error} */ (error).message)), "error");
    return false;
  }
}

/** @param {import("./state.js").Lab} lab */
async function openShare(lab) {
  lab.pause();
  const words = t().share;
  const { side } = lab;
  const [first, second] = lab.sides;
  const kept = {
    s: bare(first.scenario),
    ...(second ? { b: bare(second.scenario) } : {}),
    ...(lab.time > 0 ? { t: lab.time } : {}),
  };
  const address = `${location.origin}${location.pathname}#s=${await pack(kept)}`;
  const link = el("input", {
    type: "text",
    readOnly: true,
    value: address,
    "aria-label": words.link,
    "data-testid": "share-link",
    onfocus: () => link.select(),
  });
  const copy = el(
    "button",
    {
      type: "button",
      class: "primary",
      "data-testid": "share-copy",
      onclick: async () => {
        link.select();
        try {
          await navigator.clipboard.writeText(address);
        } catch {
          document.execCommand("copy");
        }
        copy.textContent = words.copied;
      },
    },
    words.copy,
  );
  const file = el("input", {
    type: "file",
    accept: ".toml,.json,.jsonl,.txt",
    "data-testid": "import-file",
    "aria-label": words.choose,
    onchange: async () => {
      const [chosen] = file.files ?? [];
      if (chosen && (await importFile(lab, chosen))) dialog.close();
    },
  });
  const dialog = showDialog(
    "share",
    words.title,
    t().app.close,
    side.readOnly
      ? null
      : el("section", { class: "field" }, words.link, el("span", { class: "with-button" }, link, copy)),
    side.readOnly
      ? null
      : el(
          "section",
          {},
          el("h3", { class: "label" }, words.export),
          el(
            "div",
            { class: "formats" },
            ...Object.entries(words.formats).map(([format, name]) =>
              el(
                "button",
                {
                  type: "button",
                  class: "secondary",
                  "data-testid": `export-${format}`,
                  onclick: () => exportRun(side.scenario, format),
                },
                name,
              ),
            ),
          ),
        ),
    el("section", { class: "field" }, el("h3", { class: "label" }, words.import), el("p", {}, words.importHint), file),
  );
}

const ENDINGS = /** @type {Record<string, string>} */ ({
  toml: "toml",
  mermaid: "mmd",
  svg: "svg",
  png: "png",
  html: "html",
  jsonl: "jsonl",
  shiviz: "log",
});

/** @param {Scenario} scenario @param {string} format */
async function exportRun(scenario, format) {
  try {
    const text = await api.exportAs(scenario, format === "png" ? "svg" : format);
    const blob = format === "png" ? await rasterise(text) : new Blob([text], { type: "text/plain" });
    const name = `${scenario.name?.toLowerCase() || scenario.algorithm}.${ENDINGS[format]}`;
    const url = URL.createObjectURL(blob);
    const anchor = el("a", { href: url, download: name });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) {
    toast(String(/** @type {Error} */ (error).message), "error");
  }
}

/** Draws an SVG at twice its size. @param {string} svg @returns {Promise<Blob>} */
async function rasterise(svg) {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    // A browser refuses a canvas beyond about 16,000 pixels a side.
    const scale = Math.min(2, 16_000 / Math.max(image.width, image.height));
    const canvas = el("canvas", { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
    const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    ctx.fillStyle = "#ffffff";
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("PNG"))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** @param {import("./state.js").Lab} lab @param {File} file */
async function importFile(lab, file) {
  try {
    const text = await file.text();
    if (text.trimStart().startsWith("{")) {
      const [line] = text.trimStart().split("\n");
      const looksLikeTrace = (() => {
        try {
          return "event" in JSON.parse(line);
        } catch {
          return false;
        }
      })();
      if (looksLikeTrace) return showTrace(lab, text);
      return await lab.open(JSON.parse(text));
    }
    return await lab.open(parseToml(text));
  } catch (error) {
    toast(t().share.wrong(String(/** @type {Error} */ (error).message)), "error");
    return false;
  }
}

/**
 * The events of a trace, in the order of time and from 0 on. A real process says first what it
 * runs, and one that was killed may have left half a line.
 * @param {string} text
 */
function readTrace(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  /** @type {any[]} */
  const said = [];
  lines.forEach((line, i) => {
    try {
      said.push(JSON.parse(line));
    } catch (error) {
      if (i + 1 < lines.length) throw error;
    }
  });
  const header = said.find((line) => line.event === "header");
  /** @type {import("./types.js").TraceEvent[]} */
  const events = said.filter((line) => line.event !== "header");
  if (header) {
    const begun = events.reduce((least, event) => Math.min(least, event.t_ms), Infinity);
    for (const event of events) event.t_ms -= begun;
    events.sort((a, b) => a.t_ms - b.t_ms);
  }
  return { events, algorithm: /** @type {string|null} */ (header?.algorithm ?? null) };
}

/** Shows the trace of processes that really ran. @param {import("./state.js").Lab} lab @param {string} text */
function showTrace(lab, text) {
  const { events, algorithm } = readTrace(text);
  const uids = [
    ...new Set(events.flatMap((event) => [event.node, event.from, event.to]).filter((uid) => uid !== undefined)),
  ].sort((a, b) => /** @type {number} */ (a) - /** @type {number} */ (b));
  const mutex = events.some((event) => event.kind === "Acquire" || event.kind === "Entered");
  /** @type {Map<string, import("./types.js").PromiseResult>} */
  const promises = new Map();
  for (const event of events) {
    if (event.event !== "violation" || !event.promise || promises.has(event.promise)) continue;
    promises.set(event.promise, {
      name: event.promise,
      kept: false,
      claimed: true,
      broken_at_ms: event.t_ms,
      detail: event.detail ?? null,
    });
  }
  const side = lab.side;
  lab.pause();
  side.readOnly = true;
  side.past = [];
  side.future = [];
  side.origin = null;
  const seen = algorithm ?? guessAlgorithm(lab, events, side.scenario.algorithm);
  side.scenario = {
    algorithm: seen,
    name: "",
    title: { en: "An imported trace", pt: "Um registro importado" },
    look: { en: t().app.imported, pt: t().app.imported },
  };
  lab.show(side, {
    scenario: side.scenario,
    events,
    dropped: 0,
    topology: {
      shape: "complete",
      nodes: uids.map((uid) => ({ uid: /** @type {number} */ (uid), name: `P${uid}` })),
      edges: [],
    },
    result: {
      algorithm: seen,
      problem: mutex ? "mutex" : "election",
      outcome: "",
      time_ms: events.at(-1)?.t_ms ?? 0,
      messages: { total: 0, by_kind: {}, lost: 0 },
      promises: [...promises.values()],
    },
  });
  return true;
}

/**
 * The algorithm whose rules know every message of a trace; the one shown, if it does.
 * @param {import("./state.js").Lab} lab
 * @param {import("./types.js").TraceEvent[]} events
 * @param {string} shown
 */
function guessAlgorithm(lab, events, shown) {
  const kinds = new Set(events.filter((event) => event.event === "send").map((event) => `message ${event.kind}`));
  const knows = lab.catalogue.algorithms.filter((algorithm) => {
    const clauses = new Set(algorithm.clauses.map((clause) => clause.upon));
    return [...kinds].every((kind) => clauses.has(kind));
  });
  if (knows.length === 0 || knows.some((algorithm) => algorithm.name === shown)) return shown;
  return knows.reduce((best, other) => (other.clauses.length < best.clauses.length ? other : best)).name;
}
