//! Rings in which messages travel one way: Chang–Roberts, the list, Peterson.

use vez_algorithms::election::chang_roberts::{Config, Variant};
use vez_algorithms::election::ring::Pick;
use vez_algorithms::election::{ChangRoberts, ListRing, Peterson, list_ring, peterson};
use vez_core::problem::election::View;
use vez_core::{Ending, NodeId, Promise, Time, Topology};
use vez_sim::{Delay, Happening, Input, Network, Observer, Plan, Who, simulate, watch};

use super::common::{crash, election, leader, ms, shuffled, start};
use super::rings::{
    arrangements, assert_elected, at_once, declared, everywhere, franklin_rounds, hectic,
    initiators, ring, run, run_with, to_next_larger,
};

/// What Chang–Roberts must cost. A candidacy travels to the next larger process, whoever else is
/// in. Those who stand are the initiators, and of the others those that the first wave to reach
/// them, the largest since the nearest initiator before, does not outrank.
fn candidacies(uids: &[u64], starters: &[u32]) -> u64 {
    let n = uids.len();
    let stands = |&i: &usize| {
        let back = (0..n).find(|d| starters.contains(&(((i + n - d) % n) as u32))).unwrap();
        (1..=back).all(|d| uids[(i + n - d) % n] < uids[i])
    };
    (0..n).filter(stands).map(|i| to_next_larger(uids, i)).sum()
}

#[test]
fn chang_roberts_costs_what_the_order_of_uids_says() {
    everywhere(|uids, starters| {
        let (topology, n) = (ring(uids), uids.len() as u64);
        let report = run::<ChangRoberts>(&topology, at_once(starters));
        assert_elected(&topology, &report, n);
        let sent = if n == 1 { (0, 0) } else { (candidacies(uids, starters), n) };
        let counted = (report.messages.of("Election"), report.messages.of("Elected"));
        assert_eq!(counted, sent, "{uids:?} {starters:?}");
        assert_eq!(report.messages.total, sent.0 + sent.1);
        assert_eq!(declared(&topology, &report), [n]);
    });
}

#[test]
fn chang_roberts_meets_its_closed_forms() {
    for n in [2_u64, 3, 5, 8, 16, 64] {
        let all: Vec<u32> = (0..n as u32).collect();
        let cost = |uids: &[u64], starters: &[u32]| {
            run::<ChangRoberts>(&ring(uids), at_once(starters)).messages.of("Election")
        };
        let ascending: Vec<u64> = (1..=n).collect();
        let descending: Vec<u64> = (1..=n).rev().collect();
        assert_eq!(cost(&ascending, &all), 2 * n - 1);
        assert_eq!(cost(&descending, &all), n * (n + 1) / 2, "S27");
        for starter in 0..n {
            let to_largest = n - 1 - starter;
            assert_eq!(cost(&ascending, &[starter as u32]), to_largest + n);
        }
    }
}

#[test]
fn chang_roberts_costs_n_times_harmonic_n_on_average_over_all_orders() {
    let (mut total, mut orders) = (0, 0);
    permute(&mut [1, 2, 3, 4, 5, 6], 0, &mut |uids| {
        total +=
            run::<ChangRoberts>(&ring(uids), at_once(&[0, 1, 2, 3, 4, 5])).messages.of("Election");
        orders += 1;
    });
    // 6·H₆ = 6·(1 + 1/2 + … + 1/6) = 14.7, and there are 720 orders.
    assert_eq!((orders, total), (720, 10_584));
}

fn permute(uids: &mut [u64], from: usize, visit: &mut impl FnMut(&[u64])) {
    if from == uids.len() {
        return visit(uids);
    }
    for i in from..uids.len() {
        uids.swap(from, i);
        permute(uids, from + 1, visit);
        uids.swap(from, i);
    }
}

#[test]
fn s26_eight_processes_and_the_third_starts() {
    let topology = ring(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let report = run::<ChangRoberts>(&topology, vec![start(&topology, 2, 0)]);
    assert_elected(&topology, &report, 7);
    assert_eq!(report.messages.by_kind, [("Election", 13), ("Elected", 8)]);
    assert_eq!(report.time, ms(21));
}

#[test]
fn s28_however_many_start_and_however_often_one_leads() {
    let topology = ring(&shuffled(8, 9));
    let often = |at| (ms(at), Input::Start(Who::All));
    let report = run::<ChangRoberts>(&topology, (0..8).map(often).collect());
    assert_elected(&topology, &report, 8);
    assert_eq!(declared(&topology, &report), [8]);
    let once = run::<ChangRoberts>(&topology, vec![often(0)]);
    assert_eq!(report.messages, once.messages, "a participant does not stand again");
}

#[test]
fn a_finished_chang_roberts_can_be_held_again() {
    let topology = ring(&[4, 2, 5, 1, 3]);
    let inputs = vec![start(&topology, 1, 0), start(&topology, 1, 100)];
    let report = run::<ChangRoberts>(&topology, inputs);
    assert_elected(&topology, &report, 5);
    assert_eq!(report.messages.by_kind, [("Election", 2 * (4 + 5)), ("Elected", 2 * 5)]);
    assert_eq!(declared(&topology, &report), [5, 5]);
}

#[test]
fn one_initiator_of_chang_roberts_costs_the_same_whatever_the_delays() {
    for seed in 0..50 {
        let uids = shuffled(9, seed);
        let (topology, report) = hectic::<ChangRoberts>(&uids, &[3], true, seed);
        assert_elected(&topology, &report, 9);
        assert_eq!(report.messages.of("Election"), candidacies(&uids, &[3]));
    }
}

#[test]
fn chang_roberts_without_fifo_starts_a_finished_election_again() {
    let all: Vec<u32> = (0..6).collect();
    let laps = |fifo, seed| {
        let (topology, report) = hectic::<ChangRoberts>(&shuffled(6, seed), &all, fifo, seed);
        assert_eq!(leader(&topology, &report), Some(6));
        report.messages.of("Elected") / 6
    };
    let at_once = |fifo: bool, seed| {
        let topology = ring(&shuffled(6, seed));
        let delay = Delay::Uniform(Time::from_micros(1), ms(20));
        let network = Network { delay, fifo, ..Network::default() };
        let inputs = vec![(ms(0), Input::Start(Who::All))];
        let plan = Plan { seed, network, inputs, ..Plan::default() };
        simulate::<ChangRoberts>(&topology, &Config::default(), &plan).messages.of("Elected") / 6
    };
    assert!((0..200).all(|seed| at_once(true, seed) == 1));
    assert!((0..200).any(|seed| at_once(false, seed) > 1));
    // Late starters hold it again in any case; even so the same one wins.
    assert!((0..50).all(|seed| 1 <= laps(false, seed)));
}

#[test]
fn repeated_messages_do_not_mislead_chang_roberts() {
    for seed in 0..50 {
        let topology = ring(&shuffled(5, seed));
        let network = Network { duplicate: 0.2, ..Network::default() };
        let inputs = vec![(ms(0), Input::Start(Who::All))];
        let plan = Plan { seed, network, inputs, ..Plan::default() };
        let report = simulate::<ChangRoberts>(&topology, &Config::default(), &plan);
        assert_eq!((report.ending, leader(&topology, &report)), (Ending::Quiescent, Some(5)));
    }
}

#[test]
fn drop_only_stalls_unless_the_largest_starts() {
    let config = Config { variant: Variant::DropOnly, ..Config::default() };
    let topology = ring(&[3, 1, 4, 2]);
    for uid in 1..=3 {
        let report = run_with::<ChangRoberts>(&topology, &config, vec![start(&topology, uid, 0)]);
        let verdict = report.verdict(Promise::Termination).unwrap();
        assert!(!verdict.kept);
        assert_eq!(
            verdict.detail.as_deref(),
            Some(format!("an election was asked for by P{uid} and nobody came to lead").as_str())
        );
    }
    let report = run_with::<ChangRoberts>(&topology, &config, vec![start(&topology, 4, 0)]);
    assert_elected(&topology, &report, 4);
    assert_eq!(report.messages.by_kind, [("Election", 4), ("Elected", 4)]);
}

#[test]
fn substitute_makes_every_initiator_cost_a_lap_and_a_declaration() {
    let config = Config { variant: Variant::Substitute, ..Config::default() };
    for n in [2, 3, 5, 8, 16] {
        for uids in arrangements(n) {
            for starters in initiators(n) {
                let topology = ring(&uids);
                let report = run_with::<ChangRoberts>(&topology, &config, at_once(&starters));
                let largest = topology.find(u64::from(n)).unwrap().0;
                let to_largest = |&i: &u32| u64::from((largest + n - i) % n + n);
                let cost: u64 = starters.iter().map(to_largest).sum();
                assert_eq!(report.messages.of("Election"), cost, "{uids:?} {starters:?}");
                assert_eq!(declared(&topology, &report).len(), starters.len());
                assert_eq!(leader(&topology, &report), Some(u64::from(n)));
            }
        }
    }
}

#[test]
fn a_crash_cuts_a_ring_that_is_not_mended() {
    let topology = ring(&[1, 2, 3, 4, 5]);
    let inputs = vec![crash(&topology, 3, 0), start(&topology, 1, 0)];
    let report = run::<ChangRoberts>(&topology, inputs.clone());
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
    assert_eq!((report.messages.of("Election"), report.messages.to_crashed), (2, 1));
    let report = run::<ListRing>(&topology, inputs.clone());
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
    let report = run::<Peterson>(&topology, inputs);
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
}

/// How many uids the lists carry.
#[derive(Default)]
struct Carried(u64);

impl Observer<ListRing> for Carried {
    fn on(&mut self, _: Time, _: &Topology, what: Happening<'_, ListRing>) {
        if let Happening::Sent { message: list_ring::Message::Election { list, .. }, .. } = what {
            self.0 += list.len() as u64;
        }
    }
}

#[test]
fn s25_every_list_costs_a_lap_and_another_to_announce() {
    everywhere(|uids, starters| {
        let (topology, n, k) = (ring(uids), uids.len() as u64, starters.len() as u64);
        let plan = Plan { inputs: at_once(starters), ..Plan::default() };
        let config = list_ring::Config::default();
        let (report, carried) = watch::<ListRing, _>(&topology, &config, &plan, Carried::default());
        assert_elected(&topology, &report, 1);
        assert_eq!(declared(&topology, &report), [1], "the laps say it once");
        if n > 1 {
            let counted = [("Election", k * n), ("Coordinator", k * n)];
            assert_eq!(report.messages.by_kind, counted, "{uids:?} {starters:?}");
            assert_eq!(carried.0, k * n * (n + 1) / 2);
            assert_eq!(report.time, ms(2 * n));
        }
    });
}

#[test]
fn lists_cost_the_same_in_any_order_of_messages() {
    for seed in 0..50 {
        let uids = shuffled(7, seed);
        let topology = ring(&uids);
        let delay = Delay::Uniform(Time::from_micros(1), ms(20));
        let network = Network { delay, fifo: false, ..Network::default() };
        let plan = Plan { seed, network, inputs: at_once(&[1, 2, 5]), ..Plan::default() };
        let report = simulate::<ListRing>(&topology, &list_ring::Config::default(), &plan);
        assert_elected(&topology, &report, 1);
        assert_eq!(report.messages.by_kind, [("Election", 21), ("Coordinator", 21)]);
    }
}

#[test]
fn who_waits_for_its_list_sends_no_other() {
    let topology = ring(&[3, 1, 2]);
    let inputs = vec![start(&topology, 2, 0), start(&topology, 2, 1), start(&topology, 2, 100)];
    let report = run::<ListRing>(&topology, inputs);
    assert_elected(&topology, &report, 1);
    assert_eq!(report.messages.by_kind, [("Election", 6), ("Coordinator", 6)]);
}

#[test]
fn the_list_ring_picks_the_largest_if_told_to() {
    let config = list_ring::Config { pick: Pick::Max, ..list_ring::Config::default() };
    let topology = ring(&[3, 1, 4, 2]);
    let report = run_with::<ListRing>(&topology, &config, at_once(&[1, 3]));
    assert_elected(&topology, &report, 4);
}

#[test]
fn the_others_pick_the_smallest_if_told_to() {
    let topology = ring(&[3, 1, 4, 2]);
    let config = Config { pick: Pick::Min, ..Config::default() };
    let report = run_with::<ChangRoberts>(&topology, &config, at_once(&[0, 1, 2, 3]));
    assert_elected(&topology, &report, 1);
    // As if every uid were 5 less itself.
    assert_eq!(report.messages.of("Election"), candidacies(&[2, 4, 1, 3], &[0, 1, 2, 3]));
    let config = peterson::Config { pick: Pick::Min };
    let report = run_with::<Peterson>(&topology, &config, at_once(&[2]));
    assert_elected(&topology, &report, 1);
}

/// What Peterson must cost, the announcement apart.
fn phases_cost(uids: &[u64]) -> u64 {
    (2 * franklin_rounds(uids) - 1) * uids.len() as u64
}

#[test]
fn peterson_costs_two_laps_a_phase_and_one_in_the_last() {
    everywhere(|uids, starters| {
        let (topology, n) = (ring(uids), uids.len() as u64);
        let report = run::<Peterson>(&topology, at_once(starters));
        assert_elected(&topology, &report, n);
        assert_eq!(declared(&topology, &report), [n]);
        assert_eq!(report.rounds, franklin_rounds(uids));
        let sent = if n == 1 { 0 } else { phases_cost(uids) + n };
        assert_eq!(report.messages.total, sent, "{uids:?} {starters:?}");
        assert_eq!(report.messages.of("Elected"), if n == 1 { 0 } else { n });
        assert!(report.rounds <= u64::from(n.ilog2()) + 1);
    });
}

#[test]
fn peterson_costs_the_same_whoever_starts_and_whatever_the_delays() {
    for seed in 0..100 {
        let n = 1 + (seed % 17) as u32;
        let uids = shuffled(n, seed);
        for starters in initiators(n) {
            let (topology, report) = hectic::<Peterson>(&uids, &starters, true, seed);
            assert_elected(&topology, &report, u64::from(n));
            let sent = if n == 1 { 0 } else { phases_cost(&uids) + u64::from(n) };
            assert_eq!(report.messages.total, sent, "{uids:?} {starters:?} {seed}");
        }
    }
}

/// Who sent the first announcement.
#[derive(Default)]
struct Announcer(Option<NodeId>);

impl Observer<Peterson> for Announcer {
    fn on(&mut self, _: Time, _: &Topology, what: Happening<'_, Peterson>) {
        if let Happening::Sent { node, message: peterson::Message::Elected { .. }, .. } = what {
            self.0.get_or_insert(node);
        }
    }
}

#[test]
fn in_peterson_another_than_the_winner_notices_the_end() {
    let topology = ring(&[1, 3, 2]);
    let plan = Plan { inputs: at_once(&[0, 1, 2]), ..Plan::default() };
    let (report, announcer) =
        watch::<Peterson, _>(&topology, &peterson::Config::default(), &plan, Announcer::default());
    assert_elected(&topology, &report, 3);
    assert_eq!(topology.uid(announcer.0.unwrap()), 2, "the candidate moved on by one");
    assert_eq!(declared(&topology, &report), [3]);
    assert_eq!(election(&report).views, [View::Follows(NodeId(1)); 3]);
}

#[test]
fn peterson_notices_that_messages_overtake_each_other() {
    let all: Vec<u32> = (0..8).collect();
    let noticed = |seed| hectic::<Peterson>(&shuffled(8, seed), &all, false, seed).1.unexpected > 0;
    assert!((0..50).any(noticed));
}

#[test]
fn a_late_start_is_answered_with_the_leader() {
    let topology = ring(&[2, 3, 1]);
    let report = run::<Peterson>(&topology, vec![start(&topology, 1, 0), start(&topology, 3, 100)]);
    assert_elected(&topology, &report, 3);
    assert_eq!(report.messages.total, phases_cost(&[2, 3, 1]) + 3);
    assert_eq!(declared(&topology, &report), [3, 3]);
}
