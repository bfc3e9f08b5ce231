// @ts-check
// The scenario as a form: who takes part, on what topology, over what network, with what settings.

import { byId, el, fill } from "./dom.js";
import { icon } from "./icons.js";
import { say, t } from "./i18n.js";
import { openLibrary } from "./library.js";
import { sizeOf } from "./scenario.js";

/** @typedef {import("./types.js").Scenario} Scenario */

/** @param {import("./state.js").Lab} lab */
export function makeSetup(lab) {
  const panel = byId("panel-setup");

  /** @param {(scenario: Scenario) => Scenario} change */
  const edit = (change) =>
    lab.edit((scenario) => {
      delete scenario.expect;
      return change(scenario);
    });
  /**
   * Once it has been typed in full.
   * @param {HTMLInputElement} input
   * @param {(scenario: Scenario, value: string) => Scenario} change
   */
  const onChange = (input, change) => {
    input.addEventListener("change", () => edit((scenario) => change(scenario, input.value.trim())));
    return input;
  };
  const field = (
    /** @type {string} */ name,
    /** @type {HTMLElement} */ input,
    wide = false,
    /** @type {string} */ hint = "",
  ) => el("label", { class: wide ? "field wide" : "field" }, name, input, hint ? el("small", {}, hint) : null);

  function draw() {
    const { side } = lab;
    if (!side?.timeline) return;
    if (side.live) return fill(panel, el("p", { class: "prose" }, t().live.fixed));
    const words = t().setup;
    const { scenario } = side;
    const algorithm = lab.algorithm(scenario.algorithm);
    const nodes = onChange(
      el("input", {
        type: "number",
        min: "1",
        max: String(lab.catalogue.limits.nodes),
        value: String(sizeOf(scenario)),
        "data-testid": "setup-nodes",
      }),
      setSize,
    );
    const ids = onChange(
      el("input", {
        type: "text",
        value: scenario.ids?.join(", ") ?? "",
        placeholder: "3, 1, 2",
        "data-testid": "setup-ids",
      }),
      (other, value) => {
        const list = (value.match(/\d+/g) ?? []).map(Number);
        if (list.length === 0) {
          other.nodes = sizeOf(other);
          delete other.ids;
          return other;
        }
        delete other.nodes;
        return keepMembers({ ...other, ids: list });
      },
    );
    const seed = onChange(
      el("input", { type: "number", min: "0", value: String(scenario.seed ?? 0), "data-testid": "setup-seed" }),
      (other, value) => ({ ...other, seed: Number(value) || 0 }),
    );
    const dice = el(
      "button",
      {
        type: "button",
        class: "icon-button secondary",
        "aria-label": words.dice,
        title: words.dice,
        "data-testid": "setup-dice",
        onclick: () => edit((other) => ({ ...other, seed: (other.seed ?? 0) + 1 })),
      },
      icon("dice"),
    );
    fill(
      panel,
      el(
        "div",
        { class: "form" },
        field(
          words.algorithm,
          el(
            "button",
            { type: "button", class: "secondary", "data-testid": "setup-algorithm", onclick: () => openLibrary(lab) },
            say(algorithm?.title),
          ),
          true,
        ),
        field(words.nodes, nodes),
        field(words.seed, el("span", { class: "with-button" }, seed, dice)),
        field(words.topology, topology(scenario)),
        field(
          words.until,
          onChange(
            el("input", { type: "text", value: scenario.until ?? "", placeholder: "1s", "data-testid": "setup-until" }),
            (other, value) => {
              if (value) return { ...other, until: value };
              delete other.until;
              return other;
            },
          ),
        ),
        field(words.ids, ids, true),
      ),
      el("h2", { class: "label" }, words.network),
      network(scenario),
      algorithm?.settings.length ? el("h2", { class: "label" }, words.config) : null,
      config(scenario, algorithm),
    );
  }

  /** @param {Scenario} scenario @param {string} value */
  function setSize(scenario, value) {
    const count = Math.max(1, Math.min(lab.catalogue.limits.nodes, Math.round(Number(value)) || 1));
    delete scenario.ids;
    delete scenario.edges;
    return keepMembers({ ...scenario, nodes: count });
  }

  /** @param {Scenario} scenario */
  function topology(scenario) {
    const words = t().setup;
    const now = scenario.edges
      ? "edges"
      : scenario.topology?.startsWith("random")
        ? "random:0.2"
        : (scenario.topology ?? "");
    const select = el(
      "select",
      {
        "data-testid": "setup-topology",
        onchange: () =>
          edit((other) => {
            delete other.edges;
            delete other.topology;
            return select.value ? { ...other, topology: select.value } : other;
          }),
      },
      el("option", { value: "" }, words.byAlgorithm),
      ...Object.entries(words.topologies).map(([value, name]) => el("option", { value }, name)),
      scenario.edges ? el("option", { value: "edges", disabled: true }, words.edges) : null,
    );
    select.value = now;
    return select;
  }

  /** @param {Scenario} scenario */
  function network(scenario) {
    const words = t().setup;
    const now = scenario.network ?? {};
    const text = (/** @type {"delay"|"loss"|"duplicate"} */ key, /** @type {string} */ hint) =>
      field(
        words[key],
        onChange(
          el("input", {
            type: "text",
            value: now[key] === undefined ? "" : String(now[key]),
            placeholder: hint,
            "data-testid": `setup-${key}`,
          }),
          (other, value) => {
            const network = { ...other.network };
            delete network[key];
            if (value) Object.assign(network, { [key]: key === "delay" ? value : Number(value) });
            return { ...other, network };
          },
        ),
        key === "delay",
        key === "delay" ? words.delayHint : "",
      );
    const fifo = el("input", {
      type: "checkbox",
      checked: now.fifo ?? true,
      "data-testid": "setup-fifo",
      onchange: () => edit((other) => ({ ...other, network: { ...other.network, fifo: fifo.checked } })),
    });
    return el(
      "div",
      { class: "form" },
      text("delay", "1ms"),
      text("loss", "0"),
      text("duplicate", "0"),
      el("label", { class: "field check wide" }, fifo, words.fifo),
    );
  }

  /** @param {Scenario} scenario @param {import("./types.js").Algorithm|null} algorithm */
  function config(scenario, algorithm) {
    return el(
      "div",
      { class: "form" },
      ...(algorithm?.settings ?? []).map((setting) => {
        const now = scenario.config?.[setting.name];
        const set = (/** @type {any} */ value) =>
          edit((other) => {
            const settings = { ...other.config };
            if (value === undefined) delete settings[setting.name];
            else settings[setting.name] = value;
            return { ...other, config: settings };
          });
        const hint = say(setting);
        if (typeof setting.default === "boolean") {
          const box = el("input", {
            type: "checkbox",
            checked: now ?? setting.default,
            "data-testid": `config-${setting.name}`,
            onchange: () => set(box.checked === setting.default ? undefined : box.checked),
          });
          return el(
            "label",
            { class: "field check wide" },
            box,
            el("span", {}, el("b", {}, setting.name), el("br"), el("small", { class: "muted" }, hint)),
          );
        }
        const shown = now === undefined ? "" : typeof now === "string" ? now : JSON.stringify(now);
        const usual =
          setting.default === null
            ? "–"
            : typeof setting.default === "string"
              ? setting.default
              : JSON.stringify(setting.default);
        const input = el("input", {
          type: "text",
          value: shown,
          placeholder: t().setup.default(usual),
          "data-testid": `config-${setting.name}`,
        });
        input.addEventListener("change", () => set(input.value.trim() === "" ? undefined : parse(input.value.trim())));
        return field(setting.name, input, true, hint);
      }),
    );
  }
  lab.on(["run", "language", "sides"], draw);
}

/** A number, a list or a truth is itself, all else a text. @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Lets go of what is about processes that are no longer there. @param {Scenario} scenario @returns {Scenario} */
export function keepMembers(scenario) {
  const members = new Set(scenario.ids ?? Array.from({ length: scenario.nodes ?? 5 }, (_, i) => i + 1));
  /** @param {any} item @returns {boolean} */
  const known = (item) => {
    if (item === "all" || typeof item === "boolean") return true;
    if (typeof item === "number") return members.has(item);
    if (typeof item === "string") return (item.match(/\d+/g) ?? []).every((uid) => members.has(Number(uid)));
    if (Array.isArray(item)) return item.every(known);
    return known(item.node) && (item.of === undefined || known(item.of));
  };
  const at = (scenario.at ?? []).flatMap((entry) => {
    const kept = Object.entries(entry).flatMap(([word, value]) => {
      if (word === "time") return [[word, value]];
      if (word === "partition") {
        const groups = value
          .map((/** @type {number[]} */ group) => group.filter(known))
          .filter((/** @type {number[]} */ group) => group.length);
        return groups.length ? [[word, groups]] : [];
      }
      if (!Array.isArray(value)) return known(value) ? [[word, value]] : [];
      const items = value.filter(known);
      return items.length ? [[word, items]] : [];
    });
    return kept.length > 1 ? [/** @type {import("./types.js").Moment} */ (Object.fromEntries(kept))] : [];
  });
  const link = scenario.link?.filter((entry) => known(entry.from) && known(entry.to));
  const { message: _, timer: __, choices: ___, merit: ____, ...rest } = scenario;
  return { ...rest, at, ...(link?.length ? { link } : {}) };
}
