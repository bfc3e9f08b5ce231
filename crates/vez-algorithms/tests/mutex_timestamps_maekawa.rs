//! Maekawa, TOCS 1985, and Sanders' repair, TOCS 1987: what the repair repairs, and where
//! implementations go wrong, each by a run that would show it.

mod common;
mod crowd;
mod hand;

use common::mutex;
use crowd::{assert_sound, crowd, crowded, kept};
use hand::Hand;
use vez_algorithms::mutex::{Maekawa, maekawa};
use vez_core::{NodeId, Promise, Stamp};
use vez_sim::simulate;

const PLANE: maekawa::Config = maekawa::Config { quorums: maekawa::Quorums::Plane, repair: true };

#[test]
fn without_the_repair_maekawa_blocks_and_with_it_never() {
    let grid = maekawa::Config::default();
    for (config, n, expected) in [(PLANE, 7, (61, 8)), (PLANE, 13, (90, 0)), (grid, 16, (20, 0))] {
        let unrepaired = maekawa::Config { repair: false, ..config.clone() };
        let mut blocked = Vec::new();
        for seed in 0..400 {
            assert_sound::<Maekawa>(&crowded::<Maekawa>(&config, n, seed), seed);
            let report = crowded::<Maekawa>(&unrepaired, n, seed);
            assert!(kept(&report, Promise::MutualExclusion), "{n}, seed {seed}");
            if !kept(&report, Promise::NoDeadlock) {
                blocked.push(seed);
            }
        }
        // How many of 400, and the first.
        assert_eq!((blocked.len(), blocked[0]), expected, "{n}");
    }
}

#[test]
fn maekawa_needs_order_on_the_channels() {
    let blocks = |&seed: &u64| {
        let (topology, plan) = crowd::<Maekawa>(7, seed, false);
        let report = simulate::<Maekawa>(&topology, &PLANE, &plan);
        assert!(kept(&report, Promise::MutualExclusion), "{seed}");
        !kept(&report, Promise::NoDeadlock)
    };
    assert_eq!((0..400).find(blocks), Some(1));
}

#[test]
fn on_average_maekawa_stays_below_six_messages_for_every_other_member() {
    for (config, n, others) in [(PLANE, 7, 2), (PLANE, 13, 3), (maekawa::Config::default(), 16, 6)]
    {
        for seed in 0..200 {
            let report = crowded::<Maekawa>(&config, n, seed);
            let entries = mutex(&report).entries.len() as u64;
            assert!(report.messages.total <= 6 * others * entries, "{n}, seed {seed}");
        }
    }
}

fn stamp(time: u64, uid: u32) -> Stamp {
    Stamp { time, node: NodeId(uid - 1) }
}

#[test]
fn the_overtaken_head_of_maekawas_queue_is_told_and_the_holder_is_asked_once() {
    // P7 arbitrates; the requests are played to it.
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    let request = |time, uid| maekawa::Message::Request { request: stamp(time, uid) };
    for (time, uid) in [(9, 1), (8, 2), (7, 3), (6, 4), (6, 5)] {
        hand.say(uid.into(), 7, request(time, uid));
        hand.deliver(uid.into(), 7);
    }
    assert_eq!(hand.on_the_way(7, 1), ["Grant", "Inquire"], "asked once");
    assert_eq!(hand.on_the_way(7, 2), ["Failed"], "overtaken by P3");
    assert_eq!(hand.on_the_way(7, 3), ["Failed"], "overtaken by P4");
    assert_eq!(hand.on_the_way(7, 4), [""; 0], "may hope");
    assert_eq!(hand.on_the_way(7, 5), ["Failed"]);
    hand.say(1, 7, maekawa::Message::Relinquish { request: stamp(9, 1) });
    hand.deliver(1, 7);
    assert_eq!(hand.on_the_way(7, 4), ["Grant"]);
    // A new inquiry is possible for the new holder.
    hand.say(6, 7, request(1, 6));
    hand.deliver(6, 7);
    assert_eq!(hand.on_the_way(7, 4), ["Grant", "Inquire"]);
    assert_eq!(hand.on_the_way(7, 5), ["Failed"], "told before; not again");
}

#[test]
fn a_head_that_was_told_to_wait_when_it_came_is_not_told_again() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    for (time, uid) in [(5, 1), (6, 2), (4, 3)] {
        let request = maekawa::Message::Request { request: stamp(time, uid) };
        hand.say(uid.into(), 7, request);
        hand.deliver(uid.into(), 7);
    }
    assert_eq!(hand.on_the_way(7, 2), ["Failed"]);
    assert_eq!(hand.on_the_way(7, 1), ["Grant", "Inquire"]);
}

#[test]
fn a_relinquish_or_release_for_another_request_changes_nothing() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    for (time, uid) in [(5, 1), (6, 2)] {
        let request = maekawa::Message::Request { request: stamp(time, uid) };
        hand.say(uid.into(), 7, request);
        hand.deliver(uid.into(), 7);
    }
    hand.say(1, 7, maekawa::Message::Relinquish { request: stamp(3, 1) });
    hand.deliver(1, 7);
    hand.say(1, 7, maekawa::Message::Release { request: stamp(3, 1) });
    hand.deliver(1, 7);
    assert_eq!(hand.on_the_way(7, 2), ["Failed"], "P1's older request is not the one that holds");
    assert_eq!(hand.on_the_way(7, 1), ["Grant"]);
    hand.say(1, 7, maekawa::Message::Release { request: stamp(5, 1) });
    hand.deliver(1, 7);
    assert_eq!(hand.on_the_way(7, 2), ["Failed", "Grant"]);
}

#[test]
fn an_inquiry_while_inside_is_answered_by_the_release() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    hand.acquire(3);
    hand.deliver_all(); // Quorum {3, 4, 6}.
    assert_eq!(hand.inside(), [3]);
    for member in [4, 6] {
        // Even if someone had told it to wait before.
        hand.say(member, 3, maekawa::Message::Failed { request: stamp(1, 3) });
        hand.say(member, 3, maekawa::Message::Inquire { request: stamp(1, 3) });
        hand.deliver(member, 3);
        hand.deliver(member, 3);
        assert_eq!(hand.on_the_way(3, member), [""; 0]);
    }
    hand.release(3);
    assert_eq!(hand.on_the_way(3, 4), ["Release"]);
}

#[test]
fn an_inquiry_is_pondered_until_someone_says_wait() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    hand.acquire(3);
    hand.deliver(3, 4);
    hand.deliver(4, 3);
    hand.say(4, 3, maekawa::Message::Inquire { request: stamp(1, 3) });
    hand.deliver(4, 3);
    assert_eq!(hand.on_the_way(3, 4), [""; 0], "it may still enter");
    hand.say(6, 3, maekawa::Message::Failed { request: stamp(1, 3) });
    hand.deliver(6, 3);
    assert_eq!(hand.on_the_way(3, 4), ["Relinquish"]);
    // What was given back is not held: the yes of all others is not enough.
    hand.deliver(3, 6);
    hand.deliver(6, 3);
    assert_eq!(hand.inside(), [0; 0]);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]);
}

#[test]
fn one_who_was_told_to_wait_gives_back_at_once() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    hand.acquire(3);
    hand.say(6, 3, maekawa::Message::Failed { request: stamp(1, 3) });
    hand.deliver(6, 3);
    hand.deliver(3, 4);
    hand.deliver(4, 3);
    hand.say(4, 3, maekawa::Message::Inquire { request: stamp(1, 3) });
    hand.deliver(4, 3);
    assert_eq!(hand.on_the_way(3, 4), ["Relinquish"]);
}

#[test]
fn one_who_was_told_to_wait_and_then_granted_may_hope_again() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    hand.acquire(3);
    hand.say(6, 3, maekawa::Message::Failed { request: stamp(1, 3) });
    hand.deliver(6, 3);
    hand.deliver(3, 6);
    assert_eq!(hand.deliver(6, 3), "Grant");
    hand.say(6, 3, maekawa::Message::Inquire { request: stamp(1, 3) });
    hand.deliver(6, 3);
    assert_eq!(hand.on_the_way(3, 6), [""; 0], "nobody makes it wait any more");
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]);
}

#[test]
fn a_member_asks_with_a_later_time_than_all_it_has_heard() {
    let mut hand = Hand::<Maekawa>::new(7, PLANE);
    for _ in 0..5 {
        hand.acquire(1);
        hand.withdraw(1);
    }
    hand.acquire(1); // Quorum {1, 2, 4}.
    hand.deliver_all();
    assert_eq!(hand.inside(), [1]);
    hand.acquire(2); // Quorum {2, 3, 5}: its own yes is P1's, and P1 was first.
    assert_eq!(hand.on_the_way(2, 1), [""; 0], "no inquiry");
}

#[test]
fn one_needs_ones_own_yes_too() {
    // Quorums {1, 2}, {2, 3}, {3, 1}: P1 and P3 share P1 alone.
    let mut hand = Hand::<Maekawa>::new(3, PLANE);
    hand.acquire(3);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]);
    hand.acquire(1);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3], "P1 has said its own yes to P3");
    hand.release(3);
    hand.deliver_all();
    assert_eq!(hand.inside(), [1]);
}
