//! From what was explored to what is said about it.

use vez_core::{Breach, Channel, Promise, Time};

use crate::ample::Oracle;
use crate::archive::{Archive, open};
use crate::bfs::{Explored, Finding};
use crate::code::Code;
use crate::graph::{self, Graph};
use crate::knowledge::Move;
use crate::live;
use crate::mind::Mind;
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

pub(crate) fn conclude<'a>(
    archive: &'a Archive<'a>,
    explored: &Explored,
    oracle: &Oracle<'a>,
    hooks: &Hooks<'_>,
) -> Outcome {
    let options = archive.setting.options;
    let mut counterexamples = findings(archive, explored);
    let mut endless = Endless::NotJudged;
    let searched = matches!(explored.stop, None | Some(Stop::Epoch | Stop::Broken));
    let exact = explored.visited.coverage().is_none() && options.channel != Channel::Lossy;
    if options.liveness && searched && exact {
        let broken = !counterexamples.is_empty() && !options.keep_going;
        if !explored.tally.turns_back {
            endless = Endless::None;
        } else if !broken {
            endless = judge_endless(archive, explored, oracle, hooks, &mut counterexamples);
        }
    }
    let verdicts = options.promises.iter().map(|&promise| {
        let broken = counterexamples.iter().find(|found| found.promise == promise);
        verdict(promise, broken, explored, endless, options.channel)
    });
    let promises: Vec<Verdict> = verdicts.collect();
    let statistics = statistics(archive, explored, endless);
    let worst_wait = open(&archive.lore).worst_wait();
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
fn findings<'a>(archive: &'a Archive<'a>, explored: &Explored) -> Vec<Counterexample> {
    let mut mind = Mind::new(archive);
    let mut counterexamples: Vec<Counterexample> = Vec::new();
    // A run that rests in a state of the same layer is one step shorter.
    let mut findings: Vec<&Finding> = explored.findings.iter().collect();
    findings.sort_by_key(|finding| (explored.log.distance(finding.state), finding.last.is_some()));
    for finding in findings {
        let Breach { promise, detail } = open(&archive.lore).breach(finding.breach);
        if counterexamples.iter().any(|known| known.promise == promise) {
            continue;
        }
        let Some(path) = retrace(&mut mind, &explored.log, finding) else { continue };
        let rests = finding.last.is_none();
        counterexamples.push(counterexample(&mut mind, &path, promise, detail, None, rests));
    }
    counterexamples
}

fn counterexample(
    mind: &mut Mind<'_>,
    path: &Path,
    promise: Promise,
    detail: String,
    cycle_from: Option<usize>,
    rests: bool,
) -> Counterexample {
    let (boots, moves) = path.moves(mind);
    let (steps, mut replay) = open(&mind.archive.lore).tell(&boots, &moves);
    // That time passes is not told.
    let is_told = |step: &&Move| !matches!(step.code, Code::Pass(_));
    let cycle_from = cycle_from.map(|from| moves[..from].iter().filter(is_told).count());
    let end = Time::from_millis(steps.len() as u64);
    replay.until = (!rests).then_some(end);
    Counterexample { promise, detail, steps, cycle_from, replay }
}

fn judge_endless<'a>(
    archive: &'a Archive<'a>,
    explored: &Explored,
    oracle: &Oracle<'a>,
    hooks: &Hooks<'_>,
    counterexamples: &mut Vec<Counterexample>,
) -> Endless {
    if open(&archive.lore).is_finite() {
        return Endless::None;
    }
    let options = archive.setting.options;
    let memory_max = options.memory_max;
    let needed = graph::bytes(explored.tally.states, explored.tally.transitions);
    if memory_max < needed || u64::from(u32::MAX) < explored.tally.transitions {
        return Endless::NotJudged;
    }
    let is_reduced = options.reductions.ample;
    let graph = Graph::new(archive, is_reduced.then_some(oracle), memory_max, hooks);
    let Some((mut graph, mut mind)) = graph else { return Endless::NotJudged };
    if !live::is_endless(&graph) {
        return Endless::None;
    }
    // What was left out matters to fairness: a way round is judged with everything that can
    // happen on it.
    if is_reduced {
        drop((graph, mind));
        let whole = Graph::new(archive, None, memory_max, hooks);
        let Some(whole) = whole else { return Endless::NotJudged };
        (graph, mind) = whole;
    }
    if let Some(lasso) = live::endless_debt(&graph, &mind) {
        let path = graph.path(&mut mind, lasso.start, &lasso.edges);
        let from = path.steps.len() - lasso.edges.len();
        let detail = match lasso.debt.node {
            Some(node) => {
                let name = mind.setting.topology.name(node);
                format!("{name} waits for ever: the run goes round and round")
            }
            None => "never settled for good: the run goes round and round".to_owned(),
        };
        let promise = lasso.debt.promise;
        counterexamples.push(counterexample(&mut mind, &path, promise, detail, Some(from), false));
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

fn statistics(archive: &Archive<'_>, explored: &Explored, endless: Endless) -> Statistics {
    let census = open(&archive.lore).census();
    let tally = &explored.tally;
    let faces = tally.renamings.max(1);
    Statistics {
        process_states: census.locals,
        messages: census.packets,
        spec_states: census.specs,
        steps: census.steps,
        frontier_max: explored.tally.frontier_max,
        visited_bytes: explored.visited.bytes(),
        memory_bytes: explored.tally.memory,
        collision_probability: explored.visited.collision_probability(tally.states, faces),
        coverage: explored.visited.coverage(),
        ample_states: explored.tally.ample_states,
        ample_saved: explored.tally.ample_saved,
        renamings: archive.setting.options.reductions.symmetry.then_some(explored.tally.renamings),
        endless: match endless {
            Endless::None => Some(false),
            Endless::Judged => Some(true),
            Endless::NotJudged => None,
        },
    }
}
