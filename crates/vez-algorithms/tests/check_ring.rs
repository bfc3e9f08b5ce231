//! Every run of small rings that mend themselves: one token, however the crash falls. The counts
//! are pinned: a change is a fact to explain.

use vez_algorithms::mutex::TokenRing;
use vez_algorithms::mutex::token_ring::Config;
use vez_check::{Counterexample, Hooks, Judgement, Options, Outcome, Reductions, Stop, check};
use vez_core::{NodeId, Promise, Protocol, Time, Timing, Topology};

const SAFETY: [Promise; 2] = [Promise::MutualExclusion, Promise::Fencing];

fn mending() -> Config {
    let (hop_within, lap_within) = (Some(Time::from_millis(5)), Some(Time::from_millis(100)));
    Config { hop_within, lap_within, ..Config::default() }
}

/// Timeouts do not lie, and each message arrives once; but not in the order they were sent in.
fn one_crash() -> Options {
    let promises = SAFETY.into_iter().chain([Promise::NoDeadlock, Promise::NoStarvation]).collect();
    let timing = Timing::Synchronous;
    let options = Options { timing, promises, crashes: 1, ..Options::new(&TokenRing::META) };
    Options { bounded_wait: false, ..options }
}

fn explore(uids: &[u64], options: &Options) -> Outcome {
    let n = u32::try_from(uids.len()).unwrap();
    let topology = Topology::of(TokenRing::META.layout, n).unwrap().with_uids(uids.to_vec());
    check::<TokenRing>(&topology, &mending(), options, &Hooks::default()).unwrap()
}

/// States and transitions, of a search of everything up to an epoch that found nothing broken.
fn counts(uids: &[u64], options: &Options) -> (u64, u64) {
    let outcome = explore(uids, options);
    assert_eq!(outcome.counterexample, None);
    assert_eq!((outcome.stopped, outcome.unexpected), (Some(Stop::Epoch), 0));
    assert!(outcome.promises.iter().all(|verdict| verdict.judgement == Judgement::KeptSoFar));
    (outcome.states, outcome.transitions)
}

#[test]
fn a_mending_ring_of_three_keeps_its_promises_with_a_crash_whoever_is_the_largest() {
    let expected: [(&[u64], u64, u64); 3] = [
        (&[1, 2, 3], 215_807, 511_756),
        (&[2, 3, 1], 218_545, 518_148),
        (&[3, 2, 1], 270_260, 634_401),
    ];
    for (uids, states, transitions) in expected {
        assert_eq!(counts(uids, &one_crash()), (states, transitions), "{uids:?}");
    }
}

#[test]
fn a_mending_ring_of_three_keeps_its_promises_with_two_crashes() {
    let options = Options { crashes: 2, ..one_crash() };
    assert_eq!(counts(&[1, 2, 3], &options), (409_111, 1_107_943));
}

#[test]
fn a_mending_ring_of_three_keeps_its_promises_with_a_crash_and_a_return() {
    let options = Options { restarts: true, unsent: true, epoch_max: 1, ..one_crash() };
    assert_eq!(counts(&[1, 2, 3], &options), (462_568, 1_018_725));
}

#[test]
fn a_mending_ring_of_four_keeps_its_promises_with_a_crash() {
    let options = Options { epoch_max: 0, ..one_crash() };
    assert_eq!(counts(&[1, 2, 3, 4], &options), (261_319, 805_176));
}

#[test]
fn a_mending_ring_of_four_is_safe_with_a_crash_for_another_lap_and_epoch() {
    let (promises, liveness) = (SAFETY.to_vec(), false);
    let options = Options { epoch_max: 1, promises, liveness, ..one_crash() };
    assert_eq!(counts(&[1, 2, 3, 4], &options), (2_555_966, 7_661_238));
}

#[test]
fn a_mending_ring_of_six_is_safe_with_a_crash_when_two_ask() {
    let (promises, liveness) = (SAFETY.to_vec(), false);
    let reductions = Reductions { ample: true, ..Reductions::default() };
    let askers = Some([NodeId(0), NodeId(1)].into_iter().collect());
    let options = Options { epoch_max: 0, askers, reductions, promises, liveness, ..one_crash() };
    assert_eq!(counts(&[1, 2, 3, 4, 5, 6], &options), (128_820, 342_125));
}

fn harm(options: &Options) -> Counterexample {
    explore(&[1, 2, 3], options).counterexample.unwrap()
}

#[test]
fn a_mending_ring_lets_two_in_where_timeouts_lie() {
    let timing = Timing::Asynchronous;
    let found = harm(&Options { timing, crashes: 0, ..one_crash() });
    assert_eq!((found.promise, found.steps.len()), (Promise::MutualExclusion, 5));
}

#[test]
fn a_mending_ring_lets_two_in_where_an_acknowledgement_is_lost() {
    let found = harm(&Options { losses: 1, crashes: 0, ..one_crash() });
    assert_eq!((found.promise, found.steps.len()), (Promise::MutualExclusion, 7));
}
