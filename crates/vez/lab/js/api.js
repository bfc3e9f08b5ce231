// @ts-check
// What the page asks of the binary that serves it.

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  const response = await fetch(path, init);
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // The status says enough.
  }
  throw new Error(message);
}

/** @param {unknown} body @param {AbortSignal} [signal] @returns {RequestInit} */
function post(body, signal) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
}

/** @returns {Promise<import("./types.js").Catalogue>} */
export async function fetchCatalogue() {
  return (await ask("/api/catalogue")).json();
}

/**
 * @param {import("./types.js").Scenario} scenario
 * @param {AbortSignal} [signal]
 * @returns {Promise<import("./types.js").Run>}
 */
export async function run(scenario, signal) {
  return (await ask("/api/run", post({ scenario }, signal))).json();
}

/** @param {import("./types.js").Scenario} scenario @param {string} format */
export async function exportAs(scenario, format) {
  return (await ask(`/api/export?format=${encodeURIComponent(format)}`, post({ scenario }))).text();
}

/** What a cluster that runs has done since. @param {number} from @returns {Promise<import("./types.js").Stretch>} */
export async function live(from) {
  return (await ask(`/api/live?from=${from}`)).json();
}

/** Has something done to it. @param {string} line */
export async function sayLive(line) {
  await ask("/api/live", post({ line }));
}

/** @param {object} question @returns {Promise<number>} */
export async function startCheck(question) {
  return (await (await ask("/api/check", post(question))).json()).id;
}

/** @param {number} id @returns {Promise<import("./types.js").CheckStatus>} */
export async function checkStatus(id) {
  return (await ask(`/api/check/${id}`)).json();
}

/** @param {number} id */
export async function cancelCheck(id) {
  await ask(`/api/check/${id}`, { method: "DELETE" });
}
