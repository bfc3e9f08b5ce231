// @ts-check
// The colours of the style sheet, for the canvases.

const NAMES = /** @type {const} */ ([
  "paper",
  "card",
  "sunk",
  "ink",
  "muted",
  "line",
  "strong-line",
  "accent",
  "accent-soft",
  "on-accent",
  "inside",
  "inside-soft",
  "waiting",
  "waiting-soft",
  "leader",
  "leader-soft",
  "broken",
  "broken-soft",
  "kept",
  "down",
  "sans",
  "mono",
]);

/** @typedef {Record<typeof NAMES[number], string> & {kinds: string[]}} Palette */

/** @type {Palette|null} */
let palette = null;

/** @returns {Palette} */
export function colours() {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const entries = NAMES.map((name) => [name, read(name)]);
  palette = /** @type {Palette} */ ({
    ...Object.fromEntries(entries),
    kinds: Array.from({ length: 8 }, (_, i) => read(`kind-${i}`)),
  });
  return palette;
}

/** The colour of a kind of message. @param {number} kind */
export function kindColour(kind) {
  const { kinds } = colours();
  return kinds[kind % kinds.length];
}

const KEY = "vez-lab-theme";

/** Takes the theme last chosen, or the system's. */
export function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    // Then the system's.
  }
  setTheme(chosen === "dark" || (chosen !== "light" && dark.matches) ? "dark" : "light");
}

/** @param {"light"|"dark"} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  palette = null;
}

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds for this visit.
  }
}
