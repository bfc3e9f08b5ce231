// @ts-check
// Picking an algorithm or a story.

import { byId, el, fill, setText, showDialog } from "./dom.js";
import { say, t } from "./i18n.js";
import { firstScenario } from "./scenario.js";

/** @param {import("./state.js").Lab} lab */
export function makeLibrary(lab) {
  function current() {
    const { side } = lab;
    if (!side) return;
    const algorithm = lab.algorithm(side.scenario.algorithm);
    setText(byId("current-name"), side.scenario.name ?? "");
    setText(byId("current-title"), say(side.scenario.title) || say(algorithm?.title) || side.scenario.algorithm);
    document.title = `${byId("current-title").textContent} · vez lab`;
  }
  byId("open-library").addEventListener("click", () => openLibrary(lab));
  lab.on(["run", "language", "sides"], current);
}

/** @param {import("./state.js").Lab} lab */
export function openLibrary(lab) {
  const words = t().library;
  const columns = el("div", { class: "library-columns" });
  const search = el("input", {
    type: "search",
    class: "library-search",
    id: "library-search",
    placeholder: words.search,
    "aria-label": words.search,
    "data-testid": "library-search",
    autofocus: true,
    oninput: () => list(),
  });
  const dialog = showDialog("library", words.title, t().app.close, search, columns);

  /** @param {string} text */
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  /** Whoever knows it in one language finds it in the other. @param {import("./types.js").Words|undefined} words */
  const both = (words) => (words ? [words.en, words.pt] : []);
  /** @param {string[]} texts */
  const matches = (texts) => {
    const wanted = plain(search.value).split(/\s+/).filter(Boolean);
    const all = plain(texts.join(" "));
    return wanted.every((word) => all.includes(word));
  };
  function list() {
    const { algorithms, stories } = lab.catalogue;
    const group = (/** @type {"mutex"|"election"} */ problem) =>
      algorithms
        .filter(
          (algorithm) =>
            algorithm.problem === problem &&
            matches([algorithm.name, ...both(algorithm.title), ...both(algorithm.line)]),
        )
        .map((algorithm) =>
          pick(`algorithm-${algorithm.name}`, "", say(algorithm.title), say(algorithm.line), () =>
            lab.open(firstScenario(algorithm)),
          ),
        );
    const told = stories
      .filter((story) =>
        matches([
          story.id,
          story.algorithm,
          ...both(story.title),
          ...both(story.look),
          ...both(lab.algorithm(story.algorithm)?.title),
        ]),
      )
      .map((story) =>
        pick(`story-${story.id}`, story.name, say(story.title), say(lab.algorithm(story.algorithm)?.title), () =>
          lab.open(story.scenario, story.scenario),
        ),
      );
    const section = (/** @type {string} */ title, /** @type {HTMLElement[]} */ items) =>
      el("section", {}, el("h3", {}, title), ...(items.length ? items : [el("p", { class: "muted" }, words.none)]));
    fill(
      columns,
      section(words.mutex, group("mutex")),
      section(words.election, group("election")),
      section(words.stories, told),
    );
  }
  /** @param {string} id @param {string} name @param {string} title @param {string} line @param {() => void} open */
  function pick(id, name, title, line, open) {
    return el(
      "button",
      {
        class: "pick",
        type: "button",
        "data-testid": id,
        onclick: () => {
          dialog.close();
          open();
        },
      },
      name ? el("span", { class: "name" }, name) : null,
      el("b", {}, title),
      el("small", {}, line),
    );
  }
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") /** @type {HTMLElement|null} */ (columns.querySelector(".pick"))?.click();
  });
  list();
  search.focus();
}
