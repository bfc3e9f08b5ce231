//! What entering costs under the reference schedule, in messages and in time, and who enters when:
//! the algorithms that order requests by logical time.

mod common;

use common::{acquire, entered, ms, mutex, run_with, system};
use vez_algorithms::mutex::{
    Lamport, Maekawa, RicartAgrawala, RicartAgrawalaTanenbaum, lamport, maekawa, ricart_agrawala,
    ricart_agrawala_tanenbaum,
};
use vez_core::{Mutex, NodeId, Promise, Protocol, Time, Topology, quorum};
use vez_sim::{Input, Report, Who};

const SIZES: [u32; 6] = [1, 2, 3, 7, 16, 64];
const HOLD: u64 = 2;

/// The first `asking` of `n` processes ask at the same moment.
fn ask_at_once<P: Protocol<Problem = Mutex>>(config: &P::Config, n: u32, asking: u32) -> Report {
    let topology = system::<P>(n);
    let ask = |uid| acquire(&topology, u64::from(uid), 0, HOLD);
    let report = run_with::<P>(&topology, config, (1..=asking).map(ask).collect());
    assert!(report.claims_kept(), "{n}, {asking}: {:?}", report.promises);
    assert_eq!(report.unexpected, 0);
    assert_eq!(mutex(&report).entries.len(), asking as usize);
    report
}

/// One, some and all of each size.
fn crowds() -> impl Iterator<Item = (u32, u32)> {
    SIZES.into_iter().flat_map(|n| {
        let mut asking = vec![1, n.div_ceil(2), n];
        asking.dedup();
        asking.into_iter().map(move |asking| (n, asking))
    })
}

/// The moments of entering, in milliseconds, and the uids in that order.
fn entries(report: &Report) -> Vec<(u64, u32)> {
    let at = |time: Time| time.as_micros() / 1_000;
    mutex(report).entries.iter().map(|entry| (at(entry.entered), entry.node.0 + 1)).collect()
}

/// In the order of ids, the first at `first` milliseconds, each next one delay after the last left.
fn one_after_the_other(first: u64, asking: u32) -> Vec<(u64, u32)> {
    (0..asking).map(|i| (first + u64::from(i) * (HOLD + 1), i + 1)).collect()
}

fn pairs(k: u32) -> u64 {
    u64::from(k) * u64::from(k - 1) / 2
}

#[test]
fn lamport_takes_three_messages_for_every_other_process() {
    for (n, asking) in crowds() {
        let report = ask_at_once::<Lamport>(&lamport::Config::default(), n, asking);
        let each = u64::from(asking) * u64::from(n - 1);
        for kind in ["Request", "Reply", "Release"] {
            assert_eq!(report.messages.of(kind), each, "{kind}: {asking} of {n}");
        }
        assert_eq!(report.messages.total, 3 * each);
    }
}

#[test]
fn lamport_saves_the_replies_that_would_say_nothing_new() {
    let config = lamport::Config { save_replies: true };
    for (n, asking) in crowds() {
        let report = ask_at_once::<Lamport>(&config, n, asking);
        // Of two who ask at once, the later request is the earlier's reply.
        let replies = u64::from(asking) * u64::from(n - asking) + pairs(asking);
        assert_eq!(report.messages.of("Reply"), replies, "{asking} of {n}");
        let each = u64::from(asking) * u64::from(n - 1);
        assert_eq!(report.messages.total, 2 * each + replies, "{asking} of {n}");
        assert!((2 * each..=3 * each).contains(&report.messages.total));
    }
}

#[test]
fn lamport_enters_after_two_delays_or_one_if_all_have_asked() {
    for save_replies in [false, true] {
        for (n, asking) in crowds() {
            let report = ask_at_once::<Lamport>(&lamport::Config { save_replies }, n, asking);
            let first = if n == 1 { 0 } else { u64::from(asking < n) + 1 };
            assert_eq!(entries(&report), one_after_the_other(first, asking), "{asking} of {n}");
        }
    }
}

#[test]
fn ricart_agrawala_takes_two_messages_for_every_other_process() {
    for (n, asking) in crowds() {
        let report = ask_at_once::<RicartAgrawala>(&ricart_agrawala::Config::default(), n, asking);
        let each = u64::from(asking) * u64::from(n - 1);
        assert_eq!(report.messages.of("Request"), each, "{asking} of {n}");
        assert_eq!(report.messages.of("Reply"), each, "{asking} of {n}");
        assert_eq!(report.messages.total, 2 * each);
        let first = if n == 1 { 0 } else { 2 };
        assert_eq!(entries(&report), one_after_the_other(first, asking), "{asking} of {n}");
    }
}

#[test]
fn an_earlier_request_goes_first_whoever_asks() {
    fn check<P: Protocol<Problem = Mutex>>() {
        let topology = system::<P>(5);
        let asks = [(5, 0), (3, 3), (4, 3), (1, 6), (2, 6)];
        let inputs = asks.map(|(uid, at)| acquire(&topology, uid, at, 20)).into();
        let report = run_with::<P>(&topology, &P::Config::default(), inputs);
        assert_eq!(entered(&topology, &report), [5, 3, 4, 1, 2], "{}", P::META.name);
    }
    check::<Lamport>();
    check::<RicartAgrawala>();
    check::<RicartAgrawalaTanenbaum>();
}

#[test]
fn kept_permissions_are_asked_for_only_when_lost() {
    let variant = ricart_agrawala::Variant::RoucairolCarvalho;
    for n in SIZES {
        let topology = system::<RicartAgrawala>(n);
        let cost_of = |uids: &[u64]| {
            let turn = |(&uid, at): (&u64, u64)| acquire(&topology, uid, at * 10, HOLD);
            let inputs = uids.iter().zip(0..).map(turn).collect();
            let config = ricart_agrawala::Config { variant };
            let report = run_with::<RicartAgrawala>(&topology, &config, inputs);
            assert!(report.claims_kept());
            assert_eq!(mutex(&report).entries.len(), uids.len());
            report.messages.total
        };
        let full = 2 * u64::from(n - 1);
        assert_eq!(cost_of(&[1]), full);
        assert_eq!(cost_of(&[1, 1, 1]), full, "alone it asks once");
        if 1 < n {
            assert_eq!(cost_of(&[1, 2]), 2 * full, "{n}");
            assert_eq!(cost_of(&[1, 2, 1, 2]), 2 * full + 4, "two in turn ask each other only");
        }
    }
}

#[test]
fn kept_permissions_never_cost_more_than_asking_everyone() {
    let config = ricart_agrawala::Config { variant: ricart_agrawala::Variant::RoucairolCarvalho };
    for (n, asking) in crowds() {
        let report = ask_at_once::<RicartAgrawala>(&config, n, asking);
        assert!(report.messages.total <= 2 * u64::from(asking) * u64::from(n - 1));
        assert!(report.messages.of("Request") == report.messages.of("Reply"));
    }
}

#[test]
fn tanenbaums_variant_adds_one_message_for_every_denial() {
    let patient = ricart_agrawala_tanenbaum::Config {
        ask_again_after: Time::from_secs(10),
        ..Default::default()
    };
    for (n, asking) in crowds() {
        let report = ask_at_once::<RicartAgrawalaTanenbaum>(&patient, n, asking);
        let each = u64::from(asking) * u64::from(n - 1);
        assert_eq!(report.messages.of("Request"), each, "{asking} of {n}");
        assert_eq!(report.messages.of("Grant"), each, "{asking} of {n}");
        assert_eq!(report.messages.of("Denied"), pairs(asking), "{asking} of {n}");
        let first = if n == 1 { 0 } else { 2 };
        assert_eq!(entries(&report), one_after_the_other(first, asking), "{asking} of {n}");
    }
}

#[test]
fn tanenbaums_variant_asks_again_those_who_denied() {
    let topology = system::<RicartAgrawalaTanenbaum>(3);
    let asks = vec![acquire(&topology, 1, 0, 50), acquire(&topology, 2, 10, 1)];
    let config = ricart_agrawala_tanenbaum::Config::default();
    let report = run_with::<RicartAgrawalaTanenbaum>(&topology, &config, asks);
    // P1 enters at 2 ms, leaves at 52. P2 is denied at 12, asks again at 32 and is denied again.
    assert_eq!(entries(&report), [(2, 1), (53, 2)]);
    assert_eq!(report.messages.of("Request"), 4 + 1);
    assert_eq!(report.messages.of("Denied"), 2);
    assert_eq!(report.messages.of("Grant"), 4);
}

fn maekawa(quorums: maekawa::Quorums) -> maekawa::Config {
    maekawa::Config { quorums, ..maekawa::Config::default() }
}

/// How many others each process asks.
fn members(quorums: maekawa::Quorums, n: u32) -> Vec<u64> {
    let quorum = |i| match quorums {
        maekawa::Quorums::Grid => quorum::grid(n, NodeId(i)),
        maekawa::Quorums::Plane => quorum::plane(n, NodeId(i)).unwrap(),
    };
    (0..n).map(|i| quorum(i).len() as u64 - 1).collect()
}

fn grids_and_planes() -> impl Iterator<Item = (maekawa::Quorums, u32)> {
    let grids = SIZES.into_iter().map(|n| (maekawa::Quorums::Grid, n));
    grids.chain(quorum::plane_sizes().map(|n| (maekawa::Quorums::Plane, n)))
}

#[test]
fn maekawa_alone_takes_three_messages_for_every_other_member() {
    for (quorums, n) in grids_and_planes() {
        let topology = system::<Maekawa>(n);
        for (i, others) in members(quorums, n).into_iter().enumerate() {
            let asks = vec![acquire(&topology, i as u64 + 1, 0, HOLD)];
            let report = run_with::<Maekawa>(&topology, &maekawa(quorums), asks);
            for kind in ["Request", "Grant", "Release"] {
                assert_eq!(report.messages.of(kind), others, "{kind}: {i} of {n}");
            }
            assert_eq!(report.messages.total, 3 * others, "{quorums:?}, {i} of {n}");
            let first = if others == 0 { 0 } else { 2 };
            assert_eq!(entries(&report), [(first, i as u32 + 1)]);
        }
    }
    assert!(members(maekawa::Quorums::Grid, 64).iter().all(|&others| others == 14));
    assert!(members(maekawa::Quorums::Plane, 57).iter().all(|&others| others == 7));
}

#[test]
fn maekawa_in_turn_costs_the_sum() {
    for (quorums, n) in grids_and_planes() {
        let topology = system::<Maekawa>(n);
        let turns = (1..=u64::from(n)).map(|uid| acquire(&topology, uid, uid * 10, HOLD));
        let report = run_with::<Maekawa>(&topology, &maekawa(quorums), turns.collect());
        let others: u64 = members(quorums, n).iter().sum();
        assert_eq!(report.messages.total, 3 * others, "{quorums:?}, {n}");
        assert!(entered(&topology, &report).is_sorted());
    }
}

#[test]
fn maekawa_contended_stays_below_six_messages_for_every_other_member() {
    for (quorums, n) in grids_and_planes() {
        for asking in [n.div_ceil(2), n] {
            let report = ask_at_once::<Maekawa>(&maekawa(quorums), n, asking);
            let others: u64 = members(quorums, n)[..asking as usize].iter().sum();
            let total = report.messages.total;
            assert!((3 * others..=6 * others).contains(&total), "{quorums:?}, {n}: {total}");
            let back = report.messages.of("Relinquish");
            assert_eq!(report.messages.of("Request"), others);
            assert_eq!(report.messages.of("Release"), others);
            // What members say to themselves is not counted, so a GRANT again may be missing.
            assert!(report.messages.of("Grant") <= others + back);
        }
    }
}

#[test]
fn maekawas_order_is_only_nearly_that_of_requests() {
    // Quorums {1,2}, {2,3}, {3,1}. Everyone has its own yes; P1 makes P3 wait, P3 gives its yes to
    // P2, and P2 enters before P1, whose inquiry it was still pondering.
    let report = ask_at_once::<Maekawa>(&maekawa(maekawa::Quorums::Plane), 3, 3);
    assert_eq!(entries(&report), [(3, 2), (6, 1), (9, 3)]);
    let kinds = [("Request", 3), ("Grant", 3), ("Failed", 1), ("Release", 3)];
    assert_eq!(report.messages.by_kind, kinds);
}

#[test]
fn maekawas_conflicts_cost_what_they_did() {
    // A change here is a fact to explain.
    let cost = |quorums, n: u32| ask_at_once::<Maekawa>(&maekawa(quorums), n, n).messages.total;
    let planes = quorum::plane_sizes().map(|n| cost(maekawa::Quorums::Plane, n));
    assert_eq!(planes.collect::<Vec<_>>(), [10, 50, 144, 316, 590, 1540]);
    let grids = SIZES.map(|n| cost(maekawa::Quorums::Grid, n));
    assert_eq!(grids, [0, 7, 14, 82, 369, 3521]);
}

#[test]
fn maekawa_hands_over_in_two_delays() {
    // P1 and P2 share members; P2 asks while P1 is inside.
    let topology = system::<Maekawa>(16);
    let asks = vec![acquire(&topology, 1, 0, 10), acquire(&topology, 2, 5, HOLD)];
    let report = run_with::<Maekawa>(&topology, &maekawa(maekawa::Quorums::Grid), asks);
    assert_eq!(entries(&report), [(2, 1), (14, 2)]);
}

#[test]
fn a_plane_of_another_size_is_refused_with_the_sizes_there_are() {
    for n in 1..=64 {
        let topology: Topology = system::<Maekawa>(n);
        let grid = Maekawa::validate(&maekawa(maekawa::Quorums::Grid), &topology);
        assert_eq!(grid, Ok(()));
        let plane = Maekawa::validate(&maekawa(maekawa::Quorums::Plane), &topology);
        assert_eq!(plane.is_ok(), quorum::plane_sizes().any(|size| size == n), "{n}");
    }
    let eight = system::<Maekawa>(8);
    assert_eq!(
        Maekawa::validate(&maekawa(maekawa::Quorums::Plane), &eight).unwrap_err(),
        "quorums: expected a plane of one of 3, 7, 13, 21, 31, 57 processes, found 8"
    );
}

#[test]
fn who_withdraws_frees_the_way() {
    fn check<P: Protocol<Problem = Mutex>>(name_of_config: &P::Config) {
        let topology = system::<P>(4);
        let p = |uid| topology.find(uid).unwrap();
        let inputs = vec![
            acquire(&topology, 1, 0, 20),
            acquire(&topology, 2, 5, 5),
            acquire(&topology, 3, 8, 5),
            (ms(12), Input::Withdraw(p(2))),
            // It asks again, behind the others now.
            (ms(15), Input::Acquire(Who::One(p(2)), ms(5))),
        ];
        let report = run_with::<P>(&topology, name_of_config, inputs);
        assert!(report.claims_kept(), "{}: {:?}", P::META.name, report.promises);
        assert_eq!(entered(&topology, &report), [1, 3, 2], "{}", P::META.name);
        assert!(report.verdict(Promise::NoStarvation).unwrap().kept);
    }
    check::<Lamport>(&lamport::Config::default());
    check::<Lamport>(&lamport::Config { save_replies: true });
    check::<RicartAgrawala>(&ricart_agrawala::Config::default());
    let variant = ricart_agrawala::Variant::RoucairolCarvalho;
    check::<RicartAgrawala>(&ricart_agrawala::Config { variant });
    check::<RicartAgrawalaTanenbaum>(&ricart_agrawala_tanenbaum::Config::default());
    check::<Maekawa>(&maekawa(maekawa::Quorums::Grid));
}
