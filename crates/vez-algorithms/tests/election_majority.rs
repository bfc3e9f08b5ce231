//! Election by weighted majority: one leader a term, whatever happens, unless promises are
//! forgotten; and who leads, when, and what pre-votes and quorum checks are good for.

mod common;

use common::{crash, election, leader, ms, restart, run, run_with, start, system};
use vez_algorithms::election::WeightedMajority;
use vez_algorithms::election::weighted_majority::Config;
use vez_core::problem::election::View;
use vez_core::{Chance, Ending, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Directions, Forget, Input, Network, Plan, Report, simulate};

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

fn split(sides: &[&[u64]]) -> Input {
    let side = |side: &&[u64]| side.iter().map(|&uid| NodeId(uid as u32 - 1)).collect();
    Input::Partition(sides.iter().map(side).collect())
}

fn run_until(
    topology: &Topology,
    config: &Config,
    inputs: Vec<(Time, Input)>,
    until: u64,
) -> Report {
    let plan = Plan { inputs, until: Some(ms(until)), ..Plan::default() };
    simulate::<WeightedMajority>(topology, config, &plan)
}

/// Everything that can go wrong, at random.
fn storm(seed: u64, amnesia: bool) -> (Topology, Config, Plan) {
    let mut chance = Seeded::stream(seed, 77);
    let n = 2 + chance.below(6);
    let weights = (0..n).map(|i| if i == 0 { 1 } else { chance.below(4) }).collect();
    let topology = system::<WeightedMajority>(n).with_weights(weights);
    let until = Time::from_secs(2);
    let moment = |chance: &mut Seeded| Time::from_micros(chance.below_u64(until.as_micros()));
    let mut inputs = Vec::new();
    for _ in 0..chance.below(30) {
        let (at, node) = (moment(&mut chance), NodeId(chance.below(n)));
        let other = NodeId((node.0 + 1 + chance.below(n - 1)) % n);
        let pause = Time::from_micros(u64::from(chance.below(400_000)));
        inputs.push((
            at,
            match chance.below(9) {
                0 => Input::Crash(node),
                1 => Input::CrashUnsent(node),
                2 | 3 => Input::Restart(node, Forget::AsPlanned),
                4 => Input::Pause(node, pause),
                5 => Input::Cut(node, other, Directions::One),
                6 => Input::Partition(vec![
                    topology.ids().filter(|_| chance.below(2) == 0).collect(),
                ]),
                7 => Input::HealAll,
                _ => Input::Start(vez_sim::Who::One(node)),
            },
        ));
    }
    let delay = Delay::Exponential(ms(u64::from(1 + chance.below(60))));
    let loss = f64::from(chance.below(4)) / 10.0;
    let network = Network { delay, loss, duplicate: 0.1, fifo: false, ..Network::default() };
    let (pre_vote, check_quorum) = (chance.below(2) == 0, chance.below(2) == 0);
    let config = Config { pre_vote, check_quorum, ..Config::default() };
    let until = Some(until);
    (
        topology,
        config,
        Plan { seed, network, inputs, drift: 0.3, amnesia, until, ..Plan::default() },
    )
}

#[test]
fn no_term_ever_has_two_leaders() {
    let mut terms = 0;
    for seed in 0..200 {
        let (topology, config, plan) = storm(seed, false);
        let report = simulate::<WeightedMajority>(&topology, &config, &plan);
        let verdict = report.verdict(Promise::Uniqueness).unwrap();
        assert!(verdict.kept, "seed {seed}: {:?}\n{plan:?}", verdict.detail);
        assert_eq!(report.unexpected, 0);
        terms += election(&report).declarations.len();
    }
    assert!(200 < terms, "only {terms} leaders: the storm is too strong to show anything");
}

#[test]
fn forgotten_votes_give_a_term_two_leaders() {
    let run = |amnesia| {
        let (topology, config, plan) = storm(60, amnesia);
        simulate::<WeightedMajority>(&topology, &config, &plan)
    };
    assert!(kept(&run(false), Promise::Uniqueness));
    let broken = run(true);
    let detail = broken.verdict(Promise::Uniqueness).unwrap().detail.clone().unwrap();
    assert_eq!(detail, "P3 leads term 1, which P1 was elected to lead");
}

#[test]
fn a_vote_outlives_a_crash() {
    // P1 and P2 do not hear each other. P3 votes for P1, goes down and up, and is asked by P2 for
    // its vote of the same term.
    let three = system::<WeightedMajority>(3);
    let inputs = vec![
        (ms(0), Input::Cut(NodeId(0), NodeId(1), Directions::Both)),
        start(&three, 1, 0),
        restart(&three, 3, 3),
        start(&three, 2, 5),
    ];
    let run = |amnesia| {
        let plan = Plan { inputs: inputs.clone(), amnesia, until: Some(ms(20)), ..Plan::default() };
        simulate::<WeightedMajority>(&three, &Config::default(), &plan)
    };
    let remembers = run(false);
    assert_eq!(election(&remembers).declarations.len(), 1);
    assert!(kept(&remembers, Promise::Uniqueness));
    assert!(!kept(&run(true), Promise::Uniqueness));
}

#[test]
fn one_leader_is_elected_without_being_asked_for() {
    for n in [1, 2, 3, 5, 8] {
        let topology = system::<WeightedMajority>(n);
        let report = run::<WeightedMajority>(&topology, vec![]);
        assert_eq!(report.ending, Ending::Deadline);
        assert!(report.all_kept(), "{n}: {:?}", report.promises);
        assert!(leader(&topology, &report).is_some());
    }
    let alone = system::<WeightedMajority>(1);
    let report = run_until(&alone, &Config::default(), vec![start(&alone, 1, 0)], 1);
    assert_eq!((leader(&alone, &report), report.messages.total), (Some(1), 0));
    // An undisputed election: n − 1 requests, n − 1 votes, n − 1 heartbeats.
    let five = system::<WeightedMajority>(5);
    let report = run_until(&five, &Config::default(), vec![start(&five, 3, 0)], 10);
    let costs = ["VoteReq", "Vote", "Heartbeat"].map(|kind| report.messages.of(kind));
    assert_eq!((costs, report.messages.total), ([4, 4, 4], 12));
    assert_eq!(leader(&five, &report), Some(3));
}

#[test]
fn exactly_half_elects_nobody_and_one_more_does() {
    let cut = |sides: &[&[u64]]| vec![(ms(0), split(sides))];
    let four = system::<WeightedMajority>(4);
    let halves = run_until(&four, &Config::default(), cut(&[&[1, 2], &[3, 4]]), 2_000);
    assert!(election(&halves).declarations.is_empty());
    let heavy = |weight| system::<WeightedMajority>(4).with_weights(vec![weight, 1, 1, 1]);
    let report = run_until(&heavy(3), &Config::default(), cut(&[&[1], &[2, 3, 4]]), 2_000);
    assert!(election(&report).declarations.is_empty());
    let report = run_until(&heavy(4), &Config::default(), cut(&[&[1], &[2, 3, 4]]), 2_000);
    assert!(election(&report).declarations.iter().all(|d| d.node == NodeId(0)));
    assert_eq!(election(&report).views[0], View::Follows(NodeId(0)));
}

#[test]
fn s33_only_the_larger_side_of_a_partition_may_elect() {
    let topology = system::<WeightedMajority>(11);
    let sides: [&[u64]; 2] = [&[1, 2, 4, 6, 8], &[3, 5, 7, 9, 10, 11]];
    let report = run_until(&topology, &Config::default(), vec![(ms(0), split(&sides))], 2_000);
    assert!(!election(&report).declarations.is_empty());
    for declaration in &election(&report).declarations {
        assert!(sides[1].contains(&topology.uid(declaration.node)));
    }
}

#[test]
fn a_vote_counts_once_however_often_it_comes() {
    // Every message comes twice; two of five are never more than two.
    let five = system::<WeightedMajority>(5);
    let inputs = vec![crash(&five, 3, 0), crash(&five, 4, 0), crash(&five, 5, 0)];
    let network = Network { duplicate: 1.0, ..Network::default() };
    let plan = Plan { network, inputs, ..Plan::default() };
    let report = simulate::<WeightedMajority>(&five, &Config::default(), &plan);
    assert!(election(&report).declarations.is_empty());
}

/// P3 leads; at 200 ms it is cut off, until 1 s.
fn cut_off(uid: u64) -> Vec<(Time, Input)> {
    let others: Vec<u64> = (1..=5).filter(|&other| other != uid).collect();
    let five = system::<WeightedMajority>(5);
    let healed = (ms(1_000), Input::HealAll);
    vec![start(&five, 3, 0), (ms(200), split(&[&[uid], &others])), healed]
}

#[test]
fn s35_a_leader_of_old_is_refused_and_steps_down() {
    let five = system::<WeightedMajority>(5);
    let split = run_until(&five, &Config::default(), cut_off(3), 990);
    // Two who believe they lead, in different terms: no term has two leaders.
    assert_eq!(election(&split).views[2], View::Follows(NodeId(2)));
    assert_eq!(election(&split).declarations.len(), 2);
    assert!(kept(&split, Promise::Uniqueness) && !kept(&split, Promise::Agreement));
    let healed = run_until(&five, &Config::default(), cut_off(3), 1_200);
    let second = election(&healed).declarations[1];
    assert_eq!(election(&healed).leader(), Some(second.node));
    assert!(election(&healed).declarations[0].term < second.term);
    assert!(0 < healed.messages.of("Refuse"));
}

#[test]
fn a_quorum_check_makes_a_deserted_leader_step_down() {
    let five = system::<WeightedMajority>(5);
    let config = Config { check_quorum: true, ..Config::default() };
    let report = run_until(&five, &config, cut_off(3), 600);
    assert_eq!(election(&report).views[2], View::Unknown);
    // One that is heard stays.
    let report = run_until(&five, &config, vec![start(&five, 3, 0)], 2_000);
    assert_eq!(election(&report).declarations.len(), 1);
}

#[test]
fn with_pre_votes_one_that_was_cut_off_disturbs_nobody() {
    let five = system::<WeightedMajority>(5);
    let with = |pre_vote| {
        let config = Config { pre_vote, ..Config::default() };
        let report = run_until(&five, &config, cut_off(1), 2_000);
        assert!(kept(&report, Promise::Agreement));
        (election(&report).declarations.len(), report.rounds)
    };
    assert_eq!(with(true), (1, 1));
    let (leaders, term) = with(false);
    assert!(1 < leaders && 2 < term);
}

#[test]
fn a_known_leader_is_not_challenged_on_request() {
    let five = system::<WeightedMajority>(5);
    let suspects = (ms(30), Input::Suspect(NodeId(0), NodeId(3)));
    let inputs = vec![start(&five, 3, 0), start(&five, 1, 20), suspects];
    let report = run_until(&five, &Config::default(), inputs.clone(), 40);
    assert_eq!((leader(&five, &report), election(&report).declarations.len()), (Some(3), 1));
    let suspects = (ms(30), Input::Suspect(NodeId(0), NodeId(2)));
    let report = run_until(&five, &Config::default(), vec![inputs[0].clone(), suspects], 40);
    assert_eq!((leader(&five, &report), election(&report).declarations.len()), (Some(1), 2));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let topology = system::<WeightedMajority>(3);
    let refused = |config: Config| WeightedMajority::validate(&config, &topology).unwrap_err();
    let short = Config { election_after: ms(50), ..Config::default() };
    assert_eq!(
        refused(short),
        "election_after: expected more than heartbeat_every, 50ms, found 50ms"
    );
    let weightless = topology.clone().with_weights(vec![0; 3]);
    assert!(WeightedMajority::validate(&Config::default(), &weightless).is_err());
    let report = run_with::<WeightedMajority>(&topology, &Config::default(), vec![]);
    assert!(report.all_kept());
}
