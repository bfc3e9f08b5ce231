//! The outcome of a run.

use vez_core::problem::Account;
use vez_core::{Breach, Ending, NodeId, Problem, Promise, Protocol, Time};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub ending: Ending,
    /// When the last thing happened.
    pub time: Time,
    /// How often a process reacted to being booted, to a message or to a timer.
    pub steps: u64,
    /// The largest epoch any process reached.
    pub rounds: u64,
    pub messages: Messages,
    pub promises: Vec<Verdict>,
    pub account: Account,
    /// How often a process met what its assumptions rule out, and the first time.
    pub unexpected: u64,
    pub unexpected_first: Option<(Time, NodeId, &'static str)>,
    /// Most memory the queues held, in bytes.
    pub queue_bytes_max: usize,
}

impl Report {
    pub fn all_kept(&self) -> bool {
        self.promises.iter().all(|verdict| verdict.kept)
    }

    /// Whether every promise the algorithm makes was kept.
    pub fn claims_kept(&self) -> bool {
        self.promises.iter().all(|verdict| verdict.kept || !verdict.claimed)
    }

    pub fn verdict(&self, promise: Promise) -> Option<&Verdict> {
        self.promises.iter().find(|verdict| verdict.promise == promise)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Sent to others; what a process says to itself does not count.
    pub total: u64,
    /// In the order the algorithm lists its kinds; only those sent.
    pub by_kind: Vec<(&'static str, u64)>,
    /// Lost on the way.
    pub lost: u64,
    pub duplicated: u64,
    /// Arrived where nobody was up to hear them.
    pub to_crashed: u64,
}

impl Messages {
    /// Kinds of one name, from a protocol and one nested in it, are one kind to people.
    pub fn add(&mut self, kind: &'static str, count: u64) {
        match self.by_kind.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, known)) => *known += count,
            None if count > 0 => self.by_kind.push((kind, count)),
            None => (),
        }
    }

    pub fn of(&self, kind: &str) -> u64 {
        self.by_kind.iter().find(|(name, _)| *name == kind).map_or(0, |&(_, count)| count)
    }
}

/// How one promise fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub promise: Promise,
    pub kept: bool,
    /// Whether the algorithm makes this promise; others are judged for comparison.
    pub claimed: bool,
    /// When it was first broken.
    pub broken_at: Option<Time>,
    /// How it was broken, or what was measured.
    pub detail: Option<String>,
}

impl Verdict {
    /// How every promise of `P`'s problem fared, given what was found broken first and when.
    pub fn of<P: Protocol>(spec: &P::Problem, broken: &[(Time, Breach)]) -> Vec<Self> {
        let verdict = |&promise: &Promise| {
            let broken = broken.iter().find(|(_, breach)| breach.promise == promise);
            let detail = broken.map(|(_, breach)| breach.detail.clone());
            Self {
                promise,
                kept: broken.is_none(),
                claimed: P::META.promises.contains(&promise),
                broken_at: broken.map(|&(at, _)| at),
                detail: detail.or_else(|| spec.remark(promise)),
            }
        };
        // Where no fences are promised there are none to judge.
        let judged = |verdict: &Self| verdict.claimed || verdict.promise != Promise::Fencing;
        P::Problem::PROMISES.iter().map(verdict).filter(judged).collect()
    }
}
