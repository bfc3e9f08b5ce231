//! The result of a check as JSON. Scripts depend on it: fields may be added, never changed.

use serde::Serialize;
use serde_json::{Value, json};
use vez_check::{Deed, Judgement, Options, Outcome, Search, Statistics, Stop};
use vez_core::{Channel, NodeId, Timing, Topology, Wish};

use super::{Assumption, Exhibit};
use crate::scenario::Resolved;

#[derive(Serialize)]
pub struct CheckResult<'a> {
    algorithm: &'static str,
    problem: &'static str,
    nodes: u32,
    model: ModelResult,
    states: u64,
    transitions: u64,
    depth: u32,
    complete: bool,
    stopped: Option<Stop>,
    seconds: f64,
    promises: Vec<PromiseResult<'a>>,
    /// The promise that `trace` breaks.
    broken: Option<&'static str>,
    trace: Vec<Value>,
    /// The step of the trace from which on it repeats for ever.
    repeats_from: Option<usize>,
    /// The same as a file that `vez run` replays.
    scenario: Option<String>,
    worst_wait: Option<u64>,
    unexpected: u64,
    statistics: StatisticsResult,
}

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct ModelResult {
    without: Vec<&'static str>,
    entries: u32,
    askers: Option<Vec<u64>>,
    channel: Channel,
    timing: Timing,
    crashes: u32,
    restarts: bool,
    unsent: bool,
    amnesia: bool,
    losses: u32,
    duplicates: u32,
    partitions: u32,
    withdrawals: u32,
    epochs: u64,
    search: &'static str,
    reduced: bool,
}

#[derive(Serialize)]
struct PromiseResult<'a> {
    name: &'static str,
    /// `None` where nothing can be said.
    kept: Option<bool>,
    judgement: Judgement,
    /// Whether the algorithm makes this promise at all.
    claimed: bool,
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct StatisticsResult {
    process_states: u64,
    messages: u64,
    spec_states: u64,
    steps: u64,
    frontier_max: u64,
    visited_bytes: u64,
    memory_bytes: u64,
    collision_probability: f64,
    coverage: Option<f64>,
    ample_states: u64,
    ample_saved: u64,
    renamings: Option<u64>,
    endless: Option<bool>,
}

/// What was checked, beside the system itself.
pub struct Question<'a> {
    pub resolved: &'a Resolved,
    pub options: &'a Options,
    pub without: &'a [Assumption],
}

impl<'a> CheckResult<'a> {
    pub fn new(
        question: &Question<'a>,
        outcome: &'a Outcome,
        exhibit: Option<&Exhibit>,
        seconds: f64,
    ) -> Self {
        let Resolved { entry, topology, .. } = question.resolved;
        let found = outcome.counterexample.as_ref();
        let promises = outcome.promises.iter().map(|verdict| PromiseResult {
            name: verdict.promise.name(),
            kept: match verdict.judgement {
                Judgement::Kept | Judgement::KeptSoFar => Some(true),
                Judgement::Broken => Some(false),
                Judgement::Unjudged => None,
            },
            judgement: verdict.judgement,
            claimed: entry.meta.promises.contains(&verdict.promise),
            detail: verdict.detail.as_deref(),
        });
        let trace = found.iter().flat_map(|found| &found.steps).enumerate().map(|(i, step)| {
            let text = exhibit.map_or(&step.text, |exhibit| &exhibit.steps[i]);
            traced(i + 1, text, &step.deed, topology)
        });
        Self {
            algorithm: entry.meta.name,
            problem: entry.problem,
            nodes: topology.n(),
            model: model(question, topology),
            states: outcome.states,
            transitions: outcome.transitions,
            depth: outcome.depth,
            complete: outcome.complete,
            stopped: outcome.stopped,
            seconds,
            promises: promises.collect(),
            broken: found.map(|found| found.promise.name()),
            trace: trace.collect(),
            repeats_from: found.and_then(|found| found.cycle_from).map(|from| from + 1),
            scenario: exhibit.map(|exhibit| exhibit.scenario.to_string()),
            worst_wait: outcome.worst_wait,
            unexpected: outcome.unexpected,
            statistics: statistics(&outcome.statistics),
        }
    }
}

fn model(question: &Question<'_>, topology: &Topology) -> ModelResult {
    let options = question.options;
    let uids = |nodes: &vez_core::NodeSet| nodes.iter().map(|&node| topology.uid(node)).collect();
    ModelResult {
        without: question.without.iter().map(|assumption| assumption.name()).collect(),
        entries: options.entries,
        askers: options.askers.as_ref().map(uids),
        channel: options.channel,
        timing: options.timing,
        crashes: options.crashes,
        restarts: options.restarts,
        unsent: options.unsent,
        amnesia: options.amnesia,
        losses: options.losses,
        duplicates: options.duplicates,
        partitions: options.partitions,
        withdrawals: options.withdrawals,
        epochs: options.epoch_max,
        search: match options.search {
            Search::BreadthFirst => "bfs",
            Search::DepthFirst => "dfs",
            Search::Walks { .. } => "walks",
        },
        reduced: options.reductions.ample,
    }
}

fn traced(number: usize, text: &str, deed: &Deed, topology: &Topology) -> Value {
    let uid = |node: NodeId| topology.uid(node);
    let mut step = match *deed {
        Deed::Ask { node, wish } => {
            let wish = match wish {
                Wish::Start => "start",
                Wish::Suspect(_) => "suspect",
                Wish::Acquire => "acquire",
                Wish::Release => "release",
                Wish::Withdraw => "withdraw",
            };
            json!({ "deed": "ask", "node": uid(node), "wish": wish })
        }
        Deed::Hear { node, from, number } => {
            json!({ "deed": "hear", "node": uid(node), "from": uid(from), "message": number })
        }
        Deed::Fire { node, number } => {
            json!({ "deed": "fire", "node": uid(node), "timer": number })
        }
        Deed::Crash { node } => json!({ "deed": "crash", "node": uid(node) }),
        Deed::Restart { node, forget } => {
            json!({ "deed": "restart", "node": uid(node), "forgot": forget })
        }
        Deed::Lose { number } => json!({ "deed": "lose", "message": number }),
        Deed::Split { side } => {
            let far = topology.ids().filter(|node| side >> node.0 & 1 == 1).map(uid);
            json!({ "deed": "split", "far": far.collect::<Vec<_>>() })
        }
        Deed::Heal => json!({ "deed": "heal" }),
    };
    step["step"] = number.into();
    step["text"] = text.into();
    step
}

fn statistics(statistics: &Statistics) -> StatisticsResult {
    StatisticsResult {
        process_states: statistics.process_states,
        messages: statistics.messages,
        spec_states: statistics.spec_states,
        steps: statistics.steps,
        frontier_max: statistics.frontier_max,
        visited_bytes: statistics.visited_bytes,
        memory_bytes: statistics.memory_bytes,
        collision_probability: statistics.collision_probability,
        coverage: statistics.coverage,
        ample_states: statistics.ample_states,
        ample_saved: statistics.ample_saved,
        renamings: statistics.renamings,
        endless: statistics.endless,
    }
}
