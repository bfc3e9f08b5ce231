// @ts-check
// The last minutes as small plots.

import { byId, el, fill, setText } from "../../js/dom.js";
import { number } from "../../js/i18n.js";
import { t } from "./words.js";

const WIDTH = 300;
const HEIGHT = 56;
/** So many seconds are shown at least. */
const LEAST = 60;
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {"requests"|"request_ms"|"grants"|"wait_ms"|"sync_ms"} Series */

/** @type {[Series, () => string][]} */
const PLOTS = [
  ["requests", () => t().requests],
  ["request_ms", () => t().request],
  ["grants", () => t().grants],
  ["wait_ms", () => t().wait],
  ["sync_ms", () => t().sync],
];

export function makePlots() {
  const plots = PLOTS.map(([series, title]) => makePlot(series, title));
  fill(byId("plots"), ...plots.map((plot) => plot.root));
  return (/** @type {import("./types.js").Samples} */ samples) =>
    plots.forEach((plot, index) => plot.show(samples[PLOTS[index][0]]));
}

/** @param {Series} series @param {() => string} title */
function makePlot(series, title) {
  const heading = el("h3", { class: "label" });
  const now = el("span", { class: "plot-now" });
  const most = el("span", { class: "plot-most muted" });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const area = document.createElementNS(SVG, "path");
  area.setAttribute("class", "plot-area");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", "plot-line");
  svg.append(area, line);
  const root = el("figure", { class: `plot plot-${series}`, "data-testid": `plot-${series}` });
  root.append(heading, el("p", { class: "plot-numbers" }, now, most), svg);
  return {
    root,
    /** @param {(number|null)[]} values */
    show(values) {
      const top = values.reduce((/** @type {number} */ greatest, value) => Math.max(greatest, value ?? 0), 0);
      const last = values.findLast((value) => value !== null);
      setText(heading, title());
      setText(now, last === undefined || last === null ? "–" : brief(last));
      setText(most, top ? t().most(brief(top)) : t().none);
      svg.setAttribute("aria-label", `${title()}: ${now.textContent}, ${most.textContent}`);
      const path = trace(values, top || 1);
      line.setAttribute("d", path.line);
      area.setAttribute("d", path.area);
    },
  };
}

/** The newest is at the right; where nothing was measured there is a gap. @param {(number|null)[]} values @param {number} top */
function trace(values, top) {
  let [line, area] = ["", ""];
  /** @type {number|null} */
  let start = null;
  const step = WIDTH / Math.max(LEAST, values.length);
  const x = (/** @type {number} */ index) => +(WIDTH - (values.length - 1 - index) * step).toFixed(1);
  const y = (/** @type {number} */ value) => (HEIGHT - 2 - (value / top) * (HEIGHT - 6)).toFixed(1);
  values.forEach((value, index) => {
    if (value === null) {
      start = null;
      return;
    }
    // A point alone is seen as a short dash.
    line += start === null ? `M${x(index - 0.5)} ${y(value)}L${x(index)} ${y(value)}` : `L${x(index)} ${y(value)}`;
    const from = (start ??= index);
    if (index + 1 === values.length || values[index + 1] === null) {
      const points = values.slice(from, index + 1).map((one, after) => `L${x(from + after)} ${y(one ?? 0)}`);
      area += `M${x(from)} ${HEIGHT}${points.join("")}L${x(index)} ${HEIGHT}Z`;
    }
  });
  return { line, area };
}

/** @param {number} value */
function brief(value) {
  return number(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}
