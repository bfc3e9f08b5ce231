// @ts-check
// The shapes of what the server says, for the type checker alone.

/** @typedef {{en: string, pt: string}} Words */

/**
 * @typedef {object} Algorithm
 * @property {string} name
 * @property {"mutex"|"election"} problem
 * @property {Words} title
 * @property {Words} line
 * @property {Words} idea
 * @property {(Words & {upon: string})[]} clauses
 * @property {(Words & {name: string, default: any})[]} settings
 * @property {Words[]} costs
 * @property {Words[]} breaks
 * @property {Words[]} errata
 * @property {string[]} promises
 * @property {string} layout
 * @property {string} channel
 * @property {string} timing
 * @property {string} crashes
 * @property {string[]} [without]
 */

/**
 * @typedef {object} Story
 * @property {string} id
 * @property {string} name
 * @property {Words} title
 * @property {Words} look
 * @property {string} algorithm
 * @property {Scenario} scenario
 */

/**
 * @typedef {object} Catalogue
 * @property {{nodes: number, events: number, body_bytes: number}} limits
 * @property {Algorithm[]} algorithms
 * @property {Story[]} stories
 * @property {boolean} live whether a cluster runs that can be watched
 */

/**
 * What happens at a moment, besides its time: one list (or value) for each word of the scenario.
 * @typedef {{time: string, [word: string]: any}} Moment
 */

/**
 * @typedef {object} Scenario
 * @property {string} algorithm
 * @property {number} [seed]
 * @property {number} [nodes]
 * @property {number[]} [ids]
 * @property {string} [topology]
 * @property {[number, number][]} [edges]
 * @property {string} [until]
 * @property {{delay?: string, loss?: number, duplicate?: number, fifo?: boolean}} [network]
 * @property {Record<string, any>} [config]
 * @property {{from: number, to: number, delay?: string, loss?: number, duplicate?: number}[]} [link]
 * @property {Moment[]} [at]
 * @property {{number: number, arrives: string[]}[]} [message]
 * @property {{number: number, after: string}[]} [timer]
 * @property {number[]} [choices]
 * @property {string} [name]
 * @property {Words} [title]
 * @property {Words} [look]
 * @property {any} [expect]
 * @property {any} [merit]
 */

/**
 * One event of the trace; which of the fields are there depends on `event`.
 * @typedef {object} TraceEvent
 * @property {number} t_ms
 * @property {number} [node]
 * @property {string} event
 * @property {string} [kind]
 * @property {string} [text]
 * @property {number} [from]
 * @property {number} [to]
 * @property {number} [id]
 * @property {number} [copy]
 * @property {string} [cause]
 * @property {any} [request]
 * @property {any} [notice]
 * @property {any} [state]
 * @property {string[]} [changed]
 * @property {number} [until_ms]
 * @property {boolean} [forgot]
 * @property {number[][]} [groups]
 * @property {boolean} [both]
 * @property {[number, number, boolean]|null} [link]
 * @property {string} [promise]
 * @property {string} [detail]
 */

/**
 * @typedef {object} Topology
 * @property {string} shape
 * @property {{uid: number, name: string}[]} nodes
 * @property {[number, number][]} [edges]
 */

/**
 * @typedef {object} PromiseResult
 * @property {string} name
 * @property {boolean} kept
 * @property {boolean} claimed
 * @property {number|null} broken_at_ms
 * @property {string|null} detail
 */

/**
 * @typedef {object} RunResult
 * @property {string} algorithm
 * @property {"mutex"|"election"} problem
 * @property {string} outcome
 * @property {number} time_ms
 * @property {{total: number, by_kind: Record<string, number>, lost: number}} messages
 * @property {PromiseResult[]} promises
 * @property {any} [mutex]
 * @property {any} [election]
 */

/**
 * @typedef {object} Run
 * @property {Scenario} scenario
 * @property {RunResult} result
 * @property {Topology} topology
 * @property {TraceEvent[]} events
 * @property {number} dropped
 */

/**
 * What has happened to a cluster that runs, from one look to the next.
 * @typedef {object} Stretch
 * @property {Scenario} scenario
 * @property {"mutex"|"election"} problem
 * @property {Topology} topology
 * @property {PromiseResult[]} promises
 * @property {number} now_ms
 * @property {TraceEvent[]} events
 * @property {number} next
 * @property {boolean} more
 * @property {string|null} stuck
 */

/**
 * @typedef {object} CheckStatus
 * @property {"running"|"done"} state
 * @property {{states: number, transitions: number, depth: number, frontier: number, memory: number, seconds: number}} progress
 * @property {CheckOutcome|null} outcome
 * @property {string|null} error
 */

/**
 * @typedef {object} CheckOutcome
 * @property {boolean} complete
 * @property {string|null} stopped
 * @property {number} states
 * @property {number} transitions
 * @property {number} depth
 * @property {{name: string, judgement: string, detail: string|null}[]} promises
 * @property {{promise: string, detail: string, steps: string[], cycle_from: number|null, scenario: Scenario|null}|null} broken
 */

export {};
