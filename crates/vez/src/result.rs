//! The result of a run as JSON. Scripts depend on it: fields may be added, never changed.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use vez_core::problem::Account;
use vez_core::problem::election::{ElectionTally, View};
use vez_core::problem::mutex::MutexTally;
use vez_core::{Fence, Time, Topology};
use vez_sim::{Messages, Report};

use crate::scenario::{Resolved, outcome_word};

#[derive(Serialize)]
pub struct RunResult<'a> {
    algorithm: &'static str,
    problem: &'static str,
    seed: u64,
    nodes: u32,
    outcome: &'static str,
    time_ms: f64,
    steps: u64,
    /// Not known of real processes, whose traces do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<u64>,
    messages: MessagesResult<'a>,
    promises: Vec<PromiseResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    election: Option<ElectionResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutex: Option<MutexResult>,
    unexpected: u64,
}

#[derive(Serialize)]
struct MessagesResult<'a> {
    total: u64,
    by_kind: ByKind<'a>,
    lost: u64,
    duplicated: u64,
    to_crashed: u64,
}

#[derive(Serialize)]
struct PromiseResult<'a> {
    name: &'static str,
    kept: bool,
    /// Whether the algorithm makes this promise at all.
    claimed: bool,
    broken_at_ms: Option<f64>,
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct ElectionResult<'a> {
    leader: Option<u64>,
    views: Views<'a>,
    declarations: Vec<DeclarationResult>,
    changes: usize,
    /// Crashes, and how long it took to notice and to replace who led.
    failures: Vec<FailureResult>,
    suspicions: u64,
    false_suspicions: u64,
}

#[derive(Serialize)]
struct FailureResult {
    node: u64,
    at_ms: f64,
    led: bool,
    detected_after_ms: Option<f64>,
    replaced_after_ms: Option<f64>,
}

#[derive(Serialize)]
struct DeclarationResult {
    node: u64,
    at_ms: f64,
    term: u64,
    /// When it stopped considering itself leader, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ms: Option<f64>,
}

#[derive(Serialize)]
struct MutexResult {
    entries: Vec<EntryResult>,
    waiting: Vec<u64>,
    refused_by_fence: u64,
}

#[derive(Serialize)]
struct EntryResult {
    node: u64,
    requested_ms: f64,
    entered_ms: f64,
    left_ms: Option<f64>,
    fence: Option<Fence>,
}

/// Whom each live process follows, by uid; written straight from the tally.
struct Views<'a>(&'a ElectionTally, &'a Topology);

impl Serialize for Views<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(tally, topology) = self;
        let mut map = serializer.serialize_map(None)?;
        for (node, view) in topology.ids().zip(&tally.views) {
            let leader = match *view {
                View::Follows(leader) => Some(topology.uid(leader)),
                View::Unknown => None,
                View::Down => continue,
            };
            map.serialize_entry(&topology.uid(node), &leader)?;
        }
        map.end()
    }
}

struct ByKind<'a>(&'a Messages);

impl Serialize for ByKind<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.by_kind.iter().copied())
    }
}

impl<'a> RunResult<'a> {
    pub fn new(resolved: &'a Resolved, report: &'a Report) -> Self {
        let topology = &resolved.topology;
        let messages = &report.messages;
        let (election, mutex) = match &report.account {
            Account::Election(tally) => (Some(election(tally, topology)), None),
            Account::Mutex(tally) => (None, Some(mutex(tally, topology))),
        };
        Self {
            algorithm: resolved.entry.meta.name,
            problem: resolved.entry.problem,
            seed: resolved.plan.seed,
            nodes: topology.n(),
            outcome: outcome_word(report.ending),
            time_ms: report.time.as_millis_f64(),
            steps: report.steps,
            rounds: Some(report.rounds),
            messages: MessagesResult {
                total: messages.total,
                by_kind: ByKind(messages),
                lost: messages.lost,
                duplicated: messages.duplicated,
                to_crashed: messages.to_crashed,
            },
            promises: promises(report),
            election,
            mutex,
            unexpected: report.unexpected,
        }
    }

    /// Of processes that really ran.
    pub fn judged(resolved: &'a Resolved, report: &'a Report) -> Self {
        Self { rounds: None, ..Self::new(resolved, report) }
    }
}

fn promises(report: &Report) -> Vec<PromiseResult<'_>> {
    let results = report.promises.iter().map(|verdict| PromiseResult {
        name: verdict.promise.name(),
        kept: verdict.kept,
        claimed: verdict.claimed,
        broken_at_ms: verdict.broken_at.map(Time::as_millis_f64),
        detail: verdict.detail.as_deref(),
    });
    results.collect()
}

fn election<'a>(tally: &'a ElectionTally, topology: &'a Topology) -> ElectionResult<'a> {
    let declaration = |declared: &vez_core::problem::election::Declaration| DeclarationResult {
        node: topology.uid(declared.node),
        at_ms: declared.at.as_millis_f64(),
        term: declared.term,
        until_ms: declared.until.map(Time::as_millis_f64),
    };
    let failure = |failure: &vez_core::problem::election::Failure| {
        let after = |moment: Option<Time>| moment.map(|at| (at - failure.at).as_millis_f64());
        FailureResult {
            node: topology.uid(failure.node),
            at_ms: failure.at.as_millis_f64(),
            led: failure.led,
            detected_after_ms: after(failure.detected),
            replaced_after_ms: after(failure.replaced),
        }
    };
    ElectionResult {
        leader: tally.leader().map(|node| topology.uid(node)),
        views: Views(tally, topology),
        declarations: tally.declarations.iter().map(declaration).collect(),
        changes: tally.changes(),
        failures: tally.failures.iter().map(failure).collect(),
        suspicions: tally.suspicions,
        false_suspicions: tally.suspicions_false,
    }
}

fn mutex(tally: &MutexTally, topology: &Topology) -> MutexResult {
    let entry = |entry: &vez_core::problem::mutex::Entry| EntryResult {
        node: topology.uid(entry.node),
        requested_ms: entry.requested.as_millis_f64(),
        entered_ms: entry.entered.as_millis_f64(),
        left_ms: entry.left.map(Time::as_millis_f64),
        fence: entry.fence,
    };
    MutexResult {
        entries: tally.entries.iter().map(entry).collect(),
        waiting: tally.waiting.keys().map(|&node| topology.uid(node)).collect(),
        refused_by_fence: tally.refused_by_fence,
    }
}
