// @ts-check
// A small menu at a place of the page, for pointer and keyboard.

import { el } from "./dom.js";

/** @typedef {{label: string, id?: string, danger?: boolean, disabled?: boolean, run: () => void}|"line"} Item */

/** @type {(() => void)|null} */
let closeOpen = null;

/**
 * Opens a menu. Escape, a click elsewhere or a choice closes it, and the focus goes back.
 * @param {{x: number, y: number}} place in the window
 * @param {string} title
 * @param {Item[]} items
 */
export function openMenu(place, title, items) {
  closeOpen?.();
  const back = /** @type {HTMLElement|null} */ (document.activeElement);
  const menu = el(
    "div",
    { class: "menu", role: "menu", "aria-label": title, "data-testid": "menu" },
    el("div", { class: "menu-title", "aria-hidden": "true" }, title),
  );
  for (const item of items) {
    if (item === "line") {
      menu.append(el("div", { class: "menu-line", role: "separator" }));
      continue;
    }
    const choose = () => {
      close();
      item.run();
    };
    menu.append(
      el(
        "button",
        {
          class: item.danger ? "menu-item danger" : "menu-item",
          role: "menuitem",
          type: "button",
          tabIndex: -1,
          disabled: item.disabled ?? false,
          "data-testid": item.id ? `menu-${item.id}` : undefined,
          onclick: choose,
        },
        item.label,
      ),
    );
  }
  const choices = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("[role=menuitem]:not(:disabled)")]);
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const at = choices.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + choices.length, Home: 0, End: choices.length - 1 }[event.key];
    if (to !== undefined) choices[to % choices.length]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key.length === 1)
      choices
        .find((choice, i) => i > at && choice.textContent?.toLowerCase().startsWith(event.key.toLowerCase()))
        ?.focus();
    if (to !== undefined || event.key === "Escape") event.preventDefault();
    event.stopPropagation();
  }
  /** @param {PointerEvent} event */
  function onPointer(event) {
    if (!menu.contains(/** @type {Node} */ (event.target))) close();
  }
  function close() {
    menu.remove();
    document.removeEventListener("pointerdown", onPointer, true);
    closeOpen = null;
    back?.focus({ preventScroll: true });
  }
  closeOpen = close;
  menu.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", onPointer, true);
  document.body.append(menu);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(6, Math.min(place.x, innerWidth - width - 6))}px`;
  menu.style.top = `${Math.max(6, Math.min(place.y, innerHeight - height - 6))}px`;
  choices[0]?.focus();
}
