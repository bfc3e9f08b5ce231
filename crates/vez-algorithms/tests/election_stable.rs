//! Stability: by uptime, and by a failure detector that says when to elect.

mod common;

use common::{crash, election, leader, ms, restart, run, start, system};
use vez_algorithms::detect::{DetectorConfig, DetectorKind};
use vez_algorithms::election::monitored::Config as MonitoredConfig;
use vez_algorithms::election::stable::Config;
use vez_algorithms::election::{Bully, BullyStrict, Monitored, Stable, WeightedMajority, bully};
use vez_core::problem::election::{Failure, View};
use vez_core::{Chance, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Directions, Forget, Input, Network, Plan, Report, simulate};

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

fn run_until<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    inputs: Vec<(Time, Input)>,
    until: u64,
) -> Report {
    simulate::<P>(topology, config, &Plan { inputs, until: Some(ms(until)), ..Plan::default() })
}

/// P5 leads, and goes down and comes back `times` times, a second each.
fn flapping<P: Protocol>(times: u64) -> Report {
    let five = system::<P>(5);
    let mut inputs = vec![start(&five, 5, 0)];
    for i in 0..times {
        inputs.push(crash(&five, 5, 1_000 + 2_000 * i));
        inputs.push((ms(1_010 + 2_000 * i), Input::Suspect(NodeId(0), NodeId(4))));
        inputs.push(restart(&five, 5, 2_000 + 2_000 * i));
    }
    run_until::<P>(&five, &P::Config::default(), inputs, 1_000 + 2_000 * times)
}

#[test]
fn a_flapping_largest_changes_the_bullys_leader_each_time_and_this_one_once() {
    for times in 1..=4 {
        let bully = flapping::<Bully>(times);
        assert_eq!(election(&bully).changes(), 2 * times as usize);
        assert!(!kept(&bully, Promise::Stability));
        let stable = flapping::<Stable>(times);
        assert_eq!(election(&stable).changes(), 1);
        assert_eq!(election(&stable).leader(), Some(NodeId(3)));
        assert!(stable.all_kept());
    }
}

#[test]
fn the_first_leader_is_the_largest_since_all_came_up_at_once() {
    for n in [1, 2, 3, 7] {
        let topology = system::<Stable>(n);
        let report = run::<Stable>(&topology, vec![]);
        assert_eq!(leader(&topology, &report), Some(u64::from(n)));
        assert!(report.all_kept());
    }
}

#[test]
fn the_longest_up_takes_over() {
    let five = system::<Stable>(5);
    // P4, then P3, then P2 have been down; P1 has not.
    let mut inputs = vec![start(&five, 1, 0)];
    for (i, uid) in [4, 3, 2].into_iter().enumerate() {
        inputs.push(crash(&five, uid, 500 + 500 * i as u64));
        inputs.push(restart(&five, uid, 600 + 500 * i as u64));
    }
    inputs.push(crash(&five, 5, 3_000));
    let report = run_until::<Stable>(&five, &Config::default(), inputs.clone(), 4_000);
    assert_eq!(leader(&five, &report), Some(1));
    // P1 gone too, the one that returned first is next; the others are larger or came later.
    inputs.push(crash(&five, 1, 4_000));
    let report = run_until::<Stable>(&five, &Config::default(), inputs.clone(), 5_000);
    assert_eq!(leader(&five, &report), Some(4));
    let leaders: Vec<u64> =
        election(&report).declarations.iter().map(|d| five.uid(d.node)).collect();
    assert_eq!(leaders, [5, 1, 4]);
    assert!(report.claims_kept());
    // Without a majority nobody leads.
    inputs.push(crash(&five, 4, 5_000));
    let report = run_until::<Stable>(&five, &Config::default(), inputs, 6_000);
    assert_eq!(election(&report).views[1..3], [View::Unknown; 2]);
}

#[test]
fn a_returning_process_learns_the_leader_and_deposes_nobody() {
    let five = system::<Stable>(5);
    let inputs = vec![start(&five, 1, 0), crash(&five, 3, 500), restart(&five, 3, 1_500)];
    let report = run_until::<Stable>(&five, &Config::default(), inputs, 1_600);
    assert_eq!(leader(&five, &report), Some(5));
    assert_eq!(election(&report).declarations.len(), 1);
}

#[test]
fn one_that_was_cut_off_deposes_nobody() {
    let five = system::<Stable>(5);
    let sides = vec![vec![NodeId(0)], (1..5).map(NodeId).collect()];
    let inputs =
        vec![start(&five, 1, 0), (ms(500), Input::Partition(sides)), (ms(2_000), Input::HealAll)];
    let report = run_until::<Stable>(&five, &Config::default(), inputs, 3_000);
    assert_eq!(election(&report).declarations.len(), 1);
    assert!(report.all_kept(), "{:?}", report.promises);
}

#[test]
fn the_longest_up_does_not_depose_a_leader_that_it_alone_cannot_hear() {
    let five = system::<Stable>(5);
    // Of all but the leader P4 has been up longest.
    let cut = Input::Cut(NodeId(3), NodeId(4), Directions::Both);
    let inputs = vec![start(&five, 1, 0), (ms(500), cut), (ms(2_000), Input::HealAll)];
    let report = run_until::<Stable>(&five, &Config::default(), inputs, 3_000);
    assert_eq!(election(&report).declarations.len(), 1);
    assert!(report.all_kept(), "{:?}", report.promises);
}

#[test]
fn whatever_happens_a_term_has_one_leader() {
    for seed in 0..200 {
        let mut chance = Seeded(seed);
        let topology = system::<Stable>(5).with_weights(vec![1, 2, 1, 3, 1]);
        let mut inputs = Vec::new();
        for _ in 0..12 {
            let at = Time::from_micros(u64::from(chance.below(2_000_000)));
            let node = NodeId(chance.below(5));
            inputs.push((
                at,
                match chance.below(5) {
                    0 => Input::Crash(node),
                    1 | 2 => Input::Restart(node, Forget::AsPlanned),
                    3 => Input::Partition(vec![vec![node, NodeId(0)]]),
                    _ => Input::HealAll,
                },
            ));
        }
        let delay = Delay::Exponential(ms(30));
        let network = Network { delay, loss: 0.2, fifo: false, ..Network::default() };
        let plan = Plan { seed, network, inputs, ..Plan::default() };
        let report = simulate::<Stable>(&topology, &Config::default(), &plan);
        assert!(kept(&report, Promise::Uniqueness), "seed {seed}");
    }
}

#[test]
fn too_short_a_canvass_passes_the_longest_up_over() {
    let five = system::<Stable>(5);
    let config = Config { canvass_within: Time::from_micros(500), ..Config::default() };
    let report = run_until::<Stable>(&five, &config, vec![], 2_000);
    // Nobody's answers come in time: no majority, so nobody stands.
    assert!(election(&report).declarations.is_empty());
    assert!(Stable::validate(&config, &five).is_ok());
    let late = Config { canvass_within: ms(200), ..Config::default() };
    assert!(Stable::validate(&late, &five).is_err());
}

type MonitoredBully = Monitored<Bully>;

fn detector(kind: DetectorKind, timeout: u64) -> MonitoredConfig<bully::Config> {
    let detector = DetectorConfig { kind, timeout: ms(timeout), ..DetectorConfig::default() };
    MonitoredConfig { detector, ..MonitoredConfig::default() }
}

#[test]
fn a_crash_leads_to_an_election_that_nobody_asked_for() {
    let five = system::<MonitoredBully>(5);
    let inputs = vec![start(&five, 5, 0), crash(&five, 5, 100), crash(&five, 4, 200)];
    let report = run::<MonitoredBully>(&five, inputs);
    assert_eq!(leader(&five, &report), Some(3));
    assert!(report.claims_kept());
    let tally = election(&report);
    // Every survivor suspects each of the two, and nobody else.
    assert_eq!((tally.suspicions, tally.suspicions_false), (4 + 3, 0));
    for failure in &tally.failures {
        let detected = failure.detected.unwrap();
        // The last heartbeat arrived at most 6 ms before, and a tick may pass unnoticed.
        let patience = detected - failure.at;
        assert!(ms(4) <= patience && patience <= ms(12), "{failure:?}");
        assert!(failure.led && failure.replaced.unwrap() - detected <= ms(6), "{failure:?}");
    }
    assert_eq!(tally.changes(), 2);
}

#[test]
fn a_slow_leader_is_suspected_wrongly_and_elected_again() {
    let five = system::<MonitoredBully>(5);
    let inputs = vec![start(&five, 5, 0), (ms(100), Input::Pause(NodeId(4), ms(40)))];
    let report = run::<MonitoredBully>(&five, inputs.clone());
    let tally = election(&report);
    assert!(0 < tally.suspicions_false && tally.failures.is_empty());
    assert!(!kept(&report, Promise::Uniqueness));
    assert_eq!(leader(&five, &report), Some(5));
    // A detector with more patience makes no mistake.
    let config = detector(DetectorKind::Heartbeat, 60);
    let report = run_until::<MonitoredBully>(&five, &config, inputs, 1_000);
    assert_eq!(election(&report).suspicions, 0);
    assert!(report.claims_kept());
}

#[test]
fn a_leader_that_comes_back_and_dies_before_its_first_heartbeat_is_replaced() {
    let five = system::<MonitoredBully>(5);
    let again = (ms(200) + Time::from_micros(500), Input::Crash(NodeId(4)));
    let inputs = vec![start(&five, 5, 0), crash(&five, 5, 100), restart(&five, 5, 200), again];
    let report = run::<MonitoredBully>(&five, inputs);
    let tally = election(&report);
    let announced = tally.declarations.iter().filter(|declared| declared.node == NodeId(4));
    assert_eq!(announced.count(), 2, "it announced itself while it was suspected");
    assert_eq!(leader(&five, &report), Some(4));
}

#[test]
fn too_short_a_timeout_costs_needless_elections() {
    let five = system::<MonitoredBully>(5);
    let elections = |kind, timeout| {
        let config = detector(kind, timeout);
        let report = run_until::<MonitoredBully>(&five, &config, vec![start(&five, 5, 0)], 500);
        (election(&report).suspicions_false, report.messages.of("Election"))
    };
    let (wrong, messages) = elections(DetectorKind::Heartbeat, 3);
    assert!(100 < wrong && 100 < messages);
    assert_eq!(elections(DetectorKind::Heartbeat, 10), (0, 0));
    // The adaptive one makes each mistake once or twice, and learns.
    let (wrong, _) = elections(DetectorKind::Adaptive, 3);
    assert!(0 < wrong && wrong <= 40, "{wrong}");
}

#[test]
fn sides_that_meet_again_agree_again() {
    let five = system::<MonitoredBully>(5);
    let sides = vec![(0..3).map(NodeId).collect(), vec![NodeId(3), NodeId(4)]];
    let mut inputs = vec![start(&five, 5, 0), (ms(100), Input::Partition(sides))];
    let config = MonitoredConfig::default();
    let split = run_until::<MonitoredBully>(&five, &config, inputs.clone(), 200);
    let views = &election(&split).views;
    assert_eq!((views[0], views[4]), (View::Follows(NodeId(2)), View::Follows(NodeId(4))));
    inputs.push((ms(200), Input::HealAll));
    let whole = run_until::<MonitoredBully>(&five, &config, inputs, 300);
    assert_eq!(leader(&five, &whole), Some(5));
}

#[test]
fn any_election_can_be_monitored() {
    fn survives<E: Protocol<Problem = vez_core::Election>>() {
        let five = system::<E>(5);
        let inputs = vec![start(&five, 5, 0), crash(&five, 5, 300)];
        let config = MonitoredConfig::default();
        let report = run_until::<Monitored<E>>(&five, &config, inputs, 2_000);
        let alive = election(&report).leader().expect("a leader all agree on");
        assert_ne!(alive, NodeId(4), "{}", E::META.name);
        let [Failure { detected: Some(_), replaced: Some(_), .. }] = election(&report).failures[..]
        else {
            panic!("{}: {:?}", E::META.name, election(&report).failures)
        };
    }
    survives::<Bully>();
    survives::<BullyStrict>();
    survives::<WeightedMajority>();
    survives::<Stable>();
}

#[test]
fn settings_of_both_halves_are_checked() {
    let five = system::<MonitoredBully>(5);
    let none = detector(DetectorKind::Heartbeat, 0);
    assert!(MonitoredBully::validate(&none, &five).unwrap_err().starts_with("detector.timeout"));
    let mut config = MonitoredConfig::<<WeightedMajority as Protocol>::Config>::default();
    config.election.election_after = ms(1);
    assert!(
        Monitored::<WeightedMajority>::validate(&config, &five)
            .unwrap_err()
            .starts_with("election.election_after")
    );
}
