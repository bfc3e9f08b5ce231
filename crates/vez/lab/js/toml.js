// @ts-check
// Reads the TOML that scenario files are written in: tables, lists of tables, texts, numbers,
// truths, lists and inline tables. Dates and multi-line keys are not for scenarios.

/** @param {string} text @returns {any} */
export function parseToml(text) {
  return new Reader(text).document();
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  document() {
    /** @type {any} */
    const root = {};
    let table = root;
    for (;;) {
      this.#skip(true);
      if (this.at >= this.text.length) return root;
      if (this.#peek() === "[") {
        table = this.#header(root);
      } else {
        this.#pair(table);
      }
      this.#skip(false);
      if (this.at < this.text.length && this.#peek() !== "\n" && this.#peek() !== "\r")
        this.#fail("expected the end of the line");
    }
  }

  /** `[table]` or `[[list of tables]]`. @param {any} root */
  #header(root) {
    const list = this.text.startsWith("[[", this.at);
    this.at += list ? 2 : 1;
    const keys = this.#keys();
    this.#take(list ? "]]" : "]");
    const last = keys[keys.length - 1];
    let table = root;
    for (const key of keys.slice(0, -1)) table = enter(table, key);
    if (!list) return enter(table, last);
    table[last] ??= [];
    const entry = {};
    table[last].push(entry);
    return entry;
  }

  /** @param {any} table */
  #pair(table) {
    const keys = this.#keys();
    this.#take("=");
    this.#skip(false);
    const value = this.#value();
    let home = table;
    for (const key of keys.slice(0, -1)) home = enter(home, key);
    home[keys[keys.length - 1]] = value;
  }

  /** @returns {string[]} */
  #keys() {
    const keys = [];
    do {
      this.#skip(false);
      const quote = this.#peek();
      if (quote === '"' || quote === "'") keys.push(this.#string());
      else keys.push(this.#match(/[A-Za-z0-9_-]+/y) ?? this.#fail("expected a key"));
      this.#skip(false);
    } while (this.#peek() === "." && ++this.at);
    return keys;
  }

  /** @returns {any} */
  #value() {
    const next = this.#peek();
    if (next === '"' || next === "'") return this.#string();
    if (next === "[") return this.#list();
    if (next === "{") return this.#inline();
    const word = this.#match(/[A-Za-z0-9_.+-]+/y);
    if (word === "true" || word === "false") return word === "true";
    const number = Number(word?.replace(/_/g, "") ?? NaN);
    if (word === null || Number.isNaN(number)) this.#fail(`expected a value, found ${word ?? next}`);
    return number;
  }

  #list() {
    this.#take("[");
    const items = [];
    for (;;) {
      this.#skip(true);
      if (this.#peek() === "]") break;
      items.push(this.#value());
      this.#skip(true);
      if (this.#peek() !== ",") break;
      this.at++;
    }
    this.#take("]");
    return items;
  }

  #inline() {
    this.#take("{");
    const table = {};
    for (;;) {
      this.#skip(true);
      if (this.#peek() === "}") break;
      this.#pair(table);
      this.#skip(true);
      if (this.#peek() !== ",") break;
      this.at++;
    }
    this.#take("}");
    return table;
  }

  #string() {
    const quote = this.#peek();
    const long = this.text.startsWith(quote.repeat(3), this.at);
    const mark = long ? quote.repeat(3) : quote;
    this.at += mark.length;
    if (long && this.#peek() === "\n") this.at++;
    let text = "";
    while (!this.text.startsWith(mark, this.at)) {
      if (this.at >= this.text.length || (!long && this.#peek() === "\n")) this.#fail("a text does not end");
      text += quote === '"' && this.#peek() === "\\" ? this.#escape() : this.text[this.at++];
    }
    this.at += mark.length;
    return text;
  }

  #escape() {
    const code = this.text[this.at + 1];
    const width = { u: 4, U: 8 }[code];
    if (width) {
      const point = parseInt(this.text.slice(this.at + 2, this.at + 2 + width), 16);
      this.at += 2 + width;
      return String.fromCodePoint(point);
    }
    this.at += 2;
    return (
      { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", '"': '"', "\\": "\\" }[code] ?? this.#fail("an unknown escape")
    );
  }

  /** Past blanks and comments. @param {boolean} lines also past line ends */
  #skip(lines) {
    this.#match(lines ? /(?:\s|#[^\n]*)*/y : /[ \t]*(?:#[^\n]*)?/y);
  }

  #peek() {
    return this.text[this.at] ?? "";
  }

  /** @param {string} sign */
  #take(sign) {
    this.#skip(false);
    if (!this.text.startsWith(sign, this.at)) this.#fail(`expected ${sign}`);
    this.at += sign.length;
  }

  /** @param {RegExp} pattern sticky */
  #match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    this.at += found?.length ?? 0;
    return found;
  }

  /** @param {string} why @returns {never} */
  #fail(why) {
    const line = this.text.slice(0, this.at).split("\n").length;
    throw new Error(`line ${line}: ${why}`);
  }
}

/** @param {any} table @param {string} key */
function enter(table, key) {
  if (key === "__proto__") throw new Error("a key may not be __proto__");
  table[key] ??= {};
  return Array.isArray(table[key]) ? table[key][table[key].length - 1] : table[key];
}
