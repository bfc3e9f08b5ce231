//! The same systems in other tools have so many states; here they have as many.

mod models;

use models::agrawala::{Agrawala, Flaw};
use models::ring::Ring;
use vez_check::{Hooks, Options, Outcome, check};
use vez_core::{Layout, Protocol, Topology};

fn agrawala(n: u32, entries: u32, threads: usize) -> Outcome {
    let topology = Topology::of(Layout::Complete, n).unwrap();
    let options = Options { entries, threads, ..Options::new(&Agrawala::META) };
    check::<Agrawala>(&topology, &Flaw::None, &options, &Hooks::default()).unwrap()
}

fn ring(n: u32, threads: usize) -> Outcome {
    let descending = (1..=u64::from(n)).rev().collect();
    let topology = Topology::of(Layout::Ring, n).unwrap().with_uids(descending);
    let options = Options { entries: 0, threads, ..Options::new(&Ring::META) };
    check::<Ring>(&topology, &(), &options, &Hooks::default()).unwrap()
}

#[test]
fn ricart_agrawala_has_the_states_other_tools_found() {
    for (n, entries, states) in [(3, 1, 2_822), (3, 2, 37_229)] {
        for threads in [1, 2] {
            let outcome = agrawala(n, entries, threads);
            assert_eq!((outcome.states, outcome.complete), (states, true), "{n} {entries}");
            assert!(outcome.kept());
            assert_eq!(outcome.statistics.endless, Some(false));
        }
    }
}

#[test]
fn ricart_agrawala_with_four_has_two_million_states_in_less_than_200_megabytes() {
    let outcome = agrawala(4, 1, 2);
    // Others count the beginning as a transition too.
    assert_eq!((outcome.states, outcome.transitions), (2_070_348, 13_381_842 - 1));
    assert!(outcome.complete && outcome.kept());
    assert!(outcome.statistics.visited_bytes <= 16 * outcome.states);
    assert!(outcome.statistics.memory_bytes < 200 << 20);
    assert!(outcome.statistics.collision_probability < 1e-6);
}

#[test]
fn chang_roberts_has_the_states_other_tools_found() {
    for (n, states) in [(4, 116), (5, 489), (6, 2_206), (8, 50_152)] {
        for threads in [1, 2] {
            let outcome = ring(n, threads);
            assert_eq!((outcome.states, outcome.complete), (states, true), "{n}");
            assert!(outcome.kept());
        }
    }
}

#[test]
fn chang_roberts_with_ten_has_the_states_other_tools_found() {
    let outcome = ring(10, 2);
    assert_eq!((outcome.states, outcome.transitions), (1_243_826, 6_340_148 - 1));
    assert!(outcome.complete && outcome.kept());
}
