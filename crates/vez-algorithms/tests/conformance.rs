//! Holds every algorithm to what its `META` claims. A new algorithm is tested by being listed.

mod common;

use common::{fair_run, mutex, traced};
use vez_algorithms::{Visitor, visit_all};
use vez_core::problem::mutex::Entry;
use vez_core::{Crashes, Problem, Protocol, Wish};
use vez_sim::{Input, simulate};

#[test]
fn keeps_its_promises_on_many_seeds() {
    struct Simulate;
    impl Visitor for Simulate {
        fn visit<P: Protocol>(&mut self) {
            for seed in 0..200 {
                let (topology, plan) = fair_run::<P>(seed);
                let report = simulate::<P>(&topology, &P::Config::default(), &plan);
                let name = P::META.name;
                let broken: Vec<_> =
                    report.promises.iter().filter(|v| v.claimed && !v.kept).collect();
                assert!(broken.is_empty(), "{name}, seed {seed}: {broken:?}\n{plan:?}");
                let unexpected = report.unexpected_first;
                assert_eq!(unexpected, None, "{name}, seed {seed}\n{plan:?}");
            }
        }
    }
    visit_all(&mut Simulate);
}

/// Or the crashes of the runs above prove nothing.
#[test]
fn crashes_strike_users_who_wait_or_are_inside() {
    struct Count;
    impl Visitor for Count {
        fn visit<P: Protocol>(&mut self) {
            let is_mutex = P::Problem::request(Wish::Acquire).is_some();
            if P::META.crashes == Crashes::None || !is_mutex {
                return;
            }
            let (mut waits, mut inside) = (0, 0);
            for seed in 0..200 {
                let (topology, plan) = fair_run::<P>(seed);
                let report = simulate::<P>(&topology, &P::Config::default(), &plan);
                let entries = &mutex(&report).entries;
                inside += entries.iter().filter(|entry| entry.left.is_none()).count();
                for &(at, ref input) in &plan.inputs {
                    let is_crash = matches!(input, Input::Crash(_));
                    let waited = |entry: &&Entry| entry.requested < at && at < entry.entered;
                    waits += if is_crash { entries.iter().filter(waited).count() } else { 0 };
                }
            }
            assert!(10 < waits && 0 < inside, "{}: {waits}, {inside}", P::META.name);
        }
    }
    visit_all(&mut Count);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    struct Replay;
    impl Visitor for Replay {
        fn visit<P: Protocol>(&mut self) {
            for seed in [3, 7, 11] {
                let (topology, plan) = fair_run::<P>(seed);
                let (watched, lines) = traced::<P>(&topology, &plan);
                assert_eq!(traced::<P>(&topology, &plan), (watched.clone(), lines), "{seed}");
                let unwatched = simulate::<P>(&topology, &P::Config::default(), &plan);
                assert_eq!(unwatched, watched, "watching {} changed it", P::META.name);
            }
        }
    }
    visit_all(&mut Replay);
}
