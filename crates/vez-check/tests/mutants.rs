//! Broken protocols: what is wrong with each is found, the shortest way.

mod models;

use models::agrawala::{Agrawala, Flaw};
use models::grants::{self, Grants};
use models::tries::{self, Tries};
use models::votes::{self, Votes};
use vez_check::{Act, Counterexample, Hooks, Judgement, Options, Outcome, check};
use vez_core::{Layout, Promise, Protocol, Topology};

fn explore<P: Protocol>(n: u32, config: &P::Config, options: &Options) -> Outcome {
    let topology = Topology::of(Layout::Complete, n).unwrap();
    check::<P>(&topology, config, options, &Hooks::default()).unwrap()
}

#[test]
fn every_flaw_of_ricart_agrawala_is_found_the_shortest_way() {
    let expected = [
        (Flaw::NoTieBreak, 1, Promise::NoDeadlock, 4),
        (Flaw::BothGiveWay, 1, Promise::MutualExclusion, 6),
        (Flaw::NeverDefersInside, 1, Promise::MutualExclusion, 6),
        (Flaw::DeafClock, 1, Promise::MutualExclusion, 6),
        (Flaw::NeverCatchesUp, 1, Promise::NoDeadlock, 6),
        (Flaw::Impatient, 1, Promise::MutualExclusion, 2),
    ];
    for (flaw, entries, promise, steps) in expected {
        let options = Options { entries, ..Options::new(&Agrawala::META) };
        let outcome = explore::<Agrawala>(2, &flaw, &options);
        let found = outcome.counterexample.unwrap_or_else(|| panic!("{flaw:?} was not found"));
        assert_eq!((found.promise, found.steps.len()), (promise, steps), "{flaw:?}: {found:#?}");
    }
}

#[test]
fn a_coordinator_that_grants_twice_is_found_the_shortest_way() {
    let options = Options::new(&Grants::META);
    let outcome = explore::<Grants>(3, &grants::Flaw::None, &options);
    assert!(outcome.complete && outcome.kept());
    let found = explore::<Grants>(3, &grants::Flaw::GrantsTwice, &options).counterexample.unwrap();
    assert_eq!((found.promise, found.steps.len()), (Promise::MutualExclusion, 4), "{found:#?}");
}

#[test]
fn whoever_changes_its_mind_finds_who_does_not_expect_it() {
    let flaw = grants::Flaw::MistakesWithdrawal;
    let patient = Options::new(&Grants::META);
    assert!(explore::<Grants>(3, &flaw, &patient).kept());
    let fickle = Options { withdrawals: 1, ..patient };
    let outcome = explore::<Grants>(3, &grants::Flaw::None, &fickle);
    assert!(outcome.complete && outcome.kept());
    let found = explore::<Grants>(3, &flaw, &fickle).counterexample.unwrap();
    assert_eq!(found.promise, Promise::MutualExclusion, "{found:#?}");
    assert!(found.replay.inputs.iter().any(|(_, act)| matches!(act, Act::Withdraw(_))));
}

#[test]
fn the_way_found_does_not_depend_on_the_number_of_threads() {
    for flaw in [Flaw::BothGiveWay, Flaw::NeverDefersInside, Flaw::DeafClock] {
        let [alone, together] = [1, 3].map(|threads| {
            let options = Options { threads, ..Options::new(&Agrawala::META) };
            explore::<Agrawala>(3, &flaw, &options)
        });
        assert_eq!(alone.counterexample, together.counterexample, "{flaw:?}");
    }
    let [alone, together] = [1, 3].map(|threads| {
        let options = Options { threads, ..Options::new(&Tries::META) };
        explore::<Tries>(2, &tries::Config { in_order: false }, &options)
    });
    assert_eq!(alone.counterexample, together.counterexample);
}

#[test]
fn half_the_votes_are_not_enough() {
    let config = votes::Config { quorum: 2, persists: true };
    let options = Options { crashes: 0, ..Options::new(&Votes::META) };
    let found = explore::<Votes>(4, &config, &options).counterexample.unwrap();
    assert_eq!((found.promise, found.steps.len()), (Promise::Uniqueness, 6));
    let majority = votes::Config { quorum: 3, persists: true };
    let outcome = explore::<Votes>(4, &majority, &options);
    assert!(outcome.complete && outcome.kept());
}

#[test]
fn a_vote_must_survive_a_crash() {
    let options = Options::new(&Votes::META);
    let outcome = explore::<Votes>(3, &votes::Config::default(), &options);
    assert!(outcome.complete && outcome.kept());
    let forgetful = votes::Config { persists: false, ..votes::Config::default() };
    let found = explore::<Votes>(3, &forgetful, &options).counterexample.unwrap();
    assert_eq!((found.promise, found.steps.len()), (Promise::Uniqueness, 8));
    // Saving is of no use if the disk is lost.
    let options = Options { amnesia: true, ..options };
    let found = explore::<Votes>(3, &votes::Config::default(), &options).counterexample.unwrap();
    assert_eq!((found.promise, found.steps.len()), (Promise::Uniqueness, 8));
}

fn lasso(found: &Counterexample) -> (Promise, usize, usize) {
    let from = found.cycle_from.expect("it goes round");
    (found.promise, from, found.steps.len() - from)
}

#[test]
fn who_tries_for_ever_is_found_though_nobody_is_ever_stuck() {
    let options = Options::new(&Tries::META);
    let outcome = explore::<Tries>(2, &tries::Config { in_order: false }, &options);
    let found = outcome.counterexample.clone().unwrap();
    assert_eq!(lasso(&found), (Promise::NoStarvation, 2, 6));
    assert_eq!(outcome.verdict(Promise::NoDeadlock).unwrap().judgement, Judgement::Kept);
    // Without a look at runs that never end, nothing is wrong.
    let blind = Options { liveness: false, ..options.clone() };
    let outcome = explore::<Tries>(2, &tries::Config { in_order: false }, &blind);
    assert_eq!(outcome.counterexample, None);
    let verdict = outcome.verdict(Promise::NoStarvation).unwrap();
    assert_eq!(verdict.judgement, Judgement::KeptSoFar);
    let cured = explore::<Tries>(2, &tries::Config { in_order: true }, &options);
    assert!(cured.complete && cured.kept());
}
