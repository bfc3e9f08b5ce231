//! Explicit-state model checking: every run of a small system, and the shortest one that breaks a
//! promise.
//!
//! The checker drives the same [`Protocol`] values as the simulator and judges them with the same
//! [`Problem`](vez_core::Problem) specs. Time is left out: an armed timer may run out whenever
//! [`Timing`](vez_core::Timing) allows.
//!
//! # Why searching less is sound
//!
//! - **Remembered steps.** Handlers are pure: the same state, event and choices give the same
//!   effects, so each is worked out once. Nothing is left out.
//! - **Ample steps** ([`Reductions::ample`]). A message whose arrival shows nobody anything and
//!   commutes, tried on the receiver alone, with all else that can happen to it is heard first and
//!   alone. Steps of different processes commute anyway. No granted message leads to itself by its
//!   answers, so nothing is put off for ever; what was granted is tried again once every message
//!   is known, and the search repeated if it does not stand. Runs that may go round for ever are
//!   judged on the graph with nothing left out, or called kept only so far.
//! - **Who is who** ([`Reductions::symmetry`]). Of states that are each other's renamings one is
//!   enough, if every step does to the renamed what it did to the others, renamed; which is tried
//!   for every step that is taken. Runs that may go round for ever are judged without it.
//! - **Lossy networks as sets** ([`Channel::Lossy`](vez_core::Channel)). What was sent stays: being
//!   heard again, late or never covers every loss, repetition and reordering.
//! - **Bits for states** ([`Reductions::bitstate`]) overlook states, and say how many.
//!
//! **Invariant:** a step is a function of (process state, event, choices), so it is taken once and
//! remembered; a state of the system is a row of numbers.

mod act;
mod ample;
mod archive;
mod bfs;
mod code;
mod dfs;
mod graph;
mod intern;
mod knowledge;
mod layer;
mod live;
mod lore;
mod mind;
mod model;
mod narrate;
mod options;
mod order;
mod outcome;
mod recall;
mod retrace;
mod setting;
mod symmetry;
mod verdict;
mod visited;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vez_core::{Protocol, Topology};

use ample::Oracle;
use archive::Archive;
use bfs::{Explored, Reach};
use lore::Lore;
use model::Model;
pub use options::{CheckError, Options, Reductions, Search};
pub use outcome::{
    Act, Counterexample, Deed, Judgement, Outcome, Replay, Statistics, Step, Stop, Verdict,
};
use setting::Setting;
use symmetry::Symmetry;
use walk::Walks;

/// Ways to watch a search and to end it early.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Set it, and the search ends with what it has found so far.
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then, from any thread.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub states: u64,
    pub transitions: u64,
    pub depth: u32,
    /// States waiting to be explored.
    pub frontier: u64,
    /// In bytes.
    pub memory: u64,
}

impl Hooks<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    fn report(&self, progress: Progress) {
        if let Some(report) = self.progress {
            report(progress);
        }
    }
}

/// Explores every run of `P` in this system that `options` allow.
pub fn check<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    options: &Options,
    hooks: &Hooks<'_>,
) -> Result<Outcome, CheckError> {
    P::validate(config, topology).map_err(CheckError::Config)?;
    options.validate(topology)?;
    let outcome = search::<P>(topology, config, options, hooks);
    // Which thread comes first is chance. One alone finds the same way to break a promise always.
    if outcome.counterexample.is_some() && 1 < options.threads {
        let alone = Options { threads: 1, ..options.clone() };
        let again = search::<P>(topology, config, &alone, hooks);
        if again.counterexample.is_some() {
            return Ok(again);
        }
    }
    Ok(outcome)
}

fn search<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    options: &Options,
    hooks: &Hooks<'_>,
) -> Outcome {
    let setting = Setting { topology, options };
    let mut lore = Lore::new(Model::<P> { setting, config });
    let archive = Archive::new(setting, &mut lore);
    let oracle = Oracle::new(&archive);
    let mut explored = explore(&archive, &oracle, hooks);
    if options.search != Search::BreadthFirst {
        shorten(&archive, &mut explored, hooks);
    }
    verdict::conclude(&archive, &explored, &oracle, hooks)
}

/// Looks for a shorter way to break a promise, as far as so many states reach.
fn shorten<'a>(archive: &'a Archive<'a>, explored: &mut Explored, hooks: &Hooks<'_>) {
    const STATES_MAX: u64 = 2_000_000;
    let length = |finding: &bfs::Finding| {
        explored.log.distance(finding.state) + u32::from(finding.last.is_some())
    };
    let Some(found) = explored.findings.iter().map(length).min() else { return };
    let reach = Reach { depth_max: found, states_max: STATES_MAX };
    let nearest = bfs::explore(archive, hooks, None, None, reach);
    if !nearest.findings.is_empty() {
        (explored.findings, explored.log) = (nearest.findings, nearest.log);
    }
}

/// Searches with reductions before one without.
const BOLD_MAX: u32 = 8;

/// Explores; where reductions turn out to have been too bold, once more with what was learnt.
fn explore<'a>(archive: &'a Archive<'a>, oracle: &Oracle<'a>, hooks: &Hooks<'_>) -> Explored {
    let options = archive.setting.options;
    if options.reductions.symmetry && options.search == Search::BreadthFirst && !options.wide {
        for group in symmetry::groups(archive.setting) {
            let symmetry = Arc::new(Symmetry::new(group, &mut **archive::open(&archive.lore)));
            let explored = explore_as(archive, oracle, Some(&symmetry), hooks);
            if !symmetry.is_broken() {
                return explored;
            }
        }
    }
    explore_as(archive, oracle, None, hooks)
}

fn explore_as<'a>(
    archive: &'a Archive<'a>,
    oracle: &Oracle<'a>,
    symmetry: Option<&Arc<Symmetry>>,
    hooks: &Hooks<'_>,
) -> Explored {
    let options = archive.setting.options;
    let reach = Reach { depth_max: u32::MAX, states_max: options.states_max };
    let search = |oracle: Option<&Oracle<'a>>| match options.search {
        Search::BreadthFirst => bfs::explore(archive, hooks, oracle, symmetry, reach),
        Search::DepthFirst => dfs::explore(archive, hooks, oracle),
        Search::Walks { count, steps_max, seed } => {
            walk::explore(archive, Walks { count, steps_max, seed }, hooks)
        }
    };
    if options.reductions.ample {
        for _ in 0..BOLD_MAX {
            let explored = search(Some(oracle));
            let is_over = explored.stop == Some(Stop::Cancelled)
                || symmetry.is_some_and(|symmetry| symmetry.is_broken());
            if is_over || oracle.stands() {
                return explored;
            }
        }
    }
    search(None)
}
