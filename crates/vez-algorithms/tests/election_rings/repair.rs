//! Rings that mend themselves: the dead are skipped, and what they were to do is done again.

use vez_algorithms::election::{ChangRoberts, ListRing, chang_roberts, list_ring};
use vez_core::{Chance, Ending, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Forget, Input, Network, Plan, Report, Who, simulate};

use super::common::{crash, election, leader, ms, restart, shuffled, start};
use super::rings::{assert_elected, at_once, declared, ring, run_with};

fn mended() -> chang_roberts::Config {
    chang_roberts::Config { skip_within: Some(ms(2)), ..chang_roberts::Config::default() }
}

fn mended_list() -> list_ring::Config {
    list_ring::Config { skip_within: Some(ms(2)), ..list_ring::Config::default() }
}

#[test]
fn where_nobody_is_dead_mending_costs_acknowledgements_only() {
    let topology = ring(&[4, 2, 5, 1, 3]);
    let report = run_with::<ChangRoberts>(&topology, &mended(), at_once(&[3]));
    assert_elected(&topology, &report, 5);
    assert_eq!(report.messages.by_kind, [("Election", 9), ("Elected", 5), ("Ack", 14)]);
    let report = run_with::<ListRing>(&topology, &mended_list(), at_once(&[0, 3]));
    assert_elected(&topology, &report, 1);
    assert_eq!(report.messages.by_kind, [("Election", 10), ("Coordinator", 10), ("Ack", 20)]);
}

#[test]
fn the_dead_are_skipped() {
    let topology = ring(&[1, 2, 3, 4, 5]);
    let inputs = vec![crash(&topology, 3, 0), crash(&topology, 4, 0), start(&topology, 1, 0)];
    let report = run_with::<ChangRoberts>(&topology, &mended(), inputs.clone());
    assert_elected(&topology, &report, 5);
    // From 1 to 2, and from there to 3 and 4 in vain before 5; then the lap of 5, the same way.
    assert_eq!(report.messages.of("Election"), 1 + 3 + 1 + 1 + 3);
    assert_eq!(report.messages.to_crashed, 2 + 2 + 2);
    let report = run_with::<ListRing>(&topology, &mended_list(), inputs);
    assert_elected(&topology, &report, 1);
}

#[test]
fn one_that_is_alone_elects_itself() {
    let topology = ring(&[3, 1, 2]);
    let inputs = vec![crash(&topology, 3, 0), crash(&topology, 1, 0), start(&topology, 2, 0)];
    assert_elected(&topology, &run_with::<ChangRoberts>(&topology, &mended(), inputs.clone()), 2);
    assert_elected(&topology, &run_with::<ListRing>(&topology, &mended_list(), inputs), 2);
    let alone = ring(&[7]);
    let inputs = vec![start(&alone, 7, 0)];
    assert_elected(&alone, &run_with::<ChangRoberts>(&alone, &mended(), inputs.clone()), 7);
    assert_elected(&alone, &run_with::<ListRing>(&alone, &mended_list(), inputs), 7);
}

#[test]
fn the_candidacy_of_one_that_died_stops_and_the_next_largest_wins() {
    // 5 has sent its candidacy and dies before it is home.
    let topology = ring(&[1, 2, 5, 3, 4]);
    let inputs = vec![start(&topology, 5, 0), crash(&topology, 5, 1)];
    let report = run_with::<ChangRoberts>(&topology, &mended(), inputs);
    assert_elected(&topology, &report, 4);
}

#[test]
fn an_election_is_held_again_if_the_winner_dies_announcing_itself() {
    let topology = ring(&[1, 2, 5, 3, 4]);
    let (n, first_lap) = (5, 5);
    for dies_at in first_lap..first_lap + n {
        let inputs = vec![start(&topology, 5, 0), crash(&topology, 5, dies_at)];
        let report = run_with::<ChangRoberts>(&topology, &mended(), inputs.clone());
        assert_elected(&topology, &report, 4);
    }
    let topology = ring(&[4, 1, 3, 2, 5]);
    // From when the list has passed it to when it would hear that it has been chosen.
    for dies_at in 2..=6 {
        let inputs = vec![start(&topology, 4, 0), crash(&topology, 1, dies_at)];
        let report = run_with::<ListRing>(&topology, &mended_list(), inputs);
        assert_elected(&topology, &report, 2);
    }
}

#[test]
fn a_list_is_closed_even_if_its_initiator_died() {
    let topology = ring(&[4, 1, 3, 2, 5]);
    let inputs = vec![start(&topology, 4, 0), crash(&topology, 4, 1)];
    let report = run_with::<ListRing>(&topology, &mended_list(), inputs);
    assert_elected(&topology, &report, 1);
    // One from each of the five, and another after what 5 sent to 4 in vain: 1 closes the list.
    assert_eq!(report.messages.of("Election"), 6);
}

#[test]
fn who_waits_in_vain_starts_again() {
    // 1 has acknowledged what it got from 4, finds 3 dead, and dies before it can skip it.
    let topology = ring(&[4, 1, 3, 2, 5]);
    let dies = vec![crash(&topology, 3, 0), start(&topology, 4, 0), crash(&topology, 1, 2)];
    let report = run_with::<ListRing>(&topology, &mended_list(), dies.clone());
    assert_elected(&topology, &report, 2);
    // It waits for 3·5·2 ms; then two dead, 2, 5 and back; then the two dead once more, and 2.
    assert_eq!(election(&report).declarations[0].at, ms(30 + (2 + 2 + 3) + (2 + 2 + 1)));
    let report = run_with::<ChangRoberts>(&topology, &mended(), dies);
    assert_elected(&topology, &report, 5);
}

#[test]
fn a_late_acknowledgement_ends_the_skipping() {
    // 2 is slow: 1 gives it up, tries 3, which is dead, and hears from 2 before it tries 4.
    let topology = ring(&[1, 2, 3, 4, 5]);
    let slow = (ms(0), Input::Pause(topology.find(2).unwrap(), Time::from_micros(2_500)));
    let inputs = vec![slow, crash(&topology, 3, 0), start(&topology, 1, 0)];
    let report = run_with::<ChangRoberts>(&topology, &mended(), inputs);
    assert_elected(&topology, &report, 5);
    // From 1 to 2 and 3; from 2 to 3 and 4; from 4 to 5; and the lap of 5, past 3 once more.
    assert_eq!(report.messages.of("Election"), 2 + 2 + 1 + 5);
}

#[test]
fn one_that_comes_back_is_in_the_ring_again() {
    let topology = ring(&[4, 1, 3, 2, 5]);
    let inputs = vec![
        crash(&topology, 5, 0),
        start(&topology, 1, 0),
        restart(&topology, 5, 200),
        start(&topology, 1, 300),
    ];
    let report = run_with::<ChangRoberts>(&topology, &mended(), inputs);
    assert_eq!(declared(&topology, &report), [4, 5]);
    assert_eq!(leader(&topology, &report), Some(5));
}

#[test]
fn a_slow_process_taken_for_dead_makes_two_lists_disagree() {
    let topology = ring(&[4, 1, 3, 2, 5]);
    let slow = (ms(0), Input::Pause(topology.find(1).unwrap(), ms(30)));
    let inputs = vec![slow, start(&topology, 4, 0)];
    let report = run_with::<ListRing>(&topology, &mended_list(), inputs);
    assert!(!report.verdict(Promise::Stability).unwrap().kept);
    assert_eq!(declared(&topology, &report), [2, 1]);
    assert_eq!(leader(&topology, &report), Some(1), "the second list comes last to everyone");
}

#[test]
fn less_than_a_round_trip_makes_elections_start_each_other_without_end() {
    let topology = ring(&[1, 2, 3, 4, 5]);
    let config = chang_roberts::Config { skip_within: Some(Time::from_micros(1_500)), ..mended() };
    let inputs = vec![start(&topology, 1, 0)];
    let plan = Plan { inputs, steps_max: 20_000, ..Plan::default() };
    let report = simulate::<ChangRoberts>(&topology, &config, &plan);
    assert_eq!(report.ending, Ending::Limit);
    assert!(!report.verdict(Promise::Uniqueness).unwrap().kept, "who is skipped stops nobody");
}

#[test]
fn no_time_to_acknowledge_is_refused() {
    let refused = Err("skip_within: expected more than 0ms, found 0ms".to_owned());
    let config = chang_roberts::Config { skip_within: Some(Time::ZERO), ..mended() };
    assert_eq!(ChangRoberts::validate(&config, &ring(&[1])), refused);
    let config = list_ring::Config { skip_within: Some(Time::ZERO), ..mended_list() };
    assert_eq!(ListRing::validate(&config, &ring(&[1])), refused);
    assert_eq!(ListRing::validate(&mended_list(), &ring(&[1])), Ok(()));
}

fn moment(chance: &mut Seeded, millis: u32) -> Time {
    Time::from_micros(u64::from(chance.below(millis * 1_000)))
}

/// Two start, some crash at any moment, and every survivor's detector notices in the end.
fn crashing_run<P: Protocol>(config: &P::Config, seed: u64) -> (Topology, Report) {
    let mut chance = Seeded::stream(seed, 5);
    let n = 2 + chance.below(7);
    let topology = ring(&shuffled(n, seed));
    let mut inputs = vec![
        (moment(&mut chance, 5), Input::Start(Who::One(NodeId(0)))),
        (moment(&mut chance, 40), Input::Start(Who::One(NodeId(n - 1)))),
    ];
    let mut down = Vec::new();
    for _ in 0..=chance.below(n - 1) {
        let node = NodeId(chance.below(n));
        if !down.contains(&node) {
            down.push(node);
            inputs.push((moment(&mut chance, 60), Input::Crash(node)));
        }
    }
    for &node in &down {
        for other in topology.ids().filter(|other| !down.contains(other)) {
            inputs.push((ms(60) + moment(&mut chance, 30), Input::Suspect(other, node)));
        }
    }
    let delay = Delay::Uniform(Time::from_micros(100), ms(1));
    let network = Network { delay, ..Network::default() };
    let plan = Plan { seed, network, inputs, steps_max: 50_000, ..Plan::default() };
    let report = simulate::<P>(&topology, config, &plan);
    (topology, report)
}

fn keeps_every_election_promise<P: Protocol>(config: &P::Config) {
    for seed in 0..1_000 {
        let (topology, report) = crashing_run::<P>(config, seed);
        assert_eq!(report.ending, Ending::Quiescent, "seed {seed}");
        assert!(leader(&topology, &report).is_some(), "seed {seed}: {:?}", report.promises);
        for promise in Promise::ELECTION {
            let verdict = report.verdict(*promise).unwrap();
            assert!(verdict.kept, "seed {seed}: {verdict:?}");
        }
    }
}

#[test]
fn chang_roberts_survives_crashes_at_any_moment() {
    keeps_every_election_promise::<ChangRoberts>(&mended());
}

#[test]
fn the_list_ring_survives_crashes_at_any_moment() {
    keeps_every_election_promise::<ListRing>(&mended_list());
}

#[test]
fn crashes_and_returns_end_with_one_leader() {
    for seed in 0..300 {
        let topology = ring(&shuffled(5, seed));
        let mut chance = Seeded::stream(seed, 8);
        let mut inputs = vec![(ms(0), Input::Start(Who::All))];
        for _ in 0..3 {
            let node = NodeId(chance.below(5));
            let at = u64::from(chance.below(40));
            inputs.push((ms(at), Input::Crash(node)));
            let back = ms(at + 1 + u64::from(chance.below(20)));
            inputs.push((back, Input::Restart(node, Forget::AsPlanned)));
        }
        inputs.push((ms(300), Input::Start(Who::All)));
        let report = run_with::<ChangRoberts>(&topology, &mended(), inputs);
        assert_eq!(leader(&topology, &report), Some(5), "seed {seed}");
    }
}
