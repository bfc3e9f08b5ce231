// @ts-check
// What the page asks of the server.

const KEY = "vez-token";

/** Takes the token out of the address, so that nobody reads it there or finds it in a history. */
export function takeToken() {
  const found = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (!found) return;
  setToken(found[1]);
  history.replaceState(null, "", location.pathname);
}

/** @param {string} token */
export function setToken(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // Then nothing can be done here, and the page says so.
  }
}

function headers() {
  let token = null;
  try {
    token = sessionStorage.getItem(KEY);
  } catch {
    // As if there were none.
  }
  return /** @type {Record<string, string>} */ (token ? { "X-Vez-Token": token } : {});
}

/**
 * @param {{search: string, order: string, locks: number, elections: number, after: number}} question
 * @returns {Promise<import("./types.js").Service>}
 */
export async function look(question) {
  const query = new URLSearchParams(Object.entries(question).map(([key, value]) => [key, String(value)]));
  const response = await fetch(`/api/service?${query}`, { headers: headers(), signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new Error(String(response.status));
  return response.json();
}

/** Gives the status and, if it was refused, why. @param {string} id @param {number} fence */
export async function release(id, fence) {
  const response = await fetch("/api/service/release", {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json" },
    body: JSON.stringify({ id, fence }),
  });
  const said = await response.json().catch(() => ({}));
  return { status: response.status, error: String(said.error ?? response.statusText) };
}
