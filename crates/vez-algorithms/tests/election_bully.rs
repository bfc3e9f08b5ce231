//! The Bully and its strict form: the stories of the notes, exact costs, and what goes wrong when
//! timeouts lie, networks split or identities repeat.

mod common;

use common::{crash, election, leader, ms, restart, run, run_with, start, system};
use vez_algorithms::election::bully::{Audience, Config};
use vez_algorithms::election::{Bully, BullyStrict, bully_strict};
use vez_core::problem::election::View;
use vez_core::{Chance, Ending, NodeId, Promise, Seeded, Time, Topology};
use vez_sim::{Delay, Forget, Input, Network, Plan, Report, Who, simulate};

fn costs<const N: usize>(report: &Report, kinds: [&str; N]) -> [u64; N] {
    kinds.map(|kind| report.messages.of(kind))
}

const BULLY: [&str; 3] = ["Election", "Ok", "Coord"];

fn suspect(topology: &Topology, uid: u64, of: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Suspect(topology.find(uid).unwrap(), topology.find(of).unwrap()))
}

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

#[test]
fn s16_three_notice_and_the_fourth_of_five_wins() {
    let five = system::<Bully>(5);
    let inputs =
        vec![crash(&five, 5, 0), start(&five, 2, 0), start(&five, 3, 0), start(&five, 1, 1)];
    let report = run::<Bully>(&five, inputs);
    assert_eq!(costs(&report, BULLY), [10, 6, 4]);
    assert_eq!(leader(&five, &report), Some(4));
}

#[test]
fn s17_the_fourth_of_seven_notices_and_the_sixth_wins() {
    let seven = system::<Bully>(7);
    let report = run::<Bully>(&seven, vec![crash(&seven, 7, 0), start(&seven, 4, 0)]);
    assert_eq!(costs(&report, BULLY), [6, 3, 6]);
    assert_eq!((leader(&seven, &report), report.messages.to_crashed), (Some(6), 4));
    let eight = system::<Bully>(8).with_uids((0..8).collect());
    let report = run::<Bully>(&eight, vec![crash(&eight, 7, 0), start(&eight, 4, 0)]);
    assert_eq!((costs(&report, BULLY), leader(&eight, &report)), ([6, 3, 7], Some(6)));
}

#[test]
fn s18_s19_three_processes_with_and_without_the_largest() {
    let three = system::<Bully>(3);
    let report = run::<Bully>(&three, vec![start(&three, 1, 0)]);
    assert_eq!((costs(&report, BULLY), leader(&three, &report)), ([3, 3, 2], Some(3)));
    let inputs = vec![crash(&three, 3, 0), start(&three, 1, 0)];
    let report = run::<Bully>(&three, inputs.clone());
    assert_eq!((costs(&report, BULLY), leader(&three, &report)), ([3, 1, 2], Some(2)));
    let config = Config { announce_to: Audience::Lower, ..Config::default() };
    let report = run_with::<Bully>(&three, &config, inputs);
    assert_eq!((costs(&report, BULLY), leader(&three, &report)), ([3, 1, 1], Some(2)));
}

#[test]
fn s20_whenever_the_two_survivors_notice_the_second_wins() {
    let three = system::<Bully>(3);
    for first in 0..12 {
        for second in 0..12 {
            let inputs = vec![
                start(&three, 1, 0),
                crash(&three, 3, 20),
                suspect(&three, 1, 3, 21 + first),
                suspect(&three, 2, 3, 21 + second),
            ];
            let plain = run::<Bully>(&three, inputs.clone());
            let strict = run::<BullyStrict>(&three, inputs);
            for report in [plain, strict] {
                assert_eq!(leader(&three, &report), Some(2), "{first} {second}");
                assert!(report.claims_kept(), "{first} {second}");
            }
        }
    }
}

/// `uid` goes down and comes back `times` times; the others' detectors notice.
fn flapping(topology: &Topology, uid: u64, times: u64) -> Vec<(Time, Input)> {
    let mut inputs = vec![start(topology, 1, 0)];
    for i in 0..times {
        inputs.push(crash(topology, uid, 100 + 200 * i));
        inputs.push(suspect(topology, 1, uid, 110 + 200 * i));
        inputs.push(restart(topology, uid, 200 + 200 * i));
    }
    inputs
}

#[test]
fn s21_a_larger_one_that_returns_takes_over_and_a_smaller_one_learns_the_leader() {
    let five = system::<Bully>(5);
    for times in 1..=5 {
        let report = run::<Bully>(&five, flapping(&five, 5, times));
        assert_eq!(election(&report).changes(), 2 * times as usize);
        assert_eq!(leader(&five, &report), Some(5));
        assert!(!kept(&report, Promise::Stability));
        let report = run::<Bully>(&five, flapping(&five, 3, times));
        assert_eq!((election(&report).changes(), leader(&five, &report)), (0, Some(5)));
    }
}

#[test]
fn s22_too_short_a_wait_gives_several_leaders_and_too_long_a_slow_change() {
    let five = system::<Bully>(5);
    let answer_within = |millis| Config { answer_within: ms(millis), ..Config::default() };
    let inputs = vec![crash(&five, 5, 0), start(&five, 1, 0)];
    let report = run_with::<Bully>(&five, &answer_within(1), inputs.clone());
    assert!(!kept(&report, Promise::Uniqueness));
    assert!(1 < election(&report).declarations.len());
    let at = |millis| {
        let report = run_with::<Bully>(&five, &answer_within(millis), inputs.clone());
        assert!(kept(&report, Promise::Uniqueness));
        election(&report).declarations[0].at
    };
    assert!(at(2) < ms(4) && ms(50) < at(50));
}

#[test]
fn a_late_answer_of_one_now_dead_does_not_put_off_a_later_election() {
    let two = system::<Bully>(2);
    let inputs = vec![start(&two, 1, 0), crash(&two, 2, 2), start(&two, 1, 5)];
    // The answer to the first question arrives during the second election.
    let messages = [(2, vec![ms(5)]), (3, vec![])].into();
    let plan = Plan { inputs, messages, ..Plan::default() };
    let report = simulate::<Bully>(&two, &Config::default(), &plan);
    let declared: Vec<Time> = election(&report).declarations.iter().map(|d| d.at).collect();
    assert_eq!((costs(&report, BULLY), declared), ([2, 1, 3], [ms(1), ms(2), ms(7)].to_vec()));
}

#[test]
fn costs_are_those_of_the_table() {
    for n in 2..=16_u64 {
        let topology = system::<Bully>(n as u32);
        let dead = crash(&topology, n, 0);
        let best = run::<Bully>(&topology, vec![dead.clone(), start(&topology, n - 1, 0)]);
        assert_eq!(costs(&best, BULLY), [1, 0, n - 1]);
        let worst = run::<Bully>(&topology, vec![dead.clone(), start(&topology, 1, 0)]);
        assert_eq!(costs(&worst, BULLY), [n * (n - 1) / 2, (n - 1) * (n - 2) / 2, n - 1]);
        let healthy = run::<Bully>(&topology, vec![start(&topology, 1, 0)]);
        assert_eq!(costs(&healthy, BULLY), [n * (n - 1) / 2, n * (n - 1) / 2, n - 1]);
        let strict = ["Election", "Ok", "Halt", "Ack", "Coord"];
        let best = run::<BullyStrict>(&topology, vec![dead.clone(), start(&topology, n - 1, 0)]);
        assert_eq!(costs(&best, strict), [1, 0, n - 2, n - 2, n - 2]);
        let worst = run::<BullyStrict>(&topology, vec![dead, start(&topology, 1, 0)]);
        let (asked, answered) = (n * (n - 1) / 2, (n - 1) * (n - 2) / 2);
        assert_eq!(costs(&worst, strict), [asked, answered, n - 2, n - 2, n - 2]);
    }
    let alone = system::<Bully>(1);
    for report in [
        run::<Bully>(&alone, vec![start(&alone, 1, 0)]),
        run::<BullyStrict>(&alone, vec![start(&alone, 1, 0)]),
    ] {
        assert_eq!((report.messages.total, leader(&alone, &report)), (0, Some(1)));
    }
}

#[test]
fn winners_that_keep_dying_make_it_cubic() {
    for (n, total) in [(8_u64, 245), (16, 2_025), (32, 16_337)] {
        let topology = system::<Bully>(n as u32);
        let mut inputs = Vec::new();
        for (round, dead) in (2..=n).rev().enumerate() {
            inputs.push(crash(&topology, dead, 100 * round as u64));
            inputs.push(suspect(&topology, 1, dead, 100 * round as u64 + 10));
        }
        assert_eq!(run::<Bully>(&topology, inputs).messages.total, total);
    }
}

#[test]
fn merit_decides_and_the_uid_breaks_ties() {
    let merits = vec![7, 9, 3, 9, 1];
    let topology = system::<Bully>(5).with_merits(merits);
    let everyone = vec![(Time::ZERO, Input::Start(Who::All))];
    for report in
        [run::<Bully>(&topology, everyone.clone()), run::<BullyStrict>(&topology, everyone.clone())]
    {
        assert_eq!(leader(&topology, &report), Some(4));
        assert!(report.claims_kept());
    }
}

#[test]
fn s38_a_recycled_identity_gives_two_leaders() {
    let reused = system::<Bully>(4).with_uids(vec![1, 2, 3, 3]);
    let everyone = vec![(Time::ZERO, Input::Start(Who::All))];
    // Each takes the other's announcement for a smaller one's, and they answer each other for ever.
    let plan = Plan { inputs: everyone.clone(), until: Some(ms(50)), ..Plan::default() };
    let report = simulate::<Bully>(&reused, &Config::default(), &plan);
    assert!(!kept(&report, Promise::Uniqueness));
    assert_eq!(report.ending, Ending::Deadline);
    // An address is as good as a number, if it is the process's own and it keeps it.
    let addresses = [(1, 80), (1, 81), (2, 80), (2, 81)].map(|(ip, port)| ip << 16 | port);
    let report = run::<Bully>(&system::<Bully>(4).with_uids(addresses.to_vec()), everyone);
    assert!(report.claims_kept());
}

/// The leader dies, and during the election after it some process dies and comes back.
fn return_in_the_middle(seed: u64) -> (Topology, Plan) {
    let mut chance = Seeded(seed);
    let topology = system::<Bully>(4);
    let micros = |chance: &mut Seeded| Time::from_micros(u64::from(chance.below(8_000)));
    let node = NodeId(1 + chance.below(3));
    let (down, up) = (ms(100) + micros(&mut chance), ms(100) + micros(&mut chance));
    let inputs = vec![
        start(&topology, 1, 0),
        crash(&topology, 4, 100),
        suspect(&topology, 1, 4, 100),
        (ms(100) + micros(&mut chance), Input::Suspect(NodeId(1), NodeId(3))),
        (down, Input::Crash(node)),
        (down.max(up), Input::Restart(node, Forget::AsPlanned)),
    ];
    let delay = Delay::Uniform(Time::from_micros(1), ms(1));
    let network = Network { delay, fifo: false, ..Network::default() };
    (topology, Plan { seed, network, inputs, ..Plan::default() })
}

#[test]
fn a_return_during_an_election_splits_the_bully_but_not_the_strict_one() {
    let mut split = Vec::new();
    for seed in 0..2_000 {
        let (topology, plan) = return_in_the_middle(seed);
        let bully = simulate::<Bully>(&topology, &Config::default(), &plan);
        if !bully.claims_kept() {
            split.push(seed);
        }
        let strict = simulate::<BullyStrict>(&topology, &bully_strict::Config::default(), &plan);
        assert!(strict.claims_kept(), "seed {seed}: {:?}\n{plan:?}", strict.promises);
    }
    assert_eq!(split.len(), 55);
    assert_eq!(split[0], 36);
}

#[test]
fn a_partition_leaves_a_leader_on_each_side_in_terms_of_their_own() {
    let topology = system::<BullyStrict>(5);
    let sides = vec![vec![NodeId(0), NodeId(1)], vec![NodeId(2), NodeId(3), NodeId(4)]];
    let mut inputs = vec![start(&topology, 1, 0), (ms(50), Input::Partition(sides))];
    inputs.push(suspect(&topology, 1, 5, 60));
    let plain = run::<Bully>(&topology, inputs.clone());
    assert!(!kept(&plain, Promise::Uniqueness));
    let strict = run::<BullyStrict>(&topology, inputs.clone());
    assert!(kept(&strict, Promise::Uniqueness) && !kept(&strict, Promise::Agreement));
    let views = &election(&strict).views;
    assert_eq!((views[0], views[2]), (View::Follows(NodeId(1)), View::Follows(NodeId(4))));
    // Healed, the next election ends it.
    inputs.push((ms(100), Input::HealAll));
    inputs.push(start(&topology, 1, 110));
    let healed = run::<BullyStrict>(&topology, inputs);
    assert_eq!(leader(&topology, &healed), Some(5));
}

#[test]
fn an_old_term_is_refused_and_the_newest_outlives_a_crash() {
    let topology = system::<BullyStrict>(4);
    // P4 is down for many elections, and comes back with a term long past.
    let mut inputs = vec![start(&topology, 1, 0), crash(&topology, 4, 50)];
    for round in 1..=5 {
        inputs.push(start(&topology, 1, 100 * round));
    }
    inputs.push(restart(&topology, 4, 700));
    let report = run::<BullyStrict>(&topology, inputs.clone());
    assert_eq!(leader(&topology, &report), Some(4));
    assert_eq!(costs(&report, ["Refuse"]), [3]);
    // Nor does it start over when everyone has been down.
    inputs.extend((1..=4).map(|uid| crash(&topology, uid, 800)));
    inputs.extend((1..=4).map(|uid| restart(&topology, uid, 900)));
    let report = run::<BullyStrict>(&topology, inputs);
    let terms: Vec<u64> = election(&report).declarations.iter().map(|d| d.term).collect();
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
    assert!(report.claims_kept());
}

#[test]
fn timeouts_that_lie_split_the_processes_but_never_a_term() {
    let mut disagreed = 0;
    for seed in 0..300 {
        let topology = system::<BullyStrict>(5);
        let delay = Delay::Uniform(Time::from_micros(10), ms(6));
        let network = Network { delay, fifo: false, ..Network::default() };
        let inputs = vec![(Time::ZERO, Input::Start(Who::All))];
        let plan = Plan { seed, network, inputs, until: Some(ms(500)), ..Plan::default() };
        let report = simulate::<BullyStrict>(&topology, &bully_strict::Config::default(), &plan);
        assert!(kept(&report, Promise::Uniqueness));
        disagreed += u32::from(!kept(&report, Promise::Agreement));
    }
    assert!(0 < disagreed);
}
