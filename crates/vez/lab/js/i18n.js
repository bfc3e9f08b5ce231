// @ts-check
// The language of the page: the browser's, until someone chooses.

import { inPortuguese } from "./i18n/details.js";
import { en } from "./i18n/en.js";
import { pt } from "./i18n/pt.js";

/** @typedef {typeof en} Dictionary */

const KEY = "vez-lab-language";

/** @type {"en"|"pt"} */
let code = remembered() ?? (navigator.language.toLowerCase().startsWith("pt") ? "pt" : "en");

function remembered() {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "en" || kept === "pt" ? kept : null;
  } catch {
    return null;
  }
}

/** The dictionary of the current language. @returns {Dictionary} */
export function t() {
  return code === "pt" ? pt : en;
}

export function language() {
  return code;
}

/** @param {"en"|"pt"} chosen */
export function setLanguage(chosen) {
  code = chosen;
  document.documentElement.lang = chosen === "pt" ? "pt-BR" : "en";
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
}

/** What is said in both languages, in this one. @param {import("./types.js").Words|undefined|null} words */
export function say(words) {
  return words ? words[code] || words.en || "" : "";
}

/** Why a promise is broken, in the language of the page. @param {string} detail */
export function sayDetail(detail) {
  return code === "pt" ? inPortuguese(detail) : detail;
}

/** Making one is slow, using it is not. @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** @param {number} value @param {number} [digits] */
export function number(value, digits = 3) {
  const key = code + digits;
  let format = formats.get(key);
  if (!format)
    formats.set(
      key,
      (format = new Intl.NumberFormat(code === "pt" ? "pt-BR" : "en", { maximumFractionDigits: digits })),
    );
  return format.format(value);
}

/** A moment or a span: `12.5 ms`, `3.2 s`. @param {number} ms */
export function moment(ms) {
  return ms >= 10_000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`;
}

/** A span as scenarios write it. @param {number} ms */
export function span(ms) {
  const micros = Math.round(ms * 1000);
  if (micros % 1_000_000 === 0 && micros > 0) return `${micros / 1_000_000}s`;
  return micros % 1000 === 0 ? `${micros / 1000}ms` : `${micros}us`;
}

/** A span of a scenario, in milliseconds; 0 for what is none. @param {string|undefined} text */
export function millis(text) {
  const match = /^\s*([\d.]+)\s*(us|µs|ms|s|m)?\s*$/.exec(text ?? "");
  if (!match) return 0;
  const unit = { us: 0.001, µs: 0.001, ms: 1, s: 1000, m: 60_000 }[match[2] ?? "ms"] ?? 1;
  return Number(match[1]) * unit;
}
