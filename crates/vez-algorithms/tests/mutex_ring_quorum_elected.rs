//! The elected coordinator: it is replaced when it crashes, and nobody gets in twice over it.

mod common;

use std::collections::BTreeSet;

use common::{
    acquire, crash, entered, fair_run, ms, mutex, restart, run, run_with, shuffled, system,
};
use vez_algorithms::detect::DetectorConfig;
use vez_algorithms::election::Bully;
use vez_algorithms::mutex::{Coordinator, ElectedCoordinator, elected_coordinator};
use vez_core::problem::mutex::Entry;
use vez_core::{Chance, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Forget, Input, Network, Plan, Report, Who, simulate};

type Elected = ElectedCoordinator<Bully>;
type Config = elected_coordinator::Config<<Bully as Protocol>::Config>;

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

fn withdraw(topology: &Topology, uid: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Withdraw(topology.find(uid).unwrap()))
}

fn entry_of<'a>(topology: &Topology, report: &'a Report, uid: u64) -> &'a Entry {
    let mut entries = mutex(report).entries.iter();
    entries.find(|entry| topology.uid(entry.node) == uid).unwrap()
}

/// The term of the `round`th coordinator, if that is `uid`, of so many processes.
fn term(round: u64, uid: u64, n: u64) -> u64 {
    round * n + uid - 1
}

#[test]
fn the_first_wish_elects_the_largest_and_an_entry_then_costs_three_messages() {
    for n in [2, 3, 7, 16] {
        let topology = system::<Elected>(n);
        let inputs = vec![
            acquire(&topology, 1, 0, 2),
            acquire(&topology, 1, 50, 2),
            acquire(&topology, u64::from(n), 60, 2), // The coordinator itself.
            acquire(&topology, 1, 70, 2),
        ];
        let report = run::<Elected>(&topology, inputs);
        assert!(report.claims_kept(), "{:?}", report.promises);
        let counts = ["Request", "Grant", "Release"].map(|kind| report.messages.of(kind));
        // The first wish is told in the answer to RECOVER; the last release ends the run.
        assert_eq!(counts, [2, 3, 2]);
        let n = u64::from(n);
        assert_eq!([report.messages.of("Recover"), report.messages.of("State")], [n - 1; 2]);
        let fences: Vec<_> = mutex(&report).entries.iter().map(|e| e.fence.unwrap()).collect();
        assert!(fences.iter().map(|fence| fence.count).eq(1..=4));
        assert!(fences.iter().all(|fence| fence.term == term(1, n, n)));
    }
}

#[test]
fn alone_one_enters_at_once() {
    let topology = system::<Elected>(1);
    let report = run::<Elected>(&topology, (0..3).map(|_| acquire(&topology, 1, 0, 1)).collect());
    assert_eq!((report.messages.total, mutex(&report).entries.len()), (0, 3));
    assert!(report.claims_kept());
    assert_eq!(mutex(&report).entries[0].entered, Time::ZERO);
}

#[test]
fn everyone_who_asks_at_once_is_served_in_turn() {
    let topology = system::<Elected>(7);
    let report = run::<Elected>(&topology, vec![(Time::ZERO, Input::Acquire(Who::All, ms(2)))]);
    assert!(report.claims_kept());
    assert_eq!(entered(&topology, &report), [1, 2, 3, 4, 5, 6, 7], "equally old: by address");
}

#[test]
fn s11_who_waits_for_a_dead_coordinator_is_served_by_the_next_one() {
    let story = |coordinator: u64, topology: &Topology| {
        let (first, second) = if coordinator == 1 { (2, 3) } else { (1, 2) };
        vec![
            acquire(topology, first, 0, 30),
            acquire(topology, second, 20, 5),
            crash(topology, coordinator, 25),
        ]
    };
    let topology = system::<Coordinator>(4);
    let stuck = run::<Coordinator>(&topology, story(1, &topology));
    assert_eq!(mutex(&stuck).waiting.len(), 1);
    assert!(!kept(&stuck, Promise::NoDeadlock));
    let topology = system::<Elected>(4);
    let report = run::<Elected>(&topology, story(4, &topology));
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [1, 2]);
    let (first, second) = (entry_of(&topology, &report, 1), entry_of(&topology, &report, 2));
    assert_eq!(first.fence.unwrap().term, term(1, 4, 4));
    assert_eq!(second.fence.unwrap().term, term(2, 3, 4), "a new coordinator, a new term");
}

#[test]
fn a_holder_that_survives_its_coordinator_is_let_finish() {
    let topology = system::<Elected>(6);
    let inputs = vec![
        acquire(&topology, 1, 0, 300),
        acquire(&topology, 3, 30, 5),
        acquire(&topology, 2, 60, 5),
        crash(&topology, 6, 80),
        crash(&topology, 5, 180),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    // The old queue is lost with its keeper; requests say how old they are.
    assert_eq!(entered(&topology, &report), [1, 3, 2]);
    let first = entry_of(&topology, &report, 1);
    assert!(first.left.unwrap() < entry_of(&topology, &report, 3).entered);
    assert_eq!(entry_of(&topology, &report, 3).fence.unwrap().term, term(3, 4, 6));
}

#[test]
fn a_coordinator_that_comes_back_at_once_asks_before_it_lets_anyone_in() {
    let topology = system::<Elected>(4);
    let inputs = vec![
        acquire(&topology, 1, 0, 100),
        acquire(&topology, 2, 20, 5),
        restart(&topology, 4, 40),
        acquire(&topology, 3, 41, 5),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [1, 2, 3]);
    assert_eq!(entry_of(&topology, &report, 2).fence.unwrap().term, term(2, 4, 4));
}

#[test]
fn s12_a_holder_that_dies_is_missed_and_the_next_one_let_in() {
    let topology = system::<Elected>(4);
    let inputs =
        vec![acquire(&topology, 1, 0, 500), acquire(&topology, 2, 20, 5), crash(&topology, 1, 30)];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    let second = entry_of(&topology, &report, 2);
    assert!(ms(35) < second.entered && second.entered < ms(60), "{}", second.entered);
    assert_eq!(second.fence.unwrap().term, term(1, 4, 4), "by the same coordinator");
}

#[test]
fn a_holder_that_comes_back_before_it_is_missed_has_let_go() {
    let topology = system::<Elected>(4);
    let inputs = vec![
        acquire(&topology, 1, 0, 500),
        acquire(&topology, 3, 20, 500),
        acquire(&topology, 2, 22, 5),
        restart(&topology, 1, 30),
        restart(&topology, 3, 30),
        acquire(&topology, 1, 31, 5),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [1, 2, 1], "nor is the other's old request served");
}

#[test]
fn one_who_comes_back_and_enters_is_not_missed_for_the_heartbeats_it_did_not_send() {
    // The coordinator's clock ticks at 27 ms, 32 ms, 37 ms; that of the first at 25 ms and, since
    // it then comes back, at 34.9 ms, too early to know the coordinator, and at 39.9 ms.
    let topology = system::<Elected>(4);
    let returns = ms(30) - Time::from_micros(100);
    let inputs = vec![
        restart(&topology, 4, 7),
        acquire(&topology, 2, 10, 1),
        (returns, Input::Restart(NodeId(0), Forget::AsPlanned)),
        (returns, Input::Acquire(Who::One(NodeId(0)), ms(30))),
        acquire(&topology, 2, 40, 1),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [2, 1, 2]);
}

/// The fourth coordinates, since the fifth is down. As the fifth comes back and takes over, the
/// first leaves, and the fourth's permission for the second is on its way.
fn takeover(topology: &Topology) -> Vec<(Time, Input)> {
    let leaves = ms(100) - Time::from_micros(300);
    let hold = leaves - ms(40);
    vec![
        crash(topology, 5, 0),
        acquire(topology, 4, 1, 1),
        (ms(38), Input::Acquire(Who::One(NodeId(0)), hold)),
        acquire(topology, 2, 60, 20),
        acquire(topology, 3, 65, 20),
        restart(topology, 5, 100),
    ]
}

#[test]
fn a_permission_of_an_older_term_is_void() {
    let topology = system::<Elected>(5);
    let report = run::<Elected>(&topology, takeover(&topology));
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [4, 1, 2, 3]);
    let (first, second) = (entry_of(&topology, &report, 1), entry_of(&topology, &report, 2));
    assert_eq!(first.left, Some(ms(100) - Time::from_micros(300)));
    assert_eq!(report.messages.of("Grant"), 4, "the third permission is void and given again");
    assert_eq!(first.fence.unwrap().term, term(1, 4, 5));
    assert_eq!(second.fence.unwrap().term, term(1, 5, 5));
}

#[test]
fn a_coordinator_that_slept_through_newer_terms_is_refused_and_begins_a_newer_one() {
    let topology = system::<Elected>(5);
    let inputs = vec![
        acquire(&topology, 1, 0, 1),
        crash(&topology, 5, 50),
        crash(&topology, 4, 150),
        acquire(&topology, 1, 290, 60),
        restart(&topology, 5, 300),
        acquire(&topology, 2, 301, 5),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(0 < report.messages.of("Refuse"));
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [1, 1, 2]);
    assert_eq!(entry_of(&topology, &report, 2).fence.unwrap().term, term(4, 5, 5));
}

#[test]
fn one_who_gives_up_is_not_let_in() {
    let topology = system::<Elected>(4);
    // Queued; with the permission on its way; without a coordinator.
    for (gives_up, dies) in [(30, 900), (51, 900), (45, 40)] {
        let inputs = vec![
            acquire(&topology, 1, 0, 1),
            acquire(&topology, 1, 20, 28), // Until 50 ms.
            acquire(&topology, 2, 25, 5),
            acquire(&topology, 3, 26, 5),
            withdraw(&topology, 2, gives_up),
            crash(&topology, 4, dies),
        ];
        let report = run::<Elected>(&topology, inputs);
        assert!(report.claims_kept(), "{gives_up}: {:?}", report.promises);
        assert_eq!(entered(&topology, &report), [1, 1, 3], "{gives_up}");
    }
}

#[test]
fn s34_two_coordinators_let_two_in_and_the_fences_tell_them_apart() {
    let topology = system::<Elected>(5);
    let side = |uids: [u64; 3]| uids.map(|uid| topology.find(uid).unwrap()).to_vec();
    let inputs = vec![
        acquire(&topology, 3, 0, 1),
        (ms(50), Input::Partition(vec![side([3, 4, 5])])),
        acquire(&topology, 4, 150, 50), // Where the old coordinator is.
        acquire(&topology, 1, 160, 60), // Where a new one was elected.
        (ms(250), Input::HealAll),
        acquire(&topology, 3, 400, 20),
        acquire(&topology, 1, 401, 20),
        acquire(&topology, 5, 402, 20),
    ];
    let report = run::<Elected>(&topology, inputs);
    let verdict = report.verdict(Promise::MutualExclusion).unwrap();
    assert_eq!(verdict.detail.as_deref(), Some("P1 entered while P4 was inside"));
    assert!(kept(&report, Promise::Fencing) && kept(&report, Promise::NoStarvation));
    assert_eq!(mutex(&report).refused_by_fence, 1, "the write of the overtaken as it leaves");
    // Whole again, there is one coordinator again.
    let after = &mutex(&report).entries[3..];
    assert_eq!(after.len(), 3);
    assert!(after.windows(2).all(|two| two[0].left.unwrap() <= two[1].entered));
    assert!(after.windows(2).all(|two| two[0].fence.unwrap().term == two[1].fence.unwrap().term));
}

#[test]
fn a_holder_too_slow_to_answer_is_waited_for() {
    let topology = system::<Elected>(4);
    let story = |recover_within| {
        let inputs = vec![
            acquire(&topology, 1, 0, 40),
            acquire(&topology, 2, 20, 5),
            crash(&topology, 4, 30),
            (ms(31), Input::Pause(NodeId(0), ms(40))),
        ];
        let config = Config { recover_within, ..Config::default() };
        run_with::<Elected>(&topology, &config, inputs)
    };
    assert!(story(ms(50)).claims_kept());
    assert!(!kept(&story(ms(2)), Promise::MutualExclusion));
}

#[test]
fn a_coordinator_wrongly_suspected_costs_an_election_but_no_harm() {
    let topology = system::<Elected>(4);
    let inputs = vec![
        acquire(&topology, 1, 0, 150),
        acquire(&topology, 2, 20, 5),
        (ms(30), Input::Pause(NodeId(3), ms(60))),
        acquire(&topology, 3, 40, 5),
        acquire(&topology, 4, 41, 5),
        acquire(&topology, 1, 300, 5),
    ];
    let report = run::<Elected>(&topology, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries.len(), 5);
}

/// Crashes and returns, far enough apart for a synchronous algorithm to settle in between; `abrupt`
/// has processes come back the moment they crash.
fn troubled_run(seed: u64, abrupt: bool) -> (Topology, Plan) {
    let mut chance = Seeded::stream(seed, 8);
    let n = 2 + chance.below(5);
    let topology = system::<Elected>(n).with_uids(shuffled(n, seed));
    let mut inputs = Vec::new();
    let moment = |chance: &mut Seeded, millis: u32| {
        Time::from_micros(u64::from(chance.below(millis * 1_000)))
    };
    for node in topology.ids() {
        for _ in 0..chance.below(8) {
            let (at, hold) = (moment(&mut chance, 1_000), moment(&mut chance, 25));
            inputs.push((at, Input::Acquire(Who::One(node), hold)));
        }
    }
    let mut down: Vec<NodeId> = Vec::new();
    for round in 1..=6 {
        let at = ms(150 * round) + moment(&mut chance, 20);
        let node = NodeId(chance.below(n));
        let input = match down.iter().position(|&other| other == node) {
            Some(index) => {
                down.swap_remove(index);
                Input::Restart(node, Forget::AsPlanned)
            }
            None if abrupt => Input::Restart(node, Forget::AsPlanned),
            None if down.len() + 1 == n as usize => continue,
            None => {
                down.push(node);
                Input::Crash(node)
            }
        };
        inputs.push((at, input));
    }
    let network =
        Network { delay: Delay::Uniform(Time::from_micros(10), ms(1)), ..Network::default() };
    (topology, Plan { seed, network, inputs, ..Plan::default() })
}

#[test]
fn crashes_and_returns_break_nothing_where_timeouts_do_not_lie() {
    let mut recoveries = 0;
    for seed in 0..300 {
        for abrupt in [false, true] {
            let (topology, plan) = troubled_run(seed, abrupt);
            let report = simulate::<Elected>(&topology, &Config::default(), &plan);
            assert!(report.claims_kept(), "seed {seed}: {:?}\n{plan:?}", report.promises);
            assert_eq!(report.unexpected, 0);
            recoveries += report.messages.of("Recover");
        }
    }
    assert!(2_000 < recoveries, "{recoveries}");
}

#[test]
fn delays_beyond_the_bound_may_let_two_in_but_no_two_with_one_fence() {
    let mut violations = 0;
    for seed in 0..100 {
        let (topology, mut plan) = fair_run::<Elected>(seed);
        plan.network.delay = Delay::Uniform(ms(1), ms(30));
        let report = simulate::<Elected>(&topology, &Config::default(), &plan);
        violations += u32::from(!kept(&report, Promise::MutualExclusion));
        let entries = &mutex(&report).entries;
        let fences: BTreeSet<_> = entries.iter().map(|entry| entry.fence).collect();
        assert_eq!(fences.len(), entries.len(), "seed {seed}\n{plan:?}");
    }
    assert!(0 < violations);
}

#[test]
fn senseless_settings_are_refused() {
    let topology = system::<Elected>(3);
    let refused = |config: &Config| Elected::validate(config, &topology).unwrap_err();
    let config = Config { recover_within: Time::ZERO, ..Config::default() };
    assert_eq!(refused(&config), "recover_within: expected more than 0");
    let detector = DetectorConfig { timeout: Time::ZERO, ..DetectorConfig::default() };
    let config = Config { detector, ..Config::default() };
    assert_eq!(refused(&config), "detector.timeout: expected more than 0");
    let text = r#"{ "election": { "answer_within": "3ms" }, "detector": { "kind": "adaptive" } }"#;
    let config: Config = serde_json::from_str(text).unwrap();
    assert_eq!(config.election.answer_within, ms(3));
}
