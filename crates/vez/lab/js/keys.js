// @ts-check
// The keyboard.

import { byId, el, showDialog } from "./dom.js";
import { t } from "./i18n.js";
import { openLibrary } from "./library.js";
import { setSpeed } from "./transport.js";

/**
 * @param {import("./state.js").Lab} lab
 * @param {{showAt: (index: number) => void}} dock
 * @param {{step: (way: 1|-1) => void}} stepper
 */
export function makeKeys(lab, dock, stepper) {
  byId("open-keys").addEventListener("click", showKeys);
  const click = (/** @type {string} */ id) => byId(id).click();
  const outcome = () => (lab.timeline?.run.result.problem === "election" ? "election" : "entry");
  /** @type {Record<string, (shift: boolean) => void>} */
  const keys = {
    " ": () => (lab.playing ? lab.pause() : lab.play()),
    ArrowRight: (shift) => (shift ? lab.jump(outcome(), 1) : stepper.step(1)),
    ArrowLeft: (shift) => (shift ? lab.jump(outcome(), -1) : stepper.step(-1)),
    Home: () => click("to-start"),
    End: () => click("to-end"),
    m: (shift) => lab.jump("receive", shift ? -1 : 1),
    v: (shift) => lab.jump("violation", shift ? -1 : 1),
    e: (shift) => lab.jump(outcome(), shift ? -1 : 1),
    "+": () => setSpeed(lab, Math.log2(lab.speed) + 1),
    "=": () => setSpeed(lab, Math.log2(lab.speed) + 1),
    "-": () => setSpeed(lab, Math.log2(lab.speed) - 1),
    o: () => openLibrary(lab),
    c: () => click("open-compare"),
    f: () => click("open-find"),
    p: () => click("toggle-predict"),
    k: () => click("open-share"),
    l: () => click("switch-language"),
    t: () => click("switch-theme"),
    n: () => click("follow"),
    "?": showKeys,
  };
  for (let digit = 1; digit <= 9; digit++) keys[String(digit)] = () => dock.showAt(digit - 1);

  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (document.querySelector("dialog[open]") || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !isTyping(target)) {
      event.preventDefault();
      lab.undo(event.shiftKey ? 1 : -1);
      return;
    }
    if (event.ctrlKey || event.metaKey || isTyping(target)) return;
    // A focused button is pressed by the space bar; play is for everywhere else.
    if (event.key === " " && target instanceof HTMLButtonElement) return;
    if (target instanceof HTMLInputElement && ["Home", "End", "ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const run = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!run) return;
    event.preventDefault();
    run(event.shiftKey);
  });
}

/** @param {HTMLElement} target */
function isTyping(target) {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && !["range", "checkbox", "radio"].includes(target.type))
  );
}

function showKeys() {
  const { title, rows } = t().keys;
  showDialog(
    "keys",
    title,
    t().app.close,
    el(
      "table",
      { class: "keys" },
      el(
        "tbody",
        {},
        ...rows.map(([key, does]) =>
          el(
            "tr",
            {},
            el("td", {}, ...key.split(" · ").flatMap((one, i) => [i ? " · " : "", el("kbd", {}, one)])),
            el("td", {}, does),
          ),
        ),
      ),
    ),
  );
}
