//! From what was explored to what is said about it.

use std::sync::Mutex;

use vez_core::{Breach, Channel, Promise, Protocol, Time};

use crate::ample::Oracle;
use crate::bfs::{Explored, Finding};
use crate::graph::{self, Graph};
use crate::live;
use crate::lore::Lore;
use crate::mind::{Mind, open};
use crate::narrate::narrate;
use crate::retrace::{Path, retrace};
use crate::{Counterexample, Hooks, Judgement, Outcome, Statistics, Stop, Verdict};

/// What runs that never end showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endless {
    /// There are none.
    None,
    Judged,
    NotJudged,
}

pub(crate) fn conclude<'a, P: Protocol>(
    lore: &'a Mutex<Lore<'a, P>>,
    explored: &Explored,
    oracle: &Oracle<'a, P>,
    hooks: &Hooks<'_>,
) -> Outcome {
    let model = open(lore).model;
    let options = model.options;
    let mut counterexamples = findings(lore, explored);
    let mut endless = Endless::NotJudged;
    let searched = matches!(explored.stop, None | Some(Stop::Epoch | Stop::Broken));
    let exact = explored.visited.coverage().is_none() && options.channel != Channel::Lossy;
    if options.liveness && searched && exact {
        let broken = !counterexamples.is_empty() && !options.keep_going;
        if !explored.tally.turns_back {
            endless = Endless::None;
        } else if !broken {
            endless = judge_endless(lore, explored, oracle, hooks, &mut counterexamples);
        }
    }
    let verdicts = options.promises.iter().map(|&promise| {
        let broken = counterexamples.iter().find(|found| found.promise == promise);
        verdict(promise, broken, explored, endless, options.channel)
    });
    let promises: Vec<Verdict> = verdicts.collect();
    let statistics = statistics(lore, explored, endless);
    let worst_wait = open(lore).worst_wait;
    counterexamples.sort_by_key(|found| found.steps.len());
    let promises = promises
        .into_iter()
        .map(|verdict| match (verdict.promise, worst_wait, &verdict.detail) {
            (Promise::BoundedWait, Some(worst), None) => {
                let detail = Some(format!("at most {worst} × another entered while one waited"));
                Verdict { detail, ..verdict }
            }
            _ => verdict,
        })
        .collect();
    let stopped = match explored.stop {
        None if options.reductions.bitstate.is_some() => Some(Stop::Bitstate),
        None if !counterexamples.is_empty() => Some(Stop::Broken),
        stop => stop,
    };
    Outcome {
        states: explored.tally.states,
        transitions: explored.tally.transitions,
        depth: explored.tally.depth,
        complete: stopped.is_none(),
        stopped,
        promises,
        counterexample: counterexamples.into_iter().next(),
        unexpected: explored.tally.unexpected,
        worst_wait,
        statistics,
    }
}

/// The shortest counterexample to each promise found broken.
fn findings<'a, P: Protocol>(
    lore: &'a Mutex<Lore<'a, P>>,
    explored: &Explored,
) -> Vec<Counterexample> {
    let mut mind = Mind::new(lore);
    let mut counterexamples: Vec<Counterexample> = Vec::new();
    // A run that rests in a state of the same layer is one step shorter.
    let mut findings: Vec<&Finding> = explored.findings.iter().collect();
    findings.sort_by_key(|finding| (explored.log.distance(finding.state), finding.last.is_some()));
    for finding in findings {
        let Breach { promise, detail } = open(lore).breaches[finding.breach as usize - 1].clone();
        if counterexamples.iter().any(|known| known.promise == promise) {
            continue;
        }
        let Some(path) = retrace(&mut mind, &explored.log, finding) else { continue };
        let rests = finding.last.is_none();
        counterexamples.push(counterexample(&mind, &path, promise, detail, None, rests));
    }
    counterexamples
}

pub(crate) fn counterexample<P: Protocol>(
    mind: &Mind<'_, P>,
    path: &Path,
    promise: Promise,
    detail: String,
    cycle_from: Option<usize>,
    rests: bool,
) -> Counterexample {
    let (steps, mut replay) = narrate(mind, path);
    let end = Time::from_millis(steps.len() as u64);
    replay.until = (!rests).then_some(end);
    Counterexample { promise, detail, steps, cycle_from, replay }
}

fn judge_endless<'a, P: Protocol>(
    lore: &'a Mutex<Lore<'a, P>>,
    explored: &Explored,
    oracle: &Oracle<'a, P>,
    hooks: &Hooks<'_>,
    counterexamples: &mut Vec<Counterexample>,
) -> Endless {
    let model = open(lore).model;
    let reductions = &model.options.reductions;
    let needed = graph::bytes(explored.tally.states, explored.tally.transitions);
    if model.options.memory_max < needed || u64::from(u32::MAX) < explored.tally.transitions {
        return Endless::NotJudged;
    }
    let Some((graph, mut mind)) = Graph::new(lore, reductions.ample.then_some(oracle), hooks)
    else {
        return Endless::NotJudged;
    };
    // What was left out may be left out of a way round only where fairness does not matter.
    if !live::is_endless(&graph) {
        return Endless::None;
    } else if reductions.ample {
        return Endless::NotJudged;
    }
    if let Some(lasso) = live::endless_debt(&graph, &mind) {
        let path = graph.path(&mut mind, lasso.start, &lasso.edges);
        let from = path.steps.len() - lasso.edges.len();
        let round = lasso.edges.len();
        let detail = match lasso.debt.node {
            Some(node) => {
                let name = mind.model.topology.name(node);
                format!("{name} waits for ever: the last {round} steps go round and round")
            }
            None => format!("never settled for good: the last {round} steps go round and round"),
        };
        let promise = lasso.debt.promise;
        counterexamples.push(counterexample(&mind, &path, promise, detail, Some(from), false));
    }
    Endless::Judged
}

fn verdict(
    promise: Promise,
    broken: Option<&Counterexample>,
    explored: &Explored,
    endless: Endless,
    channel: Channel,
) -> Verdict {
    let about_ends = matches!(
        promise,
        Promise::NoDeadlock | Promise::NoStarvation | Promise::Termination | Promise::Agreement
    );
    let at_rest_only = matches!(promise, Promise::NoDeadlock | Promise::Validity);
    let judgement = match broken {
        Some(_) => Judgement::Broken,
        None if channel == Channel::Lossy && (about_ends || at_rest_only) => Judgement::Unjudged,
        None if explored.stop.is_some() || explored.visited.coverage().is_some() => {
            Judgement::KeptSoFar
        }
        None if about_ends && !at_rest_only && endless == Endless::NotJudged => {
            Judgement::KeptSoFar
        }
        None => Judgement::Kept,
    };
    Verdict { promise, judgement, detail: broken.map(|found| found.detail.clone()) }
}

fn statistics<P: Protocol>(
    lore: &Mutex<Lore<'_, P>>,
    explored: &Explored,
    endless: Endless,
) -> Statistics {
    let lore = open(lore);
    Statistics {
        process_states: (lore.locals.len() - lore.model.topology.n() as usize) as u64,
        messages: lore.packets.len() as u64,
        spec_states: lore.specs.len() as u64,
        steps: lore.steps(),
        frontier_max: explored.tally.frontier_max,
        visited_bytes: explored.visited.bytes(),
        memory_bytes: explored.tally.memory,
        collision_probability: explored.visited.collision_probability(explored.tally.states),
        coverage: explored.visited.coverage(),
        ample_states: explored.tally.ample_states,
        ample_saved: explored.tally.ample_saved,
        endless: match endless {
            Endless::None => Some(false),
            Endless::Judged => Some(true),
            Endless::NotJudged => None,
        },
    }
}
