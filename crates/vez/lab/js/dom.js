// @ts-check
// Small helpers to build elements.

/** @typedef {Node|string|null|undefined|false} Child */

/**
 * Makes an element. Keys that start with `on` are listeners, `class` and `data-…` and `aria-…` are
 * attributes, the rest are properties.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class" || key === "for" || key === "role" || key.includes("-"))
      element.setAttribute(key, String(value));
    else /** @type {any} */ (element)[key] = value;
  }
  element.append(.../** @type {(Node|string)[]} */ (children.filter(Boolean)));
  return element;
}

/**
 * The element with this id, which must be there.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (element);
}

/** Puts `children` in place of what an element holds. @param {Element} parent @param {...Child} children */
export function fill(parent, ...children) {
  parent.replaceChildren(.../** @type {(Node|string)[]} */ (children.filter(Boolean)));
}

/** Sets a text only when it is another. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** What the user asked the system for. */
export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * A dialog of the page, closed by Escape, its button or a click beside it.
 * @param {string} id
 * @param {string} title
 * @param {string} closeLabel
 * @param {...Child} children
 */
export function showDialog(id, title, closeLabel, ...children) {
  document.getElementById(id)?.remove();
  const dialog = el("dialog", { id, class: "dialog", "aria-label": title, "data-testid": id });
  const close = el(
    "button",
    {
      class: "icon-button",
      type: "button",
      "aria-label": closeLabel,
      "data-testid": `${id}-close`,
      onclick: () => dialog.close(),
    },
    "✕",
  );
  dialog.append(
    el("header", { class: "dialog-head" }, el("h2", {}, title), close),
    el("div", { class: "dialog-body" }, ...children),
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Says something in passing, to eyes and to screen readers. @param {string} text @param {"plain"|"error"} [tone] */
export function toast(text, tone = "plain") {
  const host = byId("toasts");
  const note = el(
    "div",
    { class: `toast toast-${tone}`, role: tone === "error" ? "alert" : "status", "data-testid": "toast" },
    text,
  );
  host.replaceChildren(note);
  setTimeout(() => note.remove(), tone === "error" ? 8000 : 2500);
}

/**
 * The size of an element, kept up to date: asking for it while drawing would lay out the page anew.
 * @param {Element} element
 * @param {() => void} changed
 */
export function watchSize(element, changed) {
  const size = { width: 0, height: 0 };
  new ResizeObserver(([entry]) => {
    size.width = entry.contentRect.width;
    size.height = entry.contentRect.height;
    changed();
  }).observe(element);
  return size;
}
