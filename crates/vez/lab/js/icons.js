// @ts-check
// The few signs the page draws itself, so that no font need have them.

const PATHS = {
  play: "M7 4.5v15l12-7.5z",
  pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
  forward: "M6 5v14l9-7zM16 5h2.6v14H16z",
  back: "M18 5v14l-9-7zM5.4 5H8v14H5.4z",
  end: "M4 5v14l7-7zM11 5v14l7-7zM18 5h2.4v14H18z",
  start: "M20 5v14l-7-7zM13 5v14l-7-7zM3.6 5H6v14H3.6z",
  undo: "M9 5 4 9.6 9 14v-3h5a4 4 0 0 1 0 8h-3v2h3a6 6 0 0 0 0-12H9z",
  redo: "m15 5 5 4.6-5 4.4v-3h-5a4 4 0 0 0 0 8h3v2h-3a6 6 0 0 1 0-12h5z",
  theme: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 2v14a7 7 0 0 1 0-14z",
  dice: "M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zm3 3.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm4 4a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm4 4a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  minus: "M5 11h14v2H5z",
  fit: "M4 5h2v14H4zM18 5h2v14h-2zM7 12l3.5-3v2h3V9l3.5 3-3.5 3v-2h-3v2z",
};

/** @typedef {keyof typeof PATHS} Icon */

/** @param {Icon} name */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("width", "18");
  svg.setAttribute("height", "18");
  svg.setAttribute("fill", "currentColor");
  svg.setAttribute("fill-rule", "evenodd");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
