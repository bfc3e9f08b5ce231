//! The probabilistic election: nothing is promised, so what is measured are frequencies, over seeds
//! that never change.

mod common;

use common::{crash, election, leader, ms, run_with, start, system};
use vez_algorithms::election::Probabilistic;
use vez_algorithms::election::probabilistic::{Config, Tag, lot};
use vez_core::{Ending, NodeId, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Input, Network, Plan, Report, Who, simulate};

/// `n` processes with identities, and so lots, of their own for each seed.
fn group(n: u32, seed: u64) -> Topology {
    let mut chance = Seeded::stream(seed, 5);
    let uids = (0..n).map(|_| chance.next_u64() >> 1).collect();
    system::<Probabilistic>(n).with_uids(uids)
}

fn first_starts() -> Vec<(Time, Input)> {
    vec![(ms(0), Input::Start(Who::One(NodeId(0))))]
}

fn elect(topology: &Topology, config: &Config) -> Report {
    run_with::<Probabilistic>(topology, config, first_starts())
}

#[test]
fn as_often_as_foretold_nobody_passes_and_relays_cost_what_they_should() {
    let (n, k, trials) = (100_u32, 2_u32, 2_000_u32);
    let config = Config { k, rounds: 1, ..Config::default() };
    let (mut nobody, mut relays) = (0, 0);
    for seed in 0..trials {
        let topology = group(n, u64::from(seed));
        let report = elect(&topology, &config);
        let elected = !election(&report).declarations.is_empty();
        nobody += u32::from(!elected);
        relays += report.messages.of("Relay") as u32;
        let leaders = if elected { u64::from(n) - 1 } else { 0 };
        assert_eq!(report.messages.of("Init"), u64::from(n) - 1);
        assert_eq!(report.messages.of("Leader"), leaders);
    }
    let share = f64::from(k) / f64::from(n);
    // (1 − k/n)ⁿ = 0.1326, with a standard error of 0.0076 over 2,000 trials.
    let foretold = (1.0 - share).powf(f64::from(n));
    let found = f64::from(nobody) / f64::from(trials);
    assert!((found - foretold).abs() < 4.0 * 0.0076, "{found} instead of {foretold}");
    // n(n − 1)(k/n)² = 3.96, with a standard error of about 0.13.
    let foretold = f64::from(n) * f64::from(n - 1) * share * share;
    let found = f64::from(relays) / f64::from(trials);
    assert!((found - foretold).abs() < 4.0 * 0.13, "{found} instead of {foretold}");
}

#[test]
fn with_full_views_and_no_faults_the_lowest_lot_leads() {
    for seed in 0..100 {
        let topology = group(50, seed);
        let report = elect(&topology, &Config::default());
        assert_eq!(report.ending, Ending::Quiescent);
        let number = report.rounds;
        let tag = Tag { number, initiator: topology.uid(NodeId(0)) };
        let lowest = topology.ids().min_by_key(|&id| lot(topology.uid(id), tag)).unwrap();
        assert_eq!(election(&report).leader(), Some(lowest), "seed {seed}");
        assert_eq!(election(&report).declarations.len(), 1);
    }
}

#[test]
fn a_round_that_nobody_passes_is_drawn_again_under_another_name() {
    let config = |rounds| Config { k: 1, rounds, ..Config::default() };
    let failures = |rounds: u32| {
        let failed = |seed: &u64| {
            election(&elect(&group(60, *seed), &config(rounds))).declarations.is_empty()
        };
        (0..300).filter(failed).count()
    };
    // Each round fails with probability 0.365: once 109 times, thrice 14.6 times of 300.
    assert!((80..140).contains(&failures(1)), "{}", failures(1));
    assert!((4..30).contains(&failures(3)), "{}", failures(3));
    assert_eq!(failures(12), 0);
}

#[test]
fn everyone_passes_a_filter_wider_than_the_group() {
    for n in [1, 2, 5, 8] {
        let topology = system::<Probabilistic>(n);
        let report = elect(&topology, &Config::default());
        let others = u64::from(n) - 1;
        assert_eq!(report.messages.of("Relay"), u64::from(n) * others);
        assert!(report.all_kept() && leader(&topology, &report).is_some());
    }
    let alone = system::<Probabilistic>(1);
    assert_eq!(elect(&alone, &Config::default()).messages.total, 0);
}

#[test]
fn a_lowest_that_is_dead_is_passed_over() {
    // In the same round: there is no other.
    let config = Config { rounds: 1, ..Config::default() };
    for seed in 0..50 {
        let topology = group(40, seed);
        let healthy = elect(&topology, &config);
        let dead = election(&healthy).leader().expect("with k = 8 somebody passes");
        if dead == NodeId(0) {
            continue;
        }
        let mut inputs = vec![crash(&topology, topology.uid(dead), 0)];
        inputs.extend(first_starts());
        let report = run_with::<Probabilistic>(&topology, &config, inputs);
        let next = election(&report).leader().expect("somebody else");
        assert_ne!(next, dead);
    }
}

#[test]
fn a_leader_that_dies_is_replaced_in_a_newer_round() {
    let topology = system::<Probabilistic>(6);
    let first = elect(&topology, &Config::default());
    let dead = election(&first).leader().unwrap();
    let asks = NodeId((dead.0 + 1) % 6);
    let mut inputs = first_starts();
    inputs.push((ms(100), Input::Crash(dead)));
    inputs.push((ms(110), Input::Suspect(asks, dead)));
    let report = run_with::<Probabilistic>(&topology, &Config::default(), inputs);
    assert_eq!(election(&report).declarations.len(), 2);
    assert!(election(&report).leader().is_some_and(|leader| leader != dead));
}

/// Of 200 runs, how many end with everyone agreeing on a leader, and how many had one only.
fn good_runs(config: &Config, network: &Network, initiators: u32) -> (u32, u32) {
    let (mut agreed, mut single) = (0, 0);
    for seed in 0..200 {
        let topology = group(50, seed);
        let starts = (0..initiators).map(|i| (ms(0), Input::Start(Who::One(NodeId(i)))));
        let (inputs, network) = (starts.collect(), network.clone());
        let plan = Plan { seed, network, inputs, ..Plan::default() };
        let report = simulate::<Probabilistic>(&topology, config, &plan);
        assert_eq!(report.ending, Ending::Quiescent);
        agreed += u32::from(election(&report).leader().is_some());
        single += u32::from(election(&report).declarations.len() == 1);
    }
    (agreed, single)
}

#[test]
fn agreement_is_a_matter_of_how_often() {
    let reliable = Network::default();
    assert_eq!(good_runs(&Config::default(), &reliable, 1), (200, 200));
    assert_eq!(good_runs(&Config::default(), &reliable, 5), (200, 200));
    // Among those who know only a few others several may speak up, and the lowest lot prevails;
    // passing on what one hears helps.
    let few = |relays| Config { view: Some(10), relays, ..Config::default() };
    let (agreed, silent) = good_runs(&few(0), &reliable, 1);
    let (_, relayed) = good_runs(&few(3), &reliable, 1);
    assert_eq!(agreed, 200);
    assert!(silent < relayed && relayed < 200, "{silent} {relayed}");
    // A group thought ten times as large lets a tenth pass: e^(−0.8) of the rounds fail.
    let wrong = Config { n: Some(500), rounds: 1, ..Config::default() };
    let (guessed, _) = good_runs(&wrong, &reliable, 1);
    assert!((85..135).contains(&guessed), "{guessed}");
    let delay = Delay::Uniform(Time::from_micros(100), ms(1));
    let lossy = Network { delay, loss: 0.05, fifo: false, ..Network::default() };
    // One announcement lost of 49 is enough for somebody not to know.
    let (lost, _) = good_runs(&Config::default(), &lossy, 1);
    assert!((5..60).contains(&lost), "{lost}");
}

#[test]
fn it_promises_nothing() {
    assert!(Probabilistic::META.promises.is_empty());
    let refused =
        |config: Config| Probabilistic::validate(&config, &system::<Probabilistic>(3)).unwrap_err();
    assert_eq!(refused(Config { k: 0, ..Config::default() }), "k: expected 1 or more, found 0");
    assert!(refused(Config { rounds: 0, ..Config::default() }).starts_with("rounds"));
    let topology = system::<Probabilistic>(3);
    let report =
        run_with::<Probabilistic>(&topology, &Config::default(), vec![start(&topology, 1, 0)]);
    assert!(report.all_kept());
}
