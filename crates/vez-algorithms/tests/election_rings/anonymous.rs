//! Rings of processes that are all alike: one without dice, one with.

use std::collections::BTreeMap;

use vez_algorithms::election::anonymous_ring::Config;
use vez_algorithms::election::itai_rodeh::{self, Message};
use vez_algorithms::election::{AnonymousRing, ItaiRodeh};
use vez_core::problem::election::View;
use vez_core::{NodeId, Promise, Protocol, Time, Topology};
use vez_sim::{Happening, Input, Observer, Plan, Report, Who, simulate, watch};

use super::common::{election, ms, shuffled, start};
use super::rings::{
    SIZES, at_once, declared, everywhere, hectic, initiators, ring, run, run_with, to_next_larger,
};

#[test]
fn s23_one_candidate_of_two_takes_office() {
    let topology = ring(&[1, 2]);
    let report = run::<AnonymousRing>(&topology, vec![start(&topology, 1, 0)]);
    assert_eq!(declared(&topology, &report), [1]);
    assert_eq!(election(&report).views, [View::Follows(NodeId(0)), View::Unknown]);
    assert_eq!(report.messages.by_kind, [("Vote", 2), ("Habemus", 2)]);
    assert!(report.verdict(Promise::Uniqueness).unwrap().kept);
    assert!(report.claims_kept());
}

#[test]
fn s24_two_candidates_of_two_both_take_office() {
    let topology = ring(&[1, 2]);
    let report = run::<AnonymousRing>(&topology, at_once(&[0, 1]));
    assert_eq!(declared(&topology, &report), [1, 2]);
    assert_eq!(report.messages.by_kind, [("Vote", 2), ("Habemus", 2)]);
    let verdict = report.verdict(Promise::Uniqueness).unwrap();
    assert!(!verdict.kept && !verdict.claimed);
    let detail = "P2 declared itself leader while P1 considers itself leader";
    assert_eq!(verdict.detail.as_deref(), Some(detail));
    assert!(report.claims_kept());
}

#[test]
fn all_who_stand_take_office_and_it_always_costs_two_laps() {
    everywhere(|uids, starters| {
        let (topology, n) = (ring(uids), uids.len() as u64);
        let report = run::<AnonymousRing>(&topology, at_once(starters));
        let mut leaders: Vec<u32> = leaders(&report);
        leaders.sort_unstable();
        assert_eq!(leaders, starters);
        assert_eq!(report.messages.total, if n == 1 { 0 } else { 2 * n });
        assert_eq!(report.unexpected, 0);
        assert!(report.claims_kept());
        assert_eq!(report.verdict(Promise::Uniqueness).unwrap().kept, starters.len() == 1);
    });
}

#[test]
fn two_laps_whatever_the_delays() {
    for seed in 0..100 {
        for starters in initiators(8) {
            let (_, report) = hectic::<AnonymousRing>(&shuffled(8, 1), &starters, true, seed);
            assert_eq!((report.messages.total, report.unexpected), (16, 0));
            let leaders = leaders(&report);
            assert!(!leaders.is_empty() && leaders.iter().all(|node| starters.contains(node)));
        }
    }
}

#[test]
fn one_that_stands_after_passing_a_vote_on_hits_what_the_table_leaves_open() {
    let topology = ring(&[1, 2, 3]);
    let inputs = vec![start(&topology, 1, 0), start(&topology, 2, 2)];
    let config = Config { late_candidates: true };
    let report = run_with::<AnonymousRing>(&topology, &config, inputs.clone());
    assert_eq!(report.unexpected, 2, "a VOTE for the elected and a HABEMUS for a candidate");
    let first = (ms(4), NodeId(0), "a VOTE for one already elected");
    assert_eq!(report.unexpected_first, Some(first));
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
    let report = run::<AnonymousRing>(&topology, inputs);
    assert_eq!((declared(&topology, &report), report.unexpected), (vec![1], 0));
}

fn leaders(report: &Report) -> Vec<u32> {
    election(report).declarations.iter().map(|declaration| declaration.node.0).collect()
}

/// What was drawn in each round, by address.
#[derive(Default)]
struct Draws(BTreeMap<u32, BTreeMap<usize, u64>>);

impl Observer<ItaiRodeh> for Draws {
    fn on(&mut self, _: Time, _: &Topology, what: Happening<'_, ItaiRodeh>) {
        if let Happening::Sent { node, message, .. } = what
            && let Message::Id { id, round, hops: 1, .. } = *message
        {
            self.0.entry(round).or_default().insert(node.index(), u64::from(id));
        }
    }
}

/// What the draws must have cost: in every round each of the active sends its own as far as the
/// next larger, and the passive count for nothing.
fn cost(draws: &Draws, n: usize) -> u64 {
    let round_cost = |drawn: &BTreeMap<usize, u64>| -> u64 {
        let ids: Vec<u64> = (0..n).map(|i| drawn.get(&i).copied().unwrap_or(0)).collect();
        drawn.keys().map(|&i| to_next_larger(&ids, i)).sum()
    };
    draws.0.values().map(round_cost).sum()
}

#[test]
fn itai_rodeh_elects_the_only_one_that_drew_the_largest() {
    for n in SIZES.into_iter().skip(1) {
        for (seed, ids) in (0..40).flat_map(|seed| [(seed, None), (seed, Some(2))]) {
            let topology = ring(&shuffled(n, seed));
            let inputs = vec![(ms(0), Input::Start(Who::All))];
            let plan = Plan { seed, inputs, ..Plan::default() };
            let config = itai_rodeh::Config { ids };
            let (report, draws) =
                watch::<ItaiRodeh, _>(&topology, &config, &plan, Draws::default());
            assert!(report.all_kept(), "{:?}", report.promises);
            assert_eq!(report.unexpected, 0);
            let counted = [("Id", cost(&draws, n as usize)), ("Elected", u64::from(n))];
            assert_eq!(report.messages.by_kind, counted, "{n} {ids:?} {seed}");
            assert_eq!(draws.0.len() as u64, report.rounds);
            // Who drew the largest of a round, and nobody else, draws in the next.
            let mut due: Vec<usize> = (0..n as usize).collect();
            for drawn in draws.0.values() {
                assert!(drawn.keys().copied().eq(due), "{n} {ids:?} {seed}");
                let largest = drawn.values().max();
                let tied = drawn.iter().filter(|(_, id)| Some(*id) == largest);
                due = tied.map(|(&node, _)| node).collect();
            }
            assert_eq!(due.len(), 1);
            assert_eq!(leaders(&report), [due[0] as u32]);
        }
    }
}

#[test]
fn itai_rodeh_draws_from_as_many_as_it_is_told() {
    let drawn = |ids| {
        let plan = Plan { inputs: at_once(&(0..64).collect::<Vec<_>>()), ..Plan::default() };
        let config = itai_rodeh::Config { ids };
        let (_, draws) =
            watch::<ItaiRodeh, _>(&ring(&shuffled(64, 1)), &config, &plan, Draws::default());
        let first = &draws.0[&1];
        (*first.values().min().unwrap(), *first.values().max().unwrap())
    };
    assert_eq!(drawn(Some(2)), (1, 2));
    assert!((33..=64).contains(&drawn(None).1));
}

#[test]
fn the_first_round_of_itai_rodeh_decides_as_often_as_it_should() {
    const RUNS: u32 = 4_000;
    for (n, ids) in [(2, 2), (3, 3), (4, 2), (5, 16)] {
        let config = itai_rodeh::Config { ids: Some(ids) };
        let topology = ring(&shuffled(n, 1));
        let decided = (0..RUNS).filter(|&seed| {
            let inputs = vec![(ms(0), Input::Start(Who::All))];
            let plan = Plan { seed: u64::from(seed), inputs, ..Plan::default() };
            simulate::<ItaiRodeh>(&topology, &config, &plan).rounds == 1
        });
        let (n, r) = (f64::from(n), f64::from(ids));
        let expected: f64 =
            (1..=ids).map(|k| n / r * ((f64::from(k) - 1.0) / r).powf(n - 1.0)).sum();
        let measured = f64::from(decided.count() as u32) / f64::from(RUNS);
        let deviation = (expected * (1.0 - expected) / f64::from(RUNS)).sqrt();
        let off = (measured - expected).abs() / deviation;
        assert!(off < 3.5, "{n} {ids}: {measured} is {off} deviations from {expected}");
        if (n, ids) == (2.0, 2) {
            assert!((expected - 0.5).abs() < 1e-12);
        }
    }
}

#[test]
fn itai_rodeh_elects_one_in_any_order_of_messages_and_whoever_starts() {
    for seed in 0..400 {
        let n = 1 + (seed % 9) as u32;
        for starters in initiators(n) {
            let fifo = seed % 2 == 0;
            let (_, report) = hectic::<ItaiRodeh>(&shuffled(n, seed), &starters, fifo, seed);
            assert!(report.all_kept(), "{:?}", report.promises);
            assert_eq!(report.unexpected, 0);
            assert!(starters.contains(&leaders(&report)[0]), "only who stands can win");
            if starters.len() == 1 && n > 1 {
                assert_eq!(report.messages.total, 2 * u64::from(n));
            }
        }
    }
}

#[test]
fn itai_rodeh_does_not_look_at_uids() {
    for seed in 0..20 {
        let outcome = |uids: &[u64]| {
            let (_, report) = hectic::<ItaiRodeh>(uids, &[0, 2, 3], true, seed);
            (leaders(&report), report.messages)
        };
        assert_eq!(outcome(&[1, 2, 3, 4, 5]), outcome(&[50, 40, 30, 20, 10]));
    }
}

#[test]
fn itai_rodeh_refuses_dice_with_one_side() {
    let check = |ids, n| {
        let config = itai_rodeh::Config { ids: Some(ids) };
        ItaiRodeh::validate(&config, &ring(&shuffled(n, 0)))
    };
    assert_eq!(check(2, 2), Ok(()));
    assert_eq!(check(1, 1), Ok(()));
    assert_eq!(check(0, 1).unwrap_err(), "ids: expected at least 1, found 0");
    let refused = "ids: expected at least 2, or no draw ever tells them apart, found 1";
    assert_eq!(check(1, 2).unwrap_err(), refused);
}
