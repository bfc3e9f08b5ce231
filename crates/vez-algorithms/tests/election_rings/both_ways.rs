//! Rings in which messages travel both ways: Franklin, Hirschberg–Sinclair.

use std::collections::BTreeMap;

use vez_algorithms::election::franklin::{Config, Message, Variant};
use vez_algorithms::election::ring::Pick;
use vez_algorithms::election::{Franklin, HirschbergSinclair, hirschberg_sinclair};
use vez_core::{Promise, Time, Topology};
use vez_sim::{Happening, Input, Observer, Plan, Report, Who, simulate, watch};

use super::common::{crash, leader, ms, shuffled, start};
use super::rings::{
    assert_elected, at_once, declared, everywhere, franklin_rounds, hectic, initiators, ring, run,
    run_with, survivors,
};

#[test]
fn franklin_costs_two_messages_a_process_a_round() {
    everywhere(|uids, starters| {
        let (topology, n) = (ring(uids), uids.len() as u64);
        let report = run::<Franklin>(&topology, at_once(starters));
        assert_elected(&topology, &report, n);
        assert_eq!(declared(&topology, &report), [n]);
        assert_eq!(report.rounds, franklin_rounds(uids));
        assert!(report.rounds <= u64::from(n.ilog2()) + 1);
        if n > 1 {
            let counted = [("Id", 2 * n * franklin_rounds(uids)), ("Elected", n)];
            assert_eq!(report.messages.by_kind, counted, "{uids:?} {starters:?}");
        } else {
            assert_eq!(report.messages.total, 0);
        }
    });
}

#[test]
fn franklin_needs_two_rounds_on_monotone_rings() {
    for n in [2_u64, 3, 16, 64] {
        let ascending: Vec<u64> = (1..=n).collect();
        let descending: Vec<u64> = (1..=n).rev().collect();
        for uids in [ascending, descending] {
            let report = run::<Franklin>(&ring(&uids), at_once(&[0]));
            assert_eq!((report.rounds, report.messages.of("Id")), (2, 4 * n));
        }
    }
}

#[test]
fn franklin_costs_the_same_whoever_starts_and_whatever_the_delays() {
    for seed in 0..100 {
        let n = 1 + (seed % 17) as u32;
        let uids = shuffled(n, seed);
        for starters in initiators(n) {
            let (topology, report) = hectic::<Franklin>(&uids, &starters, true, seed);
            assert_elected(&topology, &report, u64::from(n));
            let sent = if n == 1 { 0 } else { 2 * u64::from(n) * franklin_rounds(&uids) };
            assert_eq!(report.messages.of("Id"), sent, "{uids:?} {starters:?} {seed}");
        }
    }
}

#[test]
fn a_late_start_is_answered_with_the_leader() {
    let topology = ring(&[2, 3, 1]);
    let inputs = vec![start(&topology, 1, 0), start(&topology, 2, 100)];
    let once = run::<Franklin>(&topology, inputs[..1].to_vec());
    assert_eq!(run::<Franklin>(&topology, inputs.clone()).messages, once.messages);
    let once = run::<HirschbergSinclair>(&topology, inputs[..1].to_vec());
    assert_eq!(run::<HirschbergSinclair>(&topology, inputs).messages, once.messages);
}

/// In how many rounds each process took part: twice it sent its own uid.
#[derive(Default)]
struct RoundsOf(BTreeMap<u64, u64>);

impl Observer<Franklin> for RoundsOf {
    fn on(&mut self, _: Time, topology: &Topology, what: Happening<'_, Franklin>) {
        if let Happening::Sent { node, message: Message::Id { uid, .. }, .. } = what
            && topology.uid(node) == *uid
        {
            *self.0.entry(*uid).or_default() += 1;
        }
    }
}

fn rounds_of(uids: &[u64]) -> (Report, BTreeMap<u64, u64>) {
    let topology = ring(uids);
    let plan = Plan { inputs: vec![(ms(0), Input::Start(Who::All))], ..Plan::default() };
    let (report, mut rounds) =
        watch::<Franklin, _>(&topology, &Config::default(), &plan, RoundsOf::default());
    assert_elected(&topology, &report, *uids.iter().max().unwrap());
    rounds.0.values_mut().for_each(|sent| *sent /= 2);
    (report, rounds.0)
}

#[test]
fn s29_two_seven_and_nine_survive_the_first_round_and_nine_the_second() {
    let uids = [2, 1, 7, 3, 9, 0];
    assert_eq!(survivors(&uids), [vec![2, 7, 9], vec![9]]);
    let (report, rounds) = rounds_of(&uids);
    assert_eq!(report.messages.by_kind, [("Id", 36), ("Elected", 6)]);
    assert_eq!(rounds, BTreeMap::from([(0, 1), (1, 1), (2, 2), (3, 1), (7, 2), (9, 3)]));
}

#[test]
fn s30_the_largest_silences_ever_farther_neighbours() {
    // Around the largest, 19, the next, the ones after them, and so on to the far side.
    let (report, rounds) = rounds_of(&[19, 1, 5, 3, 8, 4, 6, 2]);
    let silenced_in =
        |round| rounds.iter().filter(move |r| *r.1 == round).map(|r| *r.0).collect::<Vec<_>>();
    assert_eq!(silenced_in(1), [1, 2, 3, 4]);
    assert_eq!(silenced_in(2), [5, 6]);
    assert_eq!(silenced_in(3), [8]);
    assert_eq!(silenced_in(4), [19]);
    assert_eq!(report.messages.of("Id"), 4 * 16);
}

fn negatives() -> Config {
    Config { variant: Variant::Negatives, ..Config::default() }
}

#[test]
fn negatives_cost_franklin_its_bound() {
    let uids: Vec<u64> = (1..=64).collect();
    let topology = ring(&uids);
    let inputs = vec![(ms(0), Input::Start(Who::All))];
    // To the moment the largest declares itself.
    let plan = Plan { inputs: inputs.clone(), until: Some(ms(65)), ..Plan::default() };
    let report = simulate::<Franklin>(&topology, &negatives(), &plan);
    assert_eq!(declared(&topology, &report), [64]);
    assert_eq!((report.rounds, report.messages.of("Id")), (65, 8_446));
    // To the moment the last of its uids is home.
    let report = run_with::<Franklin>(&topology, &negatives(), inputs.clone());
    assert_elected(&topology, &report, 64);
    assert_eq!(report.rounds, 65);
    assert_eq!(report.messages.by_kind, [("Id", 12_352), ("Elected", 64)]);
    let canonical = run::<Franklin>(&topology, inputs);
    assert_eq!((canonical.rounds, canonical.messages.of("Id")), (2, 256));
}

#[test]
fn with_negatives_the_largest_still_wins() {
    // Zero, whose negative is no smaller number, included.
    for seed in 0..100 {
        let n = 1 + (seed % 9) as u32;
        let uids: Vec<u64> = shuffled(n, seed).into_iter().map(|uid| uid - 1).collect();
        let topology = ring(&uids);
        for starters in initiators(n) {
            let report = run_with::<Franklin>(&topology, &negatives(), at_once(&starters));
            assert_elected(&topology, &report, u64::from(n) - 1);
        }
    }
}

#[test]
fn both_pick_the_smallest_if_told_to() {
    let topology = ring(&[3, 1, 4, 2]);
    let config = Config { pick: Pick::Min, ..Config::default() };
    let report = run_with::<Franklin>(&topology, &config, at_once(&[0]));
    assert_elected(&topology, &report, 1);
    let config = hirschberg_sinclair::Config { pick: Pick::Min };
    let report = run_with::<HirschbergSinclair>(&topology, &config, at_once(&[0]));
    assert_elected(&topology, &report, 1);
}

/// What Hirschberg–Sinclair must cost by the uids alone: how far each process sees before a larger
/// one, to either side, says which of its probes get through.
fn probes_and_replies(uids: &[u64]) -> (u64, u64) {
    let n = uids.len();
    let (mut probes, mut replies) = (0, 0);
    for i in 0..n {
        let right = (1..n).find(|d| uids[(i + d) % n] > uids[i]).unwrap_or(n);
        let left = (1..n).find(|d| uids[(i + n - d) % n] > uids[i]).unwrap_or(n);
        let mut reach = 1;
        loop {
            probes += reach.min(right) + reach.min(left);
            replies += [right, left].iter().filter(|&&sees| reach < sees).count() * reach;
            if right.min(left) <= reach {
                break;
            }
            reach *= 2;
        }
    }
    (probes as u64, replies as u64)
}

#[test]
fn hirschberg_sinclair_costs_what_the_uids_say() {
    assert_eq!(
        probes_and_replies(&[1, 2]),
        (8, 2),
        "by hand: 2 of the smaller; 2, answered, and 4"
    );
    everywhere(|uids, starters| {
        let (topology, n) = (ring(uids), uids.len() as u64);
        let report = run::<HirschbergSinclair>(&topology, at_once(starters));
        assert_elected(&topology, &report, n);
        assert_eq!(declared(&topology, &report), [n]);
        if n == 1 {
            return assert_eq!(report.messages.total, 0);
        }
        let (probes, replies) = probes_and_replies(uids);
        let counted = [("Probe", probes), ("Reply", replies), ("Elected", n)];
        assert_eq!(report.messages.by_kind, counted, "{uids:?} {starters:?}");
        let log = u64::from(n.next_power_of_two().ilog2());
        assert!(report.messages.total <= 8 * n * (1 + log) + n);
    });
}

#[test]
fn hirschberg_sinclair_costs_the_same_in_any_order_of_messages() {
    for seed in 0..100 {
        let n = 2 + (seed % 16) as u32;
        let uids = shuffled(n, seed);
        for starters in initiators(n) {
            let (topology, report) = hectic::<HirschbergSinclair>(&uids, &starters, false, seed);
            assert_elected(&topology, &report, u64::from(n));
            let (probes, replies) = probes_and_replies(&uids);
            assert_eq!(report.messages.of("Probe"), probes, "{uids:?} {starters:?} {seed}");
            assert_eq!(report.messages.of("Reply"), replies);
        }
    }
}

#[test]
fn franklin_without_fifo_can_go_wrong() {
    let all: Vec<u32> = (0..9).collect();
    let costs_the_same = |seed| {
        let uids = shuffled(9, seed);
        let (topology, report) = hectic::<Franklin>(&uids, &all, false, seed);
        leader(&topology, &report) == Some(9)
            && report.messages.of("Id") == 18 * franklin_rounds(&uids)
    };
    assert!(!(0..200).all(costs_the_same));
}

#[test]
fn a_crash_cuts_the_ring() {
    let topology = ring(&[1, 2, 3, 4, 5]);
    let inputs = vec![crash(&topology, 2, 0), start(&topology, 4, 0)];
    let report = run::<Franklin>(&topology, inputs.clone());
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
    let report = run::<HirschbergSinclair>(&topology, inputs);
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
}
