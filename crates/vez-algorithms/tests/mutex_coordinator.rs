//! The central coordinator: exact costs, and the mistakes it is known for.

mod common;

use common::{acquire, crash, entered, ms, mutex, restart, run, run_with, system};
use vez_algorithms::mutex::Coordinator;
use vez_algorithms::mutex::coordinator::Config;
use vez_core::{NodeId, Promise, Time, Topology};
use vez_sim::{Delay, Input, LinkRule, Network, Plan, Report, Who, simulate};

fn with_lease(lease: u64) -> Config {
    Config { lease: Some(ms(lease)), ..Config::default() }
}

fn withdraw(uid: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Withdraw(NodeId(uid as u32 - 1)))
}

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

#[test]
fn an_entry_costs_three_messages_or_four_and_the_coordinators_own_none() {
    for n in [1, 2, 3, 7, 16, 64] {
        let topology = system::<Coordinator>(n);
        for asking in [1, n / 2, n] {
            let ask = |node| (ms(0), Input::Acquire(Who::One(NodeId(node)), ms(2)));
            let inputs: Vec<_> = (n - asking..n).map(ask).collect();
            let foreign = u64::from(if asking == n { n - 1 } else { asking });
            for (acknowledge, each) in [(false, 3), (true, 4)] {
                let config = Config { acknowledge, ..Config::default() };
                let report = run_with::<Coordinator>(&topology, &config, inputs.clone());
                assert_eq!(report.messages.total, each * foreign, "{n} {asking} {acknowledge}");
                assert!(report.all_kept());
                let order: Vec<u64> = (u64::from(n - asking) + 1..=u64::from(n)).collect();
                assert_eq!(entered(&topology, &report), order, "as they arrive, by sender");
            }
        }
    }
}

#[test]
fn entering_takes_two_delays_and_so_does_handing_over() {
    let topology = system::<Coordinator>(3);
    let report = run::<Coordinator>(
        &topology,
        vec![acquire(&topology, 2, 0, 3), acquire(&topology, 3, 0, 3)],
    );
    let times: Vec<_> = mutex(&report).entries.iter().map(|e| (e.entered, e.left)).collect();
    assert_eq!(times, [(ms(2), Some(ms(5))), (ms(7), Some(ms(10)))]);
}

#[test]
fn who_gives_up_waiting_frees_nothing_and_is_forgotten() {
    let topology = system::<Coordinator>(4);
    let inputs = vec![
        acquire(&topology, 2, 0, 20),
        acquire(&topology, 3, 1, 5),
        acquire(&topology, 4, 2, 5),
        withdraw(3, 6),
    ];
    let report = run::<Coordinator>(&topology, inputs);
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [2, 4]);
}

#[test]
fn a_permission_that_crosses_a_withdrawal_is_given_back() {
    let topology = system::<Coordinator>(3);
    // P2 gives up at 1 ms, just as the coordinator says OK to it.
    let inputs = vec![acquire(&topology, 2, 0, 5), withdraw(2, 1), acquire(&topology, 3, 5, 5)];
    let report = run::<Coordinator>(&topology, inputs);
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(entered(&topology, &report), [3]);
}

#[test]
fn a_request_said_twice_is_served_once() {
    let topology = system::<Coordinator>(3);
    let network = Network { duplicate: 1.0, ..Network::default() };
    let inputs = vec![acquire(&topology, 2, 0, 5), acquire(&topology, 3, 1, 5)];
    let plan = Plan { network, inputs, ..Plan::default() };
    let report = simulate::<Coordinator>(&topology, &Config::default(), &plan);
    assert!(kept(&report, Promise::MutualExclusion) && kept(&report, Promise::NoStarvation));
    assert_eq!(entered(&topology, &report), [2, 3]);
}

#[test]
fn the_late_release_of_a_revoked_holder_frees_nothing() {
    let topology = system::<Coordinator>(4);
    let inputs = vec![
        acquire(&topology, 2, 0, 12), // Until 14 ms, revoked at 11.
        acquire(&topology, 3, 1, 8),  // Inside from 12 to 20 ms.
        acquire(&topology, 4, 2, 1),
    ];
    let report = run_with::<Coordinator>(&topology, &with_lease(10), inputs);
    let entries: Vec<_> = mutex(&report).entries.iter().map(|entry| entry.entered).collect();
    assert_eq!(entries, [ms(2), ms(12), ms(22)], "P4 waits for P3, not for P2");
    assert_eq!(mutex(&report).refused_by_fence, 1);
}

#[test]
fn the_lease_of_an_old_grant_revokes_no_newer_one() {
    let topology = system::<Coordinator>(3);
    // P2 is out long before its lease of 10 ms ends at 11; P3 is inside then.
    let inputs =
        vec![acquire(&topology, 2, 0, 1), acquire(&topology, 3, 0, 8), acquire(&topology, 2, 6, 1)];
    let report = run_with::<Coordinator>(&topology, &with_lease(10), inputs);
    assert!(report.all_kept(), "{:?}", report.promises);
}

#[test]
fn a_holder_that_stops_itself_in_time_keeps_exclusion_without_fences() {
    let topology = system::<Coordinator>(3);
    let inputs = || vec![acquire(&topology, 2, 0, 50), acquire(&topology, 3, 1, 5)];
    let careful = Config { stop_before: Some(ms(3)), ..with_lease(10) };
    let report = run_with::<Coordinator>(&topology, &careful, inputs());
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries[0].left, Some(ms(9)), "7 ms after it entered");
    let careless = run_with::<Coordinator>(&topology, &with_lease(10), inputs());
    assert!(!kept(&careless, Promise::MutualExclusion));
    // A clock that runs at a third of the right speed is worth no more than none.
    let plan = Plan { inputs: inputs(), clocks: [(NodeId(1), 0.33)].into(), ..Plan::default() };
    let slow = simulate::<Coordinator>(&topology, &careful, &plan);
    assert!(!kept(&slow, Promise::MutualExclusion));
}

#[test]
fn a_coordinator_remembers_across_a_restart_and_with_amnesia_does_not() {
    let topology = system::<Coordinator>(3);
    let inputs = || {
        vec![
            acquire(&topology, 2, 0, 20),
            crash(&topology, 1, 5),
            restart(&topology, 1, 6),
            acquire(&topology, 3, 7, 5),
        ]
    };
    let remembers = run::<Coordinator>(&topology, inputs());
    assert!(remembers.all_kept(), "{:?}", remembers.promises);
    let plan = Plan { inputs: inputs(), amnesia: true, ..Plan::default() };
    let forgets = simulate::<Coordinator>(&topology, &Config::default(), &plan);
    assert!(!kept(&forgets, Promise::MutualExclusion));
    assert!(!kept(&forgets, Promise::Fencing), "and its fences start over");
}

#[test]
fn requests_are_served_as_they_arrive_not_as_they_are_made() {
    let topology: Topology = system::<Coordinator>(3);
    let rule = LinkRule { delay: Some(Delay::Fixed(ms(9))), ..LinkRule::default() };
    let network = Network { links: [((NodeId(1), NodeId(0)), rule)].into(), ..Network::default() };
    let inputs = vec![acquire(&topology, 2, 0, 1), acquire(&topology, 3, 5, 1)];
    let plan = Plan { network, inputs, ..Plan::default() };
    let report = simulate::<Coordinator>(&topology, &Config::default(), &plan);
    assert_eq!(entered(&topology, &report), [3, 2]);
}
