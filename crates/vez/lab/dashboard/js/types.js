// @ts-check
// What the server answers.

/** @typedef {{ms: number, least: boolean}} Lapse */

/**
 * @typedef {object} Standing
 * @property {string|null} id The key, in hex.
 * @property {string} who
 * @property {string} lease
 * @property {number|null} left_ms
 * @property {number|null} ttl_ms
 * @property {number} fence
 * @property {Lapse} since
 */

/** @typedef {{name: string, first: Standing, waiting: Standing[], waiting_total: number}} Line */
/** @typedef {{total: number, offset: number, lines: Line[]}} Lines */
/** @typedef {{id: string, ttl_ms: number, left_ms: number, key: string|null, keys: number}} Lease */

/**
 * @typedef {object} Member
 * @property {string} id
 * @property {string} name
 * @property {string[]} client_urls
 * @property {boolean} leads
 * @property {boolean} learns
 * @property {Own|null} own Of the member that is asked only.
 */

/**
 * @typedef {object} Own
 * @property {number} term
 * @property {number} revision
 * @property {number} keys
 * @property {number} disk_bytes
 * @property {string} version
 */

/**
 * @typedef {object} Happening
 * @property {number} number
 * @property {number} ago_ms
 * @property {"granted"|"handed-over"|"ended"|"left"} what
 * @property {"asked"|"by-hand"|"lease-expired"|"lease-revoked"|null} why
 * @property {string} name
 * @property {string} who
 * @property {string} lease
 * @property {number} fence
 * @property {Lapse} took
 */

/**
 * @typedef {object} Samples One a second, oldest first.
 * @property {number[]} requests
 * @property {(number|null)[]} request_ms
 * @property {number[]} grants
 * @property {(number|null)[]} wait_ms
 * @property {(number|null)[]} sync_ms
 * @property {number[]} waiting
 */

/**
 * @typedef {object} Service
 * @property {number} uptime_ms
 * @property {string|null} trouble
 * @property {boolean} may_release
 * @property {number} held
 * @property {number} waiting
 * @property {number} watchers
 * @property {number} page
 * @property {Lines} locks
 * @property {Lines} elections
 * @property {{total: number, counted_here: boolean, ending: Lease[]}} leases
 * @property {Member[]} members
 * @property {Samples} samples
 * @property {Happening[]} history
 */

export {};
