// @ts-check
// Two runs side by side, on one clock.

import { byId, el, setText, showDialog } from "./dom.js";
import { say, t } from "./i18n.js";
import { adapt } from "./scenario.js";
import { Side } from "./state.js";

/** @param {import("./state.js").Lab} lab */
export function makeCompare(lab) {
  const button = byId("open-compare");
  button.addEventListener("click", () => toggleCompare(lab));
  const words = () => {
    const two = lab.sides.length > 1;
    setText(button, two ? t().compare.stop : t().app.compare);
    button.setAttribute("aria-pressed", String(two));
  };
  lab.on(["sides", "language"], words);
}

/** @param {import("./state.js").Lab} lab */
export function toggleCompare(lab) {
  if (lab.sides.length > 1) return lab.setSides([lab.sides[0]], 0);
  const words = t().compare;
  const { scenario } = lab.side;
  const mine = lab.algorithm(scenario.algorithm);
  const algorithms = lab.catalogue.algorithms.filter(
    (other) => other.problem === mine?.problem && other.name !== mine?.name,
  );
  const algorithm = el(
    "select",
    { "data-testid": "compare-algorithm-choice", "aria-label": words.algorithm },
    ...algorithms.map((other) => el("option", { value: other.name }, say(other.title))),
  );
  const seed = el("input", {
    type: "number",
    min: "0",
    value: String((scenario.seed ?? 0) + 1),
    "data-testid": "compare-seed-choice",
    "aria-label": words.seed,
  });
  const story = el(
    "select",
    { "data-testid": "compare-story-choice", "aria-label": words.story },
    ...lab.catalogue.stories.map((other) => el("option", { value: other.id }, `${other.name} · ${say(other.title)}`)),
  );
  let chosen = "algorithm";
  const option = (/** @type {string} */ id, /** @type {string} */ label, /** @type {HTMLElement|null} */ input) => {
    const radio = el("input", {
      type: "radio",
      name: "compare",
      value: id,
      checked: id === chosen,
      "data-testid": `compare-${id}`,
      onchange: () => (chosen = id),
    });
    input?.addEventListener("focus", () => {
      radio.checked = true;
      chosen = id;
    });
    return el("div", { class: "field" }, el("label", { class: "field check" }, radio, label), input);
  };
  const dialog = showDialog(
    "compare",
    words.title,
    t().app.close,
    el("p", {}, `${words.with}:`),
    option("algorithm", words.algorithm, algorithm),
    option("seed", words.seed, seed),
    option("story", words.story, story),
    option("same", words.same, null),
    el(
      "div",
      { class: "dialog-actions" },
      el(
        "button",
        {
          type: "button",
          class: "primary",
          "data-testid": "compare-go",
          onclick: () => {
            dialog.close();
            go();
          },
        },
        words.go,
      ),
    ),
  );

  async function go() {
    const copy = structuredClone(scenario);
    let other = copy;
    const to = lab.algorithm(algorithm.value);
    if (chosen === "algorithm" && mine && to) other = adapt(copy, mine, to);
    if (chosen === "seed") other = { ...copy, seed: Number(seed.value) || 0 };
    const told = chosen === "story" ? lab.catalogue.stories.find((item) => item.id === story.value) : null;
    if (told) other = structuredClone(told.scenario);
    await beside(lab, other, told?.scenario ?? null);
  }
}

/**
 * Shows another scenario beside the one shown.
 * @param {import("./state.js").Lab} lab
 * @param {import("./types.js").Scenario} scenario
 * @param {import("./types.js").Scenario|null} [origin]
 */
export async function beside(lab, scenario, origin = null) {
  lab.pause();
  const side = new Side(scenario);
  side.origin = origin;
  const first = lab.side;
  if (!(await lab.load(side, scenario, { keep: true }))) return;
  lab.setSides([first, side], 1);
}
