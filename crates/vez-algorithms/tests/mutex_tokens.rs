//! The algorithms with one token that is asked for: what entering costs under the reference
//! schedule, where implementations go wrong, and what a lost token does.

mod common;
mod hand;

use common::{acquire, crash, entered, fair_run, ms, mutex, restart, run, run_with, system};
use hand::Hand;
use vez_algorithms::mutex::{Raymond, SuzukiKasami, raymond, suzuki_kasami};
use vez_core::problem::mutex::Entry;
use vez_core::{Chance, Mutex, Promise, Protocol, Seeded, Shape, Time, Topology};
use vez_sim::{Delay, Directions, Input, Network, Plan, Report, Who, simulate};

const SIZES: [u32; 6] = [1, 2, 3, 7, 16, 64];
const HOLD: u64 = 2;

fn from_suzuki_kasami(holder: u64) -> suzuki_kasami::Config {
    suzuki_kasami::Config { holder: Some(holder) }
}

fn from_raymond(holder: u64) -> raymond::Config {
    raymond::Config { holder: Some(holder) }
}

/// The moments of entering, in milliseconds, with uid and fence.
fn entries(topology: &Topology, report: &Report) -> Vec<(u64, u64, u64)> {
    let entry = |entry: &Entry| {
        let at = entry.entered.as_micros() / 1_000;
        (at, topology.uid(entry.node), entry.fence.unwrap().count)
    };
    mutex(report).entries.iter().map(entry).collect()
}

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

fn assert_sound<P: Protocol<Problem = Mutex>>(report: &Report, seed: u64) {
    let name = P::META.name;
    assert!(report.claims_kept(), "{name}, seed {seed}: {:?}", report.promises);
    assert_eq!(report.unexpected_first, None, "{name}, seed {seed}");
}

#[test]
fn suzuki_kasami_takes_no_message_where_the_token_is_and_n_elsewhere() {
    for n in SIZES {
        let topology = system::<SuzukiKasami>(n);
        for holder in [1, u64::from(n)] {
            for uid in [1, u64::from(n).div_ceil(2), u64::from(n)] {
                let config = from_suzuki_kasami(holder);
                let asks = vec![acquire(&topology, uid, 0, HOLD)];
                let report = run_with::<SuzukiKasami>(&topology, &config, asks);
                let (cost, at) = if uid == holder { (0, 0) } else { (u64::from(n), 2) };
                assert_eq!(report.messages.total, cost, "{uid} of {n}, token at {holder}");
                assert_eq!(report.messages.of("Token"), u64::from(uid != holder));
                assert_eq!(entries(&topology, &report), [(at, uid, 1)]);
            }
        }
    }
}

#[test]
fn suzuki_kasami_serves_from_the_holders_place_onward() {
    for n in SIZES {
        let topology = system::<SuzukiKasami>(n);
        let all = u64::from(n);
        for holder in [1, all.div_ceil(2), all] {
            let inputs = vec![(Time::ZERO, Input::Acquire(Who::All, ms(HOLD)))];
            let config = from_suzuki_kasami(holder);
            let report = run_with::<SuzukiKasami>(&topology, &config, inputs);
            assert_sound::<SuzukiKasami>(&report, 0);
            assert_eq!(report.messages.of("Request"), (all - 1) * (all - 1));
            assert_eq!(report.messages.of("Token"), all - 1);
            let nth = |i| (i * (HOLD + 1), (holder - 1 + i) % all + 1, i + 1);
            assert_eq!(entries(&topology, &report), (0..all).map(nth).collect::<Vec<_>>());
        }
    }
}

#[test]
fn suzuki_kasami_costs_n_for_each_of_some() {
    for n in [3, 7, 16, 64] {
        let topology = system::<SuzukiKasami>(n);
        let some: Vec<u64> = (2..=u64::from(n).div_ceil(2)).collect();
        let asks = some.iter().map(|&uid| acquire(&topology, uid, 0, HOLD)).collect();
        let report = run::<SuzukiKasami>(&topology, asks);
        assert_eq!(report.messages.total, some.len() as u64 * u64::from(n));
        assert_eq!(entered(&topology, &report), some);
    }
}

#[test]
fn a_request_that_comes_after_it_was_served_does_not_move_the_token() {
    let mut hand = Hand::<SuzukiKasami>::new(3, suzuki_kasami::Config::default());
    hand.acquire(2);
    hand.deliver(2, 1);
    hand.deliver(1, 2);
    assert_eq!(hand.inside(), [2]);
    hand.release(2);
    hand.acquire(3);
    hand.deliver(3, 2);
    assert_eq!(hand.deliver_newest(2, 3), "Token");
    hand.release(3); // The token is idle at P3, which only now hears P2's first request.
    hand.deliver(2, 3);
    assert_eq!(hand.on_the_way(3, 2), [""; 0]);
    hand.acquire(3);
    assert_eq!(hand.entered, [2, 3, 3], "no message needed");
}

#[test]
fn an_older_request_that_was_overtaken_does_not_hide_the_newer() {
    let mut hand = Hand::<SuzukiKasami>::new(3, suzuki_kasami::Config::default());
    hand.acquire(2);
    hand.deliver(2, 1);
    hand.deliver(1, 2);
    hand.release(2);
    hand.acquire(1);
    hand.deliver(1, 2);
    hand.deliver(2, 1);
    hand.release(1);
    hand.acquire(2); // Its second request; P3 hears it before the first.
    assert_eq!(hand.on_the_way(2, 3), ["Request", "Request"]);
    hand.deliver_newest(2, 3);
    hand.deliver(2, 3);
    hand.acquire(3);
    hand.deliver(3, 1);
    assert_eq!(hand.deliver_newest(1, 3), "Token");
    hand.release(3);
    assert_eq!(hand.on_the_way(3, 2), ["Request", "Token"]);
}

#[test]
fn suzuki_kasami_queues_nobody_twice() {
    let mut hand = Hand::<SuzukiKasami>::new(3, suzuki_kasami::Config::default());
    hand.acquire(1);
    hand.acquire(2);
    hand.acquire(3);
    hand.deliver_all();
    hand.release(1); // The queue: P2, P3. P2 finds P3's request unserved, and queued.
    hand.deliver_all();
    hand.release(2);
    hand.deliver_all();
    hand.release(3);
    hand.deliver_all();
    assert_eq!(hand.inside(), [0; 0]);
    assert_eq!((hand.entered, hand.unexpected), (vec![1, 2, 3], vec![]));
}

#[test]
fn raymond_takes_two_messages_for_every_link_to_an_idle_token() {
    for n in SIZES {
        for shape in [Shape::Star, Shape::Line] {
            let topology = Topology::new(shape.clone(), n, 0).unwrap();
            let last = u64::from(n);
            for (holder, uid) in [(1, 1), (1, last), (last, 1), (last, last.div_ceil(2))] {
                let distance = match shape {
                    _ if holder == uid => 0,
                    Shape::Star => 1 + u64::from(holder != 1 && uid != 1),
                    _ => holder.abs_diff(uid),
                };
                let asks = vec![acquire(&topology, uid, 0, HOLD)];
                let report = run_with::<Raymond>(&topology, &from_raymond(holder), asks);
                assert_eq!(report.messages.of("Request"), distance, "{n}: {holder} to {uid}");
                assert_eq!(report.messages.of("Token"), distance, "{n}: {holder} to {uid}");
                assert_eq!(entries(&topology, &report), [(2 * distance, uid, 1)]);
            }
        }
    }
}

#[test]
fn raymond_on_a_star_takes_four_messages_an_entry_when_all_ask() {
    for n in SIZES {
        let topology = system::<Raymond>(n);
        let inputs = vec![(Time::ZERO, Input::Acquire(Who::All, ms(HOLD)))];
        let report = run::<Raymond>(&topology, inputs);
        assert_sound::<Raymond>(&report, 0);
        // The hub for nothing; a leaf asks, is given, is asked back and gives back; not the last.
        assert_eq!(report.messages.total, (4 * u64::from(n - 1)).saturating_sub(2), "{n}");
        assert!(entered(&topology, &report).is_sorted());
    }
}

#[test]
fn raymond_asked_by_some_takes_at_most_twice_the_diameter_each() {
    for n in [3, 7, 16, 64] {
        let topology = system::<Raymond>(n);
        let some: Vec<u64> = (2..=u64::from(n).div_ceil(2)).collect();
        let asks = some.iter().map(|&uid| acquire(&topology, uid, 0, HOLD)).collect();
        let report = run::<Raymond>(&topology, asks);
        assert_eq!(report.messages.total, 4 * some.len() as u64 - 2);
        assert_eq!(entered(&topology, &report), some);
    }
}

#[test]
fn raymond_asks_once_for_all_who_wait_behind() {
    // A caterpillar: the token at 1, then 2, behind which are 3 to 6.
    let edges = vec![(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)];
    let topology = Topology::new(Shape::Edges(edges), 6, 0).unwrap();
    let mut asks = vec![acquire(&topology, 1, 0, 10)];
    asks.extend((2..=6).map(|uid| acquire(&topology, uid, 1, 1)));
    let report = run::<Raymond>(&topology, asks);
    assert_sound::<Raymond>(&report, 0);
    assert_eq!(entered(&topology, &report), [1, 2, 3, 4, 5, 6]);
    // One from each leaf, one from 2 to 1, and three after the token, which goes out to 3, 4, 5, 6
    // and comes back from all but the last.
    assert_eq!(report.messages.of("Request"), 4 + 1 + 3);
    assert_eq!(report.messages.of("Token"), 1 + 4 + 3);
}

#[test]
fn in_raymonds_queue_ones_own_request_waits_like_a_neighbours() {
    let mut hand = Hand::<Raymond>::new(3, raymond::Config::default());
    hand.acquire(2);
    hand.deliver(2, 1);
    hand.deliver(1, 2);
    assert_eq!(hand.inside(), [2]);
    hand.acquire(3);
    hand.deliver(3, 1);
    hand.acquire(1); // Behind P3, though the token passes through its hands.
    hand.deliver_all();
    hand.release(2);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]);
    hand.release(3);
    hand.deliver_all();
    assert_eq!(hand.entered, [2, 3, 1]);
}

#[test]
fn raymonds_request_may_overtake_the_token_it_follows() {
    let mut hand = Hand::<Raymond>::new(3, raymond::Config::default());
    hand.acquire(1);
    hand.acquire(2);
    hand.acquire(3);
    hand.deliver(2, 1);
    hand.deliver(3, 1);
    hand.release(1);
    assert_eq!(hand.on_the_way(1, 2), ["Token", "Request"]);
    hand.deliver_newest(1, 2);
    assert_eq!(hand.on_the_way(2, 1), [""; 0], "it has asked already");
    hand.deliver_all();
    hand.release(2);
    hand.deliver_all();
    assert_eq!((hand.inside(), &hand.unexpected[..]), (&[3][..], &[][..]));
}

#[test]
fn many_who_ask_again_and_again_and_give_up_all_get_their_turn() {
    fn check<P: Protocol<Problem = Mutex>>(shape: &Shape, config: &P::Config) {
        for seed in 0..200 {
            let mut chance = Seeded::stream(seed, 11);
            let n = 3 + chance.below(10);
            let topology = Topology::new(shape.clone(), n, seed).unwrap();
            let mut inputs = Vec::new();
            let mut moment = |span| Time::from_micros(u64::from(chance.below(span)));
            for node in topology.ids() {
                for _ in 0..3 {
                    let hold = moment(2_000);
                    inputs.push((moment(50_000), Input::Acquire(Who::One(node), hold)));
                    inputs.push((moment(90_000), Input::Withdraw(node)));
                }
            }
            let delay = Delay::Uniform(Time::from_micros(100), ms(10));
            let network = Network { delay, fifo: false, ..Network::default() };
            let plan = Plan { seed, network, inputs, ..Plan::default() };
            assert_sound::<P>(&simulate::<P>(&topology, config, &plan), seed);
        }
    }
    check::<SuzukiKasami>(&Shape::Complete, &from_suzuki_kasami(2));
    for shape in [Shape::Star, Shape::Line, Shape::Random(0.0)] {
        check::<Raymond>(&shape, &from_raymond(3));
    }
}

#[test]
fn who_gives_up_is_passed_over_and_may_ask_again() {
    fn check<P: Protocol<Problem = Mutex>>() {
        let topology = system::<P>(4);
        let p2 = topology.find(2).unwrap();
        let mut inputs = vec![
            acquire(&topology, 1, 0, 10),
            acquire(&topology, 2, 1, 2),
            acquire(&topology, 3, 3, 2),
            (ms(6), Input::Withdraw(p2)),
        ];
        let report = run::<P>(&topology, inputs.clone());
        assert_sound::<P>(&report, 0);
        assert_eq!(entered(&topology, &report), [1, 3], "{}", P::META.name);
        // What it asked for before is still on record: it has kept its place.
        inputs.push((ms(8), Input::Acquire(Who::One(p2), ms(2))));
        let again = run::<P>(&topology, inputs);
        assert_sound::<P>(&again, 0);
        assert_eq!(entered(&topology, &again), [1, 2, 3], "{}", P::META.name);
        assert_eq!(again.messages.total, report.messages.total, "{}", P::META.name);
    }
    check::<SuzukiKasami>();
    check::<Raymond>();
}

/// P1 has the token; P2 asks at 0 ms, and the token leaves P1 at 1 ms. P3 asks later.
fn lose_the_token<P: Protocol<Problem = Mutex>>() {
    let topology = system::<P>(3);
    let (p1, p2) = (topology.find(1).unwrap(), topology.find(2).unwrap());
    let inputs = vec![
        acquire(&topology, 2, 0, HOLD),
        (Time::from_micros(1_500), Input::Cut(p1, p2, Directions::Both)),
        (ms(3), Input::HealAll),
        acquire(&topology, 3, 10, HOLD),
    ];
    let report = run::<P>(&topology, inputs);
    assert!(!kept(&report, Promise::NoDeadlock), "{}", P::META.name);
    let detail = report.verdict(Promise::NoStarvation).unwrap().detail.clone();
    assert_eq!(detail.as_deref(), Some("waiting for ever: P2, P3"), "{}", P::META.name);
    assert!(kept(&report, Promise::MutualExclusion));
    // A lost request is as bad, but only for the one who asked.
    let inputs = vec![
        (ms(0), Input::Cut(p2, p1, Directions::One)),
        acquire(&topology, 2, 0, HOLD),
        (ms(3), Input::HealAll),
    ];
    let report = run::<P>(&topology, inputs);
    assert!(!kept(&report, Promise::NoDeadlock), "{}", P::META.name);
}

#[test]
fn a_lost_token_is_never_found() {
    lose_the_token::<SuzukiKasami>();
    lose_the_token::<Raymond>();
}

#[test]
fn who_crashes_with_the_token_and_comes_back_does_not_bring_a_second() {
    fn check<P: Protocol<Problem = Mutex>>() {
        let topology = system::<P>(3);
        // P1 passes the token to P2, and crashes; or crashes with it.
        for asked_before in [true, false] {
            let mut inputs = vec![crash(&topology, 1, 5), restart(&topology, 1, 10)];
            if asked_before {
                inputs.push(acquire(&topology, 2, 0, 50));
            }
            inputs.push(acquire(&topology, 1, 20, HOLD));
            inputs.push(acquire(&topology, 3, 20, HOLD));
            let report = run::<P>(&topology, inputs);
            assert!(kept(&report, Promise::MutualExclusion), "{}", P::META.name);
            assert!(kept(&report, Promise::Fencing), "{}", P::META.name);
            let lost = !asked_before;
            assert!(!(lost && kept(&report, Promise::NoStarvation)), "{}", P::META.name);
        }
    }
    check::<SuzukiKasami>();
    check::<Raymond>();
}

#[test]
fn a_second_token_is_reported_and_not_used() {
    let mut hand = Hand::<Raymond>::new(2, raymond::Config::default());
    hand.say(2, 1, raymond::Message::Token { grants: 7 });
    hand.deliver(2, 1);
    assert_eq!(hand.unexpected, ["a second token"]);
}

#[test]
fn the_holder_must_exist() {
    let topology = system::<SuzukiKasami>(3).with_uids(vec![10, 20, 30]);
    let refused = Err("holder: expected the id of a process, found 3".to_owned());
    assert_eq!(SuzukiKasami::validate(&from_suzuki_kasami(3), &topology), refused);
    assert_eq!(SuzukiKasami::validate(&from_suzuki_kasami(30), &topology), Ok(()));
    assert_eq!(SuzukiKasami::validate(&suzuki_kasami::Config::default(), &topology), Ok(()));
    let topology = system::<Raymond>(3).with_uids(vec![10, 20, 30]);
    assert_eq!(Raymond::validate(&from_raymond(3), &topology), refused);
    assert_eq!(Raymond::validate(&from_raymond(30), &topology), Ok(()));
    let report =
        run_with::<Raymond>(&topology, &from_raymond(30), vec![acquire(&topology, 30, 0, HOLD)]);
    assert_eq!(report.messages.total, 0);
}

#[test]
fn the_wait_for_a_token_has_no_bound() {
    // P2's request is slow; P1 enters again and again meanwhile.
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(2, config);
        hand.acquire(2);
        for _ in 0..5 {
            hand.acquire(1);
            hand.release(1);
        }
        hand.deliver_all();
        assert_eq!(hand.entered, [1, 1, 1, 1, 1, 2]);
    }
    check::<SuzukiKasami>(suzuki_kasami::Config::default());
    check::<Raymond>(raymond::Config::default());
    let (topology, plan) = fair_run::<SuzukiKasami>(1);
    let report = simulate::<SuzukiKasami>(&topology, &suzuki_kasami::Config::default(), &plan);
    assert!(!report.verdict(Promise::BoundedWait).unwrap().claimed);
}
