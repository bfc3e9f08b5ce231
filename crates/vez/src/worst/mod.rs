//! The arrangement, the initiators and the schedule that cost most, or least.
//!
//! A small space is enumerated whole on the reference schedule; what is beyond, other delays and
//! other moments of starting, and systems too large to enumerate, is searched by climbing: change
//! one thing, keep what costs no less. The result says exactly what was tried, and is a scenario
//! that runs to the same count.

mod candidate;
mod climb;
mod enumerate;
mod report;

use std::sync::atomic::AtomicBool;

use vez_core::{Ending, Layout, Time, Timing, Topology};
use vez_sim::Report;

pub use candidate::Candidate;
pub use report::{Replay, json, text};

use crate::scenario::{Fault, Place, Wiring};
use crate::sweep::Subject;

/// What is sought.
#[derive(Clone)]
pub struct Quest {
    pub subject: Subject,
    pub n: u32,
    pub wiring: Option<Wiring>,
    pub metric: Aim,
    /// The least, not the most.
    pub best: bool,
    /// Whether all start or ask, in every candidate.
    pub all_start: bool,
    pub hold: Time,
    /// How slow the search may make a link.
    pub delay_max: Time,
    /// Enumerate what is at most so many runs.
    pub enumerate_max: u64,
    /// How many runs the search may take.
    pub trials: u64,
    pub seed: u64,
    pub threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Aim {
    /// To elect, or per entry.
    Messages,
    /// Until everyone knows the leader, or the longest wait.
    Time,
}

/// What was found, and by what.
pub struct Finding {
    pub best: Option<Scored>,
    pub tried: Tried,
    /// Runs that do not count: a promise of the algorithm broken, no end, a second election.
    pub refused: u64,
    pub stopped: bool,
}

/// What exactly was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    pub arrangements: u64,
    pub initiator_sets: u64,
    /// Runs of the enumeration that were finished; all of them, unless stopped.
    pub enumerated: u64,
    pub searched: u64,
    /// Whether the best was found by the search, beyond what was enumerated.
    pub beyond: bool,
}

#[derive(Clone, Debug)]
pub struct Scored {
    pub score: f64,
    pub candidate: Candidate,
}

/// A run of more steps than this is taken to have no end.
const STEPS_MAX: u64 = 20_000_000;

/// Looks for the worst; `told` hears how many runs of how many are done, and the best so far.
pub fn seek(
    quest: &Quest,
    stop: &AtomicBool,
    mut told: impl FnMut(u64, u64, Option<f64>),
) -> Result<Finding, Fault> {
    quest.check()?;
    let space = enumerate::Space::of(quest);
    let whole = space.runs().filter(|&runs| runs <= quest.enumerate_max);
    let total = whole.unwrap_or(0) + quest.trials;
    let mut finding = Finding { best: None, tried: Tried::default(), refused: 0, stopped: false };
    if whole.is_some() {
        enumerate::enumerate(quest, &space, stop, &mut finding, |done, best| {
            told(done, total, best);
        });
    }
    let enumerated = finding.tried.enumerated;
    if quest.trials > 0 {
        climb::climb(quest, stop, &mut finding, |done, best| told(enumerated + done, total, best));
    }
    finding.stopped = stop.load(std::sync::atomic::Ordering::SeqCst);
    if finding.best.is_none() && !finding.stopped {
        let name = quest.subject.entry.meta.name;
        let why = format!("no run of {name} with {} processes came to its end", quest.n);
        return Err(Fault::new(&Place::Whole, why));
    }
    Ok(finding)
}

impl Quest {
    fn check(&self) -> Result<(), Fault> {
        let meta = &self.subject.entry.meta;
        let beats = meta.restless.is_some() && self.is_election();
        if beats && self.metric == Aim::Messages {
            let why = format!(
                "{} sends heartbeats for as long as it runs; expected --metric time",
                meta.name
            );
            return Err(Fault::new(&Place::Whole, why));
        }
        // Settings, size and wiring must suit each other.
        crate::scenario::resolve(&Candidate::plain(self).scenario(self, None)).map(|_| ())
    }

    pub(crate) fn is_election(&self) -> bool {
        self.subject.entry.problem == "election"
    }

    /// Whether it matters which uid is where. Where everyone is linked to everyone, it decides who
    /// hears first of what arrives at one moment.
    fn arrangement_matters(&self) -> bool {
        self.is_election()
    }

    fn is_ring(&self) -> bool {
        matches!(self.subject.entry.meta.layout, Layout::Ring | Layout::RingBoth)
    }

    /// Whether the search may change delays without breaking what the algorithm assumes.
    fn delays_vary(&self) -> bool {
        self.subject.entry.meta.timing == Timing::Asynchronous
            && Time::from_millis(1) < self.delay_max
    }

    /// Whether the search may let some start later. A token that travels while nobody asks would
    /// make the cost of waiting look like the cost of entering.
    fn starts_vary(&self) -> bool {
        self.subject.entry.meta.restless.is_none()
    }

    fn topology(&self) -> Result<Topology, Fault> {
        let scenario = Candidate::plain(self).scenario(self, None);
        Ok(crate::scenario::resolve(&scenario)?.topology)
    }

    /// `None` for a run that does not count.
    fn score(&self, candidate: &Candidate, report: &Report) -> Option<f64> {
        if report.ending == Ending::Limit || !report.claims_kept() {
            return None;
        }
        candidate.measure(report, self.metric)
    }

    fn is_better(&self, one: f64, other: f64) -> bool {
        if self.best { one < other } else { other < one }
    }

    fn keep(&self, best: &mut Option<Scored>, found: Scored) -> bool {
        let better = best.as_ref().is_none_or(|known| self.is_better(found.score, known.score));
        if better {
            *best = Some(found);
        }
        better
    }
}
