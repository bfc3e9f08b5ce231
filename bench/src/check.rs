//! How fast the checker is: distinct states a second, without reductions, on the same systems as
//! others; and how far reductions carry it.

mod actors;
mod large;
#[path = "../../crates/vez-check/tests/models/mod.rs"]
mod models;
mod spin;

use vez_check::{Hooks, Judgement, Options, Outcome, check};
use vez_core::{Layout, Protocol, Topology};

use crate::measure::{Rates, Sample, in_turns};
use crate::sim::Scale;
use crate::table::{Table, Target};
use models::agrawala::{Agrawala, Flaw};
use models::ring::Ring;

/// One system, for us and for others.
struct System {
    name: &'static str,
    states: u64,
    ours: fn(threads: usize) -> Outcome,
    actors: fn(threads: usize) -> u64,
    promela: &'static str,
}

const SYSTEMS: [System; 2] = [
    System {
        name: "Ricart–Agrawala, n = 4",
        states: 2_070_348,
        ours: agrawala,
        actors: |threads| actors::agrawala(4, threads),
        promela: "ricart_agrawala",
    },
    System {
        name: "Chang–Roberts, n = 10",
        states: 1_243_826,
        ours: ring,
        actors: |threads| actors::ring(10, threads),
        promela: "chang_roberts",
    },
];

const MILLIONS: &str = "M states/s";

pub(crate) fn measure(scale: Scale) -> Table {
    let mut table = Table::default();
    let rounds = scale.pick(3, 1) as usize;
    for system in &SYSTEMS {
        for threads in [1, 2] {
            eprintln!("measuring {} on {threads} threads, and stateright …", system.name);
            against_actors(&mut table, system, threads, rounds);
        }
        eprintln!("measuring {} and SPIN …", system.name);
        if let Err(error) = against_spin(&mut table, system, rounds) {
            table.leave_out(format!("SPIN: {error:#}"));
        }
        memory(&mut table, system);
    }
    large::measure(&mut table);
    table
}

fn agrawala(threads: usize) -> Outcome {
    let topology = Topology::of(Layout::Complete, 4).expect("there are four");
    let options = Options { threads, ..Options::new(&Agrawala::META) };
    check::<Agrawala>(&topology, &Flaw::None, &options, &Hooks::default()).expect("it is sensible")
}

fn ring(threads: usize) -> Outcome {
    let descending = (1..=10).rev().collect();
    let topology = Topology::of(Layout::Ring, 10).expect("there are ten").with_uids(descending);
    let options = Options { entries: 0, threads, ..Options::new(&Ring::META) };
    check::<Ring>(&topology, &(), &options, &Hooks::default()).expect("it is sensible")
}

/// The states of a complete search in which every promise was kept.
fn counted(outcome: &Outcome) -> u64 {
    let kept = |judgement| judgement == Judgement::Kept;
    assert!(outcome.complete && outcome.promises.iter().all(|verdict| kept(verdict.judgement)));
    outcome.states
}

fn against_actors(table: &mut Table, system: &System, threads: usize, rounds: usize) {
    let [ours, theirs] = in_turns(
        rounds,
        [&mut || timed(system, threads, || counted(&(system.ours)(threads))), &mut || {
            timed(system, threads, || (system.actors)(threads))
        }],
    );
    let plural = if threads == 1 { "thread" } else { "threads" };
    let name = format!("{}, {threads} {plural}", system.name);
    faster(table, name, (&ours, "stateright, breadth first", &theirs), Target::AtLeast(10.0));
}

fn against_spin(table: &mut Table, system: &System, rounds: usize) -> anyhow::Result<()> {
    let verifier = spin::Verifier::new(system.promela)?;
    verifier.run()?;
    let [ours, theirs] = in_turns(
        rounds,
        [&mut || timed(system, 1, || counted(&(system.ours)(1))), &mut || {
            checked(system, verifier.run().expect("it has just worked"))
        }],
    );
    let name = format!("{}, 1 thread", system.name);
    faster(table, name, (&ours, "SPIN, no reduction", &theirs), Target::AtLeast(4.0));
    Ok(())
}

/// On one thread, time on the processor; on several, by the clock on the wall.
fn timed(system: &System, threads: usize, work: impl FnOnce() -> u64) -> Sample {
    checked(system, if threads == 1 { Sample::of(work) } else { Sample::on_the_wall(work) })
}

fn checked(system: &System, sample: Sample) -> Sample {
    assert_eq!(sample.messages, system.states, "{} has other states elsewhere", system.name);
    sample
}

fn faster(
    table: &mut Table,
    name: String,
    (ours, against, theirs): (&Rates, &str, &Rates),
    target: Target,
) {
    let (figure, baseline) = (ours.median() / 1e6, theirs.median() / 1e6);
    table.compare(name, (figure, MILLIONS), (against, baseline), ours.over(theirs), Some(target));
}

fn memory(table: &mut Table, system: &System) {
    let (outcome, whole) = crate::counting::counted(|| (system.ours)(1));
    let within = Some(Target::AtMost(1.0));
    let each = outcome.statistics.visited_bytes as f64 / outcome.states as f64;
    let name = format!("{}, visited set", system.name);
    table.compare(name, (each, "bytes/state"), ("limit", 16.0), each / 16.0, within);
    let megabytes = whole.peak as f64 / 1e6;
    let name = format!("{}, memory in all", system.name);
    table.compare(name, (megabytes, "MB"), ("limit", 200.0), megabytes / 200.0, within);
}
