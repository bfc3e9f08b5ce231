// @ts-check
// Puts each panel where the window has room for it: beside the stage, or behind a tab.

import { byId, el, fill } from "./dom.js";
import { t } from "./i18n.js";

/** @typedef {keyof import("./i18n.js").Dictionary["tabs"]} Panel */
/** @typedef {{left: Panel[], top: Panel[], centre: Panel[], tabs: Panel[]}} Plan */

/** @type {Plan} */
const WIDE = {
  left: ["story", "promises", "rules"],
  top: [],
  centre: ["diagram"],
  tabs: ["log", "counters", "waiting", "edit", "setup"],
};
/** @type {Plan} */
const MEDIUM = {
  left: [],
  top: ["promises"],
  centre: ["diagram"],
  tabs: ["log", "rules", "story", "counters", "waiting", "edit", "setup"],
};
/** @type {Plan} */
const NARROW = {
  left: [],
  top: [],
  centre: [],
  tabs: ["story", "log", "promises", "rules", "diagram", "counters", "waiting", "edit", "setup"],
};

/** @param {import("./state.js").Lab} lab */
export function makeDock(lab) {
  const wide = matchMedia("(min-width: 1280px)");
  const narrow = matchMedia("(max-width: 800px)");
  /** @type {Panel} */
  let open = narrow.matches ? "story" : "log";

  function arrange() {
    const plan = narrow.matches ? NARROW : wide.matches ? WIDE : MEDIUM;
    const panel = (/** @type {Panel} */ name) => byId(`panel-${name}`);
    for (const name of NARROW.tabs) {
      const element = panel(name);
      element.hidden = false;
      element.removeAttribute("role");
      element.removeAttribute("tabindex");
      // What scrolls must be reachable by keyboard.
      if (plan.left.includes(name)) element.tabIndex = 0;
    }
    const shelf = byId("shelf");
    shelf.append(...NARROW.tabs.map(panel));
    fill(byId("dock-left"), ...plan.left.map(panel));
    fill(byId("dock-top"), ...plan.top.map(panel));
    fill(byId("dock-centre"), ...plan.centre.map(panel));
    fill(byId("dock-panels"), ...plan.tabs.map(panel));
    if (!plan.tabs.includes(open)) open = plan.tabs[0];
    fill(
      byId("tabs"),
      ...plan.tabs.map((name) =>
        el(
          "button",
          {
            class: "tab",
            id: `tab-${name}`,
            role: "tab",
            type: "button",
            "aria-controls": `panel-${name}`,
            "data-testid": `tab-${name}`,
            onclick: () => show(name),
          },
          t().tabs[name],
        ),
      ),
    );
    show(open);
  }

  /** @param {Panel} name */
  function show(name) {
    const tabs = /** @type {HTMLElement[]} */ ([...byId("tabs").children]);
    const names = tabs.map((tab) => /** @type {Panel} */ (tab.id.replace("tab-", "")));
    if (!names.includes(name)) {
      byId(`panel-${name}`).scrollIntoView({ block: "nearest" });
      return;
    }
    open = name;
    tabs.forEach((tab, i) => {
      const chosen = names[i] === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen) tab.scrollIntoView?.({ block: "nearest", inline: "nearest" });
      const panel = byId(`panel-${names[i]}`);
      panel.hidden = !chosen;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
    });
    lab.emit("step");
  }

  byId("tabs").addEventListener("keydown", (event) => {
    const tabs = /** @type {HTMLElement[]} */ ([...byId("tabs").children]);
    const at = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tab = tabs[to % tabs.length];
    tab.click();
    tab.focus();
  });
  wide.addEventListener("change", arrange);
  narrow.addEventListener("change", arrange);
  lab.on("language", arrange);
  arrange();
  return {
    show,
    /** The panel behind a number key. @param {number} index */
    showAt: (index) => /** @type {HTMLElement|undefined} */ (byId("tabs").children[index])?.click(),
  };
}
