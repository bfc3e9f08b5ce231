//! Every way to search less, or otherwise, comes to the same verdict.

mod models;

use models::agrawala::{Agrawala, Flaw};
use models::grants::{self, Grants};
use models::ring::Ring;
use models::tries::{self, Tries};
use models::votes::{self, Votes};
use vez_check::{Hooks, Judgement, Options, Outcome, Reductions, Search, check};
use vez_core::{Promise, Protocol, Topology};

fn explore<P: Protocol>(n: u32, config: &P::Config, options: &Options) -> Outcome {
    let topology = Topology::of(P::META.layout, n).unwrap();
    check::<P>(&topology, config, options, &Hooks::default()).unwrap()
}

fn ample(options: &Options) -> Options {
    let reductions = Reductions { ample: true, ..Reductions::default() };
    Options { reductions, ..options.clone() }
}

fn nameless(options: &Options) -> Options {
    let reductions = Reductions { symmetry: true, ..options.reductions.clone() };
    Options { reductions, ..options.clone() }
}

/// Searches with and without; returns how many states each saw.
fn agree<P: Protocol>(n: u32, config: &P::Config, options: &Options) -> (u64, u64) {
    let whole = explore::<P>(n, config, options);
    let reduced = explore::<P>(n, config, &ample(options));
    let verdict = |outcome: &Outcome| {
        outcome.counterexample.as_ref().map(|found| (found.promise, found.detail.clone()))
    };
    let broken = |outcome: &Outcome| verdict(outcome).map(|(promise, _)| promise);
    assert_eq!(broken(&whole), broken(&reduced), "{n} {config:?}");
    assert_eq!(whole.complete, reduced.complete);
    assert!(reduced.states <= whole.states);
    (whole.states, reduced.states)
}

#[test]
fn one_way_on_is_enough_on_rings() {
    let options = Options { entries: 0, ..Options::new(&Ring::META) };
    assert_eq!(agree::<Ring>(5, &(), &options), (161, 120));
    let descending = (1..=8).rev().collect();
    let topology = Topology::of(Ring::META.layout, 8).unwrap().with_uids(descending);
    let reduced = check::<Ring>(&topology, &(), &ample(&options), &Hooks::default()).unwrap();
    assert_eq!((reduced.states, reduced.complete), (10_139, true));
    assert_eq!(reduced.statistics.endless, Some(false));
    assert!(reduced.promises.iter().all(|verdict| verdict.judgement == Judgement::Kept));
}

#[test]
fn one_way_on_is_enough_for_ricart_agrawala_and_each_of_its_flaws() {
    let flaws = [
        Flaw::None,
        Flaw::NoTieBreak,
        Flaw::BothGiveWay,
        Flaw::NeverDefersInside,
        Flaw::DeafClock,
        Flaw::NeverCatchesUp,
        Flaw::Impatient,
    ];
    for flaw in flaws {
        for n in [2, 3] {
            agree::<Agrawala>(n, &flaw, &Options::new(&Agrawala::META));
        }
    }
    let found = agree::<Agrawala>(3, &Flaw::None, &Options::new(&Agrawala::META));
    assert_eq!(found, (2_822, 2_618));
}

#[test]
fn one_way_on_is_enough_for_votes() {
    let channel = vez_core::Channel::Reliable;
    let options = Options { channel, ..Options::new(&Votes::META) };
    for persists in [true, false] {
        for crashes in [0, 1] {
            let options = Options { crashes, ..options.clone() };
            agree::<Votes>(3, &votes::Config { quorum: 2, persists }, &options);
        }
    }
    agree::<Votes>(
        4,
        &votes::Config { quorum: 2, persists: true },
        &Options { crashes: 0, ..options },
    );
}

#[test]
fn where_runs_never_end_they_are_judged_with_nothing_left_out() {
    let options = Options::new(&Tries::META);
    for (in_order, judgement) in [(false, Judgement::Broken), (true, Judgement::Kept)] {
        let outcome = explore::<Tries>(2, &tries::Config { in_order }, &ample(&options));
        let verdict = outcome.verdict(Promise::NoStarvation).unwrap();
        assert_eq!(verdict.judgement, judgement);
    }
}

#[test]
fn one_way_on_is_enough_for_a_coordinator_and_each_of_its_flaws() {
    for flaw in [grants::Flaw::None, grants::Flaw::GrantsTwice, grants::Flaw::MistakesWithdrawal] {
        for withdrawals in [0, 1] {
            let options = Options { withdrawals, ..Options::new(&Grants::META) };
            agree::<Grants>(3, &flaw, &options);
        }
    }
}

#[test]
fn where_who_is_who_does_not_matter_one_of_many_is_enough() {
    let channel = vez_core::Channel::Reliable;
    for (n, crashes, quorum) in [(3, 1, 2), (4, 0, 3), (4, 0, 2), (3, 1, 1)] {
        for persists in [true, false] {
            let options = Options { channel, crashes, ..Options::new(&Votes::META) };
            let config = votes::Config { quorum, persists };
            let all = explore::<Votes>(n, &config, &options);
            let ways: u64 = (1..=u64::from(n)).product();
            for options in [nameless(&options), nameless(&ample(&options))] {
                let some = explore::<Votes>(n, &config, &options);
                assert_eq!(some.statistics.renamings, Some(ways));
                assert_eq!(some.complete, all.complete);
                let is_ample = options.reductions.ample;
                let found = |outcome: &Outcome| {
                    let found = outcome.counterexample.as_ref();
                    // Who leaves out orders need not find the shortest way.
                    found.map(|found| (found.promise, found.steps.len() * usize::from(!is_ample)))
                };
                assert_eq!(found(&some), found(&all), "{n} {config:?}");
                // Of all that are alike, at least one and not all.
                assert!(some.states < all.states, "{} {}", some.states, all.states);
                let is_whole = all.complete && !is_ample;
                assert!(!is_whole || all.states <= ways * some.states);
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter_where_names_do_not() {
    let options = nameless(&Options::new(&Votes::META));
    let [alone, together] = [1, 3].map(|threads| {
        let options = Options { threads, ..options.clone() };
        let outcome = explore::<Votes>(3, &votes::Config::default(), &options);
        (outcome.states, outcome.transitions, outcome.complete)
    });
    assert_eq!(alone, together);
}

#[test]
fn where_who_is_who_matters_nothing_is_left_out() {
    let options = Options::new(&Agrawala::META);
    for flaw in [Flaw::None, Flaw::NoTieBreak, Flaw::BothGiveWay] {
        let all = explore::<Agrawala>(3, &flaw, &options);
        let some = explore::<Agrawala>(3, &flaw, &nameless(&options));
        let length =
            |outcome: &Outcome| outcome.counterexample.as_ref().map(|found| found.steps.len());
        assert_eq!(length(&some), length(&all), "{flaw:?}");
        // Ties are broken by names; without ties, or where both give way, they are not.
        match flaw {
            Flaw::None => {
                assert_eq!((some.states, some.statistics.renamings), (2_822, Some(1)));
            }
            _ => assert_eq!(some.statistics.renamings, Some(6)),
        }
    }
}

#[test]
fn what_is_found_deep_down_or_by_chance_is_told_the_shortest_way() {
    let near = Options::new(&Agrawala::META);
    let chance = Search::Walks { count: 2_000, steps_max: 60, seed: 7 };
    for flaw in [Flaw::NoTieBreak, Flaw::BothGiveWay, Flaw::NeverDefersInside] {
        let length = |search| {
            let options = Options { search, ..near.clone() };
            explore::<Agrawala>(3, &flaw, &options).counterexample.unwrap().steps.len()
        };
        let shortest = length(Search::BreadthFirst);
        assert_eq!((length(Search::DepthFirst), length(chance)), (shortest, shortest), "{flaw:?}");
    }
}

#[test]
fn depth_first_sees_the_same_states_and_the_same_flaws() {
    let deep = |options: &Options| Options { search: Search::DepthFirst, ..options.clone() };
    let options = Options::new(&Agrawala::META);
    let outcome = explore::<Agrawala>(3, &Flaw::None, &deep(&options));
    assert_eq!((outcome.states, outcome.transitions), (2_822, 9_005));
    assert!(outcome.complete && outcome.kept());
    for flaw in [Flaw::NoTieBreak, Flaw::BothGiveWay, Flaw::NeverDefersInside] {
        let found = explore::<Agrawala>(2, &flaw, &deep(&options)).counterexample;
        assert!(found.is_some(), "{flaw:?}");
    }
    let outcome =
        explore::<Tries>(2, &tries::Config { in_order: false }, &deep(&Options::new(&Tries::META)));
    assert!(outcome.counterexample.unwrap().cycle_from.is_some());
}

#[test]
fn random_runs_find_flaws_and_prove_nothing() {
    let search = Search::Walks { count: 2_000, steps_max: 60, seed: 7 };
    let options = Options { search, threads: 2, ..Options::new(&Agrawala::META) };
    for flaw in [Flaw::NoTieBreak, Flaw::BothGiveWay, Flaw::NeverDefersInside] {
        let found = explore::<Agrawala>(3, &flaw, &options).counterexample;
        assert!(found.is_some(), "{flaw:?}");
    }
    let outcome = explore::<Agrawala>(3, &Flaw::None, &options);
    assert!(outcome.kept() && !outcome.complete);
    assert!(outcome.promises.iter().all(|verdict| verdict.judgement == Judgement::KeptSoFar));
    assert!(1_000 < outcome.states && outcome.states <= 2_822, "{}", outcome.states);
}

#[test]
fn bits_instead_of_fingerprints_overlook_few_and_say_so() {
    let reductions = Reductions { bitstate: Some(1 << 20), ..Reductions::default() };
    let options = Options { reductions, entries: 2, ..Options::new(&Agrawala::META) };
    let outcome = explore::<Agrawala>(3, &Flaw::None, &options);
    assert!((37_000..=37_229).contains(&outcome.states), "{}", outcome.states);
    assert!(!outcome.complete);
    assert!(0.99 < outcome.statistics.coverage.unwrap());
    let found = explore::<Agrawala>(2, &Flaw::BothGiveWay, &options).counterexample.unwrap();
    assert_eq!(found.steps.len(), 6);
}

#[test]
fn another_salt_gives_the_same_counts() {
    for salt in [1, 2, 3] {
        let options = Options { salt, ..Options::new(&Agrawala::META) };
        assert_eq!(explore::<Agrawala>(3, &Flaw::None, &options).states, 2_822);
    }
}

#[test]
fn wide_fingerprints_give_the_same_counts_and_leave_less_to_chance() {
    let narrow = Options { entries: 2, ..Options::new(&Agrawala::META) };
    let whole = explore::<Agrawala>(3, &Flaw::None, &narrow);
    for (search, threads) in [(Search::BreadthFirst, 2), (Search::DepthFirst, 1)] {
        let options = Options { wide: true, search, threads, ..narrow.clone() };
        let outcome = explore::<Agrawala>(3, &Flaw::None, &options);
        assert_eq!((outcome.states, outcome.transitions), (37_229, whole.transitions));
        assert!(outcome.complete && outcome.kept());
        assert!(outcome.statistics.collision_probability < 1e-25);
        assert!(16 * outcome.states <= outcome.statistics.visited_bytes);
        assert!(outcome.statistics.visited_bytes <= 32 * outcome.states);
    }
    // Runs that never end are judged on a graph of its own.
    let options = Options { wide: true, ..Options::new(&Tries::META) };
    let outcome = explore::<Tries>(2, &tries::Config { in_order: false }, &options);
    let steps = outcome.counterexample.unwrap().steps;
    let narrow =
        explore::<Tries>(2, &tries::Config { in_order: false }, &Options::new(&Tries::META));
    assert_eq!(steps, narrow.counterexample.unwrap().steps);
}
