//! How fast the checker is: distinct states a second, without reductions, on the same systems as
//! others; and how far reductions carry it.

mod actors;
mod large;
#[path = "../../crates/vez-check/tests/models/mod.rs"]
mod models;
mod spin;

use std::process::Command;

use anyhow::Context;
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
    ours: fn(threads: usize, wide: bool) -> Outcome,
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
        eprintln!("measuring {}: two threads, wide fingerprints, memory …", system.name);
        against_itself(&mut table, system, rounds);
        if let Err(error) = memory(&mut table, system) {
            table.leave_out(format!("resident memory: {error:#}"));
        }
    }
    large::measure(&mut table);
    table
}

fn agrawala(threads: usize, wide: bool) -> Outcome {
    let topology = Topology::of(Layout::Complete, 4).expect("there are four");
    let options = Options { threads, wide, ..Options::new(&Agrawala::META) };
    check::<Agrawala>(&topology, &Flaw::None, &options, &Hooks::default()).expect("it is sensible")
}

fn ring(threads: usize, wide: bool) -> Outcome {
    let descending = (1..=10).rev().collect();
    let topology = Topology::of(Layout::Ring, 10).expect("there are ten").with_uids(descending);
    let options = Options { entries: 0, threads, wide, ..Options::new(&Ring::META) };
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
        [&mut || timed(system, threads, || counted(&(system.ours)(threads, false))), &mut || {
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
        [&mut || timed(system, 1, || counted(&(system.ours)(1, false))), &mut || {
            checked(system, verifier.run().expect("it has just worked"))
        }],
    );
    let name = format!("{}, 1 thread", system.name);
    faster(table, name, (&ours, "SPIN, no reduction", &theirs), Target::AtLeast(4.0));
    Ok(())
}

/// What two threads gain, by the clock on the wall, and what wide fingerprints cost.
fn against_itself(table: &mut Table, system: &System, rounds: usize) {
    let on_the_wall = |threads, wide| {
        let work = || counted(&(system.ours)(threads, wide));
        checked(system, Sample::on_the_wall(work))
    };
    let [two, wide, one] = in_turns(
        rounds,
        [&mut || on_the_wall(2, false), &mut || on_the_wall(1, true), &mut || {
            on_the_wall(1, false)
        }],
    );
    let name = format!("{}, 2 threads", system.name);
    faster(table, name, (&two, "1 thread", &one), Target::AtLeast(1.3));
    let (figure, baseline) = (wide.median() / 1e6, one.median() / 1e6);
    let name = format!("{}, 128 bits", system.name);
    table.compare(name, (figure, MILLIONS), ("64 bits", baseline), wide.over(&one), None);
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

/// The most memory a program held that did nothing but search this system, in bytes.
fn resident(system: &System) -> anyhow::Result<f64> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["resident", system.promela]).output()?;
    let kilobytes: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(kilobytes * 1024.0)
}

/// Searches one system, and prints the most kilobytes that were ever resident.
pub(crate) fn print_resident(name: &str) -> anyhow::Result<()> {
    let system = SYSTEMS.iter().find(|system| system.promela == name);
    let system = system.context("no such system")?;
    counted(&(system.ours)(1, false));
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next());
    println!("{}", peak.context("the system does not say")?);
    Ok(())
}

fn memory(table: &mut Table, system: &System) -> anyhow::Result<()> {
    let (outcome, whole) = crate::counting::counted(|| (system.ours)(1, false));
    let within = Some(Target::AtMost(1.0));
    let each = outcome.statistics.visited_bytes as f64 / outcome.states as f64;
    let name = format!("{}, visited set", system.name);
    table.compare(name, (each, "bytes/state"), ("limit", 16.0), each / 16.0, within);
    let megabytes = whole.peak as f64 / 1e6;
    let name = format!("{}, memory in all", system.name);
    table.compare(name, (megabytes, "MB"), ("limit", 200.0), megabytes / 200.0, within);
    let megabytes = resident(system)? / 1e6;
    let name = format!("{}, memory resident", system.name);
    table.compare(name, (megabytes, "MB"), ("limit", 200.0), megabytes / 200.0, within);
    Ok(())
}
