//! The token ring: what it costs, in which order it serves, how it breaks and how it mends.

mod common;

use common::{acquire, crash, entered, ms, mutex, restart, run, run_with, shuffled, system};
use vez_algorithms::mutex::TokenRing;
use vez_algorithms::mutex::token_ring::Config;
use vez_core::{Chance, Ending, Fence, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Input, LinkRule, Network, Plan, Report, Who, simulate};

fn mending() -> Config {
    Config { hop_within: Some(ms(3)), lap_within: Some(ms(40)), ..Config::default() }
}

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

#[test]
fn the_token_hops_to_the_last_who_asked() {
    for n in [1, 2, 3, 7, 16, 64] {
        let topology = system::<TokenRing>(n);
        for asking in [vec![1], vec![u64::from(n)], (1..=u64::from(n)).collect()] {
            check_hops(&topology, &asking);
        }
        check_hops(&topology, &(1..=u64::from(n)).step_by(3).collect::<Vec<_>>());
        check_hops(&topology, &(2..=u64::from(n)).step_by(2).collect::<Vec<_>>());
    }
}

/// All ask at once: they enter in ring order, and the hops end with the last one's exit.
fn check_hops(topology: &Topology, asking: &[u64]) {
    let inputs = asking.iter().map(|&uid| acquire(topology, uid, 0, 2)).collect();
    let report = run::<TokenRing>(topology, inputs);
    assert!(report.all_kept(), "{asking:?}");
    assert_eq!(entered(topology, &report), asking);
    if let Some(last) = asking.last() {
        assert_eq!(report.messages.of("Token"), last - 1, "{asking:?}");
        assert_eq!(report.messages.total, last - 1);
        assert_eq!(report.time, ms(last - 1 + 2 * asking.len() as u64));
    }
}

#[test]
fn a_token_that_has_just_left_comes_back_after_a_lap() {
    for n in [2, 3, 7, 16, 64] {
        let topology = system::<TokenRing>(n);
        let report = run::<TokenRing>(&topology, vec![acquire(&topology, 1, 1, 1)]);
        assert_eq!(report.messages.total, u64::from(n), "the token left at 0 ms");
        let fences: Vec<_> = mutex(&report).entries.iter().map(|entry| entry.fence).collect();
        assert_eq!(fences, [Some(Fence::plain(u64::from(n)))]);
    }
}

#[test]
fn when_everyone_keeps_asking_each_entry_costs_one_hop() {
    let topology = system::<TokenRing>(7);
    let all_thrice = (0..3).map(|_| (Time::ZERO, Input::Acquire(Who::All, ms(1)))).collect();
    let report = run::<TokenRing>(&topology, all_thrice);
    assert_eq!(entered(&topology, &report), [1, 2, 3, 4, 5, 6, 7].repeat(3));
    assert_eq!(report.messages.total, 20);
}

#[test]
fn a_visit_serves_one_request_however_many_wait() {
    let topology = system::<TokenRing>(3);
    let greedy = (0..4).map(|_| acquire(&topology, 1, 0, 0));
    let report = run::<TokenRing>(&topology, greedy.chain([acquire(&topology, 2, 0, 0)]).collect());
    assert_eq!(entered(&topology, &report), [1, 2, 1, 1, 1]);
    assert!(report.all_kept());
}

#[test]
fn the_order_is_the_rings_not_that_of_the_requests() {
    let topology = system::<TokenRing>(5);
    let asked_in = [(1, 0), (5, 1), (4, 2), (3, 3), (2, 4)];
    let inputs = asked_in.iter().map(|&(uid, at)| acquire(&topology, uid, at, 6)).collect();
    assert_eq!(entered(&topology, &run::<TokenRing>(&topology, inputs)), [1, 2, 3, 4, 5]);
}

#[test]
fn who_asks_as_the_token_arrives_is_in_time_and_a_moment_later_is_not() {
    let topology = system::<TokenRing>(4);
    let hops = |at: Time| {
        let inputs = vec![(at, Input::Acquire(Who::One(NodeId(2)), ms(1)))];
        run::<TokenRing>(&topology, inputs).messages.total
    };
    assert_eq!(hops(ms(2)), 2);
    assert_eq!(hops(ms(2) + Time::from_micros(1)), 6);
}

#[test]
fn alone_on_the_ring_the_token_rests_and_every_entry_has_a_fence_of_its_own() {
    let topology = system::<TokenRing>(1);
    for config in [Config::default(), mending()] {
        let idle = run_with::<TokenRing>(&topology, &config, Vec::new());
        assert_eq!((idle.ending, idle.steps, idle.time), (Ending::Quiescent, 1, Time::ZERO));
        let inputs = (0..3).map(|_| acquire(&topology, 1, 0, 1)).collect();
        let report = run_with::<TokenRing>(&topology, &config, inputs);
        assert_eq!((mutex(&report).entries.len(), report.messages.total), (3, 0));
        assert!(report.all_kept());
    }
}

#[test]
fn a_token_nobody_wants_is_held_for_the_hold_time() {
    let topology = system::<TokenRing>(4);
    let config = Config { hold: ms(9), ..Config::default() };
    let until = Some(ms(100));
    let idle = simulate::<TokenRing>(&topology, &config, &Plan { until, ..Plan::default() });
    assert_eq!(idle.messages.total, 10, "one hop every 10 ms");
    let asks_while_held = vec![acquire(&topology, 2, 15, 1)];
    let report = run_with::<TokenRing>(&topology, &config, asks_while_held);
    assert_eq!((entered(&topology, &report), report.messages.total), (vec![2], 1));
    assert_eq!(mutex(&report).entries[0].entered, ms(15));
    // Having been used, it goes at once; the rest of the hold time is not for a second entry.
    let twice = (0..2).map(|_| acquire(&topology, 2, 15, 1)).collect();
    let report = run_with::<TokenRing>(&topology, &config, twice);
    assert_eq!(mutex(&report).entries[1].entered, ms(16 + 4 + 3 * 9));
}

#[test]
fn the_token_passes_by_one_who_gave_up() {
    let topology = system::<TokenRing>(4);
    let inputs = vec![
        acquire(&topology, 3, 0, 5),
        (ms(1), Input::Withdraw(NodeId(2))),
        acquire(&topology, 4, 0, 1),
    ];
    let report = run::<TokenRing>(&topology, inputs);
    assert_eq!(entered(&topology, &report), [4]);
    assert!(report.all_kept());
}

#[test]
fn s04_accesses_in_the_order_3_1_3_take_six_hops() {
    let topology = system::<TokenRing>(4);
    let inputs = vec![
        acquire(&topology, 3, 0, 1),
        acquire(&topology, 1, 1, 1), // It did not want the token when it had it.
        acquire(&topology, 3, 4, 1),
    ];
    let report = run::<TokenRing>(&topology, inputs);
    assert_eq!(entered(&topology, &report), [3, 1, 3]);
    assert_eq!(report.messages.total, 6);
}

#[test]
fn s12_a_holder_that_dies_takes_the_token_with_it() {
    let topology = system::<TokenRing>(4);
    let inputs = || {
        let asking = (1..=4).map(|uid| acquire(&topology, uid, 0, 5));
        asking.chain([crash(&topology, 2, 8)]).collect()
    };
    let report = run::<TokenRing>(&topology, inputs());
    assert_eq!(entered(&topology, &report), [1, 2]);
    assert_eq!(report.ending, Ending::Quiescent);
    assert!(!kept(&report, Promise::NoDeadlock) && !kept(&report, Promise::NoStarvation));
    let mended = run_with::<TokenRing>(&topology, &mending(), inputs());
    assert!(mended.all_kept());
    assert_eq!(entered(&topology, &mended), [1, 2, 4, 3], "the largest re-creates the token");
    assert_eq!(mutex(&mended).entries[2].fence.unwrap().term, 1, "in the next epoch");
}

#[test]
fn s13_the_token_stops_before_a_dead_member_or_steps_over_it() {
    let topology = system::<TokenRing>(4);
    let inputs = || vec![crash(&topology, 3, 0), acquire(&topology, 4, 0, 1)];
    let stopped = run::<TokenRing>(&topology, inputs());
    assert_eq!(stopped.messages.total, 2, "1→2, and 2→3 where nobody is");
    assert!(mutex(&stopped).entries.is_empty());
    assert!(!kept(&stopped, Promise::NoDeadlock));
    let config = Config { hop_within: Some(ms(3)), ..Config::default() };
    let skipped = run_with::<TokenRing>(&topology, &config, inputs());
    assert!(skipped.all_kept());
    assert_eq!(skipped.messages.of("Token"), 3, "1→2, 2→3 in vain, 2→4");
    let entry = &mutex(&skipped).entries[0];
    assert_eq!(entry.entered, ms(1 + 3 + 1));
    assert_eq!(entry.fence, Some(Fence { term: 1, count: 2 }), "stepping over begins an epoch");
}

#[test]
fn an_answer_at_the_very_end_of_the_hop_time_is_in_time() {
    let topology = system::<TokenRing>(3);
    let hop_within = |within| Config { hop_within: Some(within), ..Config::default() };
    let inputs = || vec![acquire(&topology, 3, 10, 1)];
    let report = run_with::<TokenRing>(&topology, &hop_within(ms(2)), inputs());
    assert_eq!(report.rounds, 0);
    let hasty = run_with::<TokenRing>(&topology, &hop_within(Time::from_micros(1_999)), inputs());
    assert!(0 < hasty.rounds);
}

/// The second of four is inside when it becomes slow; the third and fourth want in.
fn slow_holder(topology: &Topology) -> Vec<(Time, Input)> {
    let slow = (ms(2), Input::Pause(NodeId(1), ms(100)));
    let asking = [(2, 0, 2), (3, 5, 4), (4, 5, 4), (1, 110, 1), (3, 111, 1), (2, 130, 1)];
    let asking = asking.map(|(uid, at, hold)| acquire(topology, uid, at, hold));
    [slow].into_iter().chain(asking).collect()
}

#[test]
fn s14_regenerating_unilaterally_makes_several_tokens() {
    let topology = system::<TokenRing>(4);
    let config = Config { lap_within: Some(ms(40)), unilateral: true, ..Config::default() };
    let report = run_with::<TokenRing>(&topology, &config, slow_holder(&topology));
    let verdict = report.verdict(Promise::MutualExclusion).unwrap();
    assert!(!verdict.kept);
    let entries = &mutex(&report).entries;
    let (third, fourth) = (&entries[1], &entries[2]);
    assert_eq!((third.entered, fourth.entered), (ms(40), ms(40)), "each with a token of its own");
    assert_eq!(third.fence, fourth.fence, "and no fence can tell them apart");
    assert!(!kept(&report, Promise::Fencing));
}

#[test]
fn s14_an_election_makes_one_token_and_epochs_void_the_old_one() {
    let topology = system::<TokenRing>(4);
    let report = run_with::<TokenRing>(&topology, &mending(), slow_holder(&topology));
    let entries = &mutex(&report).entries;
    let who: Vec<u64> = entries.iter().map(|entry| topology.uid(entry.node)).collect();
    assert_eq!(who[..3], [2, 4, 3]);
    // The slow one is still inside: no election can know. But its fence is out of date.
    let verdict = report.verdict(Promise::MutualExclusion).unwrap();
    assert_eq!(verdict.detail.as_deref(), Some("P4 entered while P2 was inside"));
    assert!(kept(&report, Promise::Fencing));
    assert_eq!(mutex(&report).refused_by_fence, 1);
    assert!(entries.is_sorted_by_key(|entry| entry.fence) && entries.len() == 6);
    // Once it has left, nobody is ever inside with anyone else again: its token went no further.
    let later: Vec<_> = entries.iter().filter(|entry| ms(103) < entry.entered).collect();
    assert!(later.is_sorted_by(|a, b| a.left.unwrap() <= b.entered));
    assert!(entries[1].left.unwrap() <= entries[2].entered);
}

#[test]
fn s14_a_slow_holder_that_wants_nothing_does_no_harm() {
    let topology = system::<TokenRing>(4);
    let inputs = vec![
        (ms(1), Input::Pause(NodeId(1), ms(100))),
        acquire(&topology, 3, 5, 60),
        acquire(&topology, 4, 5, 1),
        acquire(&topology, 3, 103, 5),
        acquire(&topology, 1, 104, 5),
        acquire(&topology, 2, 150, 5),
    ];
    let config = Config { hold: ms(1), lap_within: Some(ms(80)), ..mending() };
    let report = run_with::<TokenRing>(&topology, &config, inputs);
    assert!(report.claims_kept(), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries.len(), 5);
}

#[test]
fn a_token_long_inside_is_not_lost_and_its_holder_swallows_every_ballot() {
    let topology = system::<TokenRing>(5);
    let inputs = vec![acquire(&topology, 2, 0, 500), acquire(&topology, 5, 0, 1)];
    let report = run_with::<TokenRing>(&topology, &mending(), inputs);
    assert!(0 < report.messages.of("Election"));
    assert_eq!(report.rounds, 0, "no second token was made");
    assert!(report.all_kept());
}

#[test]
fn the_last_one_alive_keeps_the_token_without_spinning() {
    let topology = system::<TokenRing>(4);
    let mut inputs: Vec<_> = (2..=4).map(|uid| crash(&topology, uid, 0)).collect();
    inputs.extend([acquire(&topology, 1, 50, 1), acquire(&topology, 1, 200, 1)]);
    let report = run_with::<TokenRing>(&topology, &mending(), inputs);
    assert!(report.all_kept());
    assert!(report.steps < 200, "{}", report.steps);
    let last_two = run_with::<TokenRing>(
        &system::<TokenRing>(2),
        &mending(),
        vec![crash(&topology, 1, 0), acquire(&topology, 2, 1, 1)],
    );
    assert!(last_two.all_kept());
}

#[test]
fn who_comes_back_rejoins_and_still_knows_an_old_token() {
    let topology = system::<TokenRing>(4);
    let inputs = vec![
        crash(&topology, 2, 20),
        restart(&topology, 2, 60),
        acquire(&topology, 2, 61, 3),
        restart(&topology, 1, 90),
        acquire(&topology, 1, 91, 3),
        acquire(&topology, 3, 91, 3),
    ];
    let report = run_with::<TokenRing>(&topology, &mending(), inputs);
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries.len(), 3);
}

#[test]
fn who_comes_back_has_no_token_even_if_it_had_the_first() {
    let topology = system::<TokenRing>(4);
    let inputs =
        vec![acquire(&topology, 3, 0, 50), restart(&topology, 1, 20), acquire(&topology, 1, 20, 5)];
    let report = run::<TokenRing>(&topology, inputs);
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries[1].entered, ms(54));
}

#[test]
fn a_stale_token_is_dropped_but_acknowledged_or_its_bearer_would_step_over_us() {
    let topology = system::<TokenRing>(4);
    let network = Network { duplicate: 1.0, ..Network::default() };
    let plan = Plan { network, until: Some(ms(100)), ..Plan::default() };
    let config = Config { hop_within: Some(ms(3)), ..Config::default() };
    let report = simulate::<TokenRing>(&topology, &config, &plan);
    let [tokens, acks] = ["Token", "Ack"].map(|kind| report.messages.of(kind));
    assert_eq!((tokens, acks), (101, 200), "every copy of all but the last, which is on its way");
}

#[test]
fn a_repeated_token_is_dropped() {
    let topology = system::<TokenRing>(4);
    let network = Network { duplicate: 1.0, ..Network::default() };
    let inputs = (0..3).map(|_| (Time::ZERO, Input::Acquire(Who::All, ms(1)))).collect();
    let plan = Plan { network, inputs, ..Plan::default() };
    let report = simulate::<TokenRing>(&topology, &Config::default(), &plan);
    assert!(report.claims_kept());
    assert_eq!(report.messages.total, 11, "copies are not passed on");
}

#[test]
fn a_lost_token_starves_everyone_unless_the_ring_mends_itself() {
    let topology = system::<TokenRing>(4);
    let rule = LinkRule { loss: Some(1.0), ..LinkRule::default() };
    let network = Network { links: [((NodeId(1), NodeId(2)), rule)].into(), ..Network::default() };
    let inputs = vec![acquire(&topology, 4, 0, 1), acquire(&topology, 3, 0, 1)];
    let plan = Plan { network, inputs, ..Plan::default() };
    let report = simulate::<TokenRing>(&topology, &Config::default(), &plan);
    assert!(!kept(&report, Promise::NoDeadlock));
    let mended = simulate::<TokenRing>(&topology, &mending(), &plan);
    assert!(kept(&mended, Promise::MutualExclusion));
    assert_eq!(entered(&topology, &mended)[0], 4, "who cannot be reached is stepped over");
}

#[test]
fn a_mending_ring_survives_crashes_and_returns_where_timeouts_do_not_lie() {
    let mut elections = 0;
    for seed in 0..200 {
        let (topology, plan) = troubled_run(seed);
        let report = simulate::<TokenRing>(&topology, &mending_slowly(), &plan);
        let broken: Vec<_> = report
            .promises
            .iter()
            .filter(|v| !v.kept && v.promise != Promise::BoundedWait)
            .collect();
        assert!(broken.is_empty(), "seed {seed}: {broken:?}\n{plan:?}");
        elections += report.messages.of("Election");
    }
    assert!(300 < elections, "the runs must be troubled enough: {elections}");
}

/// Covers a lap of seven in which all enter and three do not answer.
fn mending_slowly() -> Config {
    Config { hop_within: Some(ms(2)), lap_within: Some(ms(80)), ..Config::default() }
}

fn troubled_run(seed: u64) -> (Topology, Plan) {
    let mut chance = Seeded::stream(seed, 7);
    let n = 2 + chance.below(6);
    let topology = system::<TokenRing>(n).with_uids(shuffled(n, seed));
    let mut inputs = Vec::new();
    let moment = |chance: &mut Seeded, millis: u32| {
        Time::from_micros(u64::from(chance.below(millis * 1_000)))
    };
    for node in topology.ids() {
        for _ in 0..chance.below(6) {
            let (at, hold) = (moment(&mut chance, 1_500), moment(&mut chance, 6));
            inputs.push((at, Input::Acquire(Who::One(node), hold)));
        }
    }
    let mut down: Vec<NodeId> = Vec::new();
    for round in 1..=4 {
        let at = ms(300 * round) + moment(&mut chance, 20);
        let node = NodeId(chance.below(n));
        let input = match down.iter().position(|&other| other == node) {
            Some(index) => {
                down.swap_remove(index);
                Input::Restart(node, vez_sim::Forget::AsPlanned)
            }
            None if down.len() + 1 == n as usize => continue,
            None => {
                down.push(node);
                Input::Crash(node)
            }
        };
        inputs.push((at, input));
    }
    let network = Network {
        delay: Delay::Uniform(Time::from_micros(10), ms(1)),
        fifo: chance.below(2) == 0,
        ..Network::default()
    };
    (topology, Plan { seed, network, inputs, ..Plan::default() })
}

#[test]
fn senseless_settings_are_refused() {
    let topology = system::<TokenRing>(3);
    let refused = |config: &Config| TokenRing::validate(config, &topology).unwrap_err();
    assert_eq!(
        refused(&Config { hop_within: Some(Time::ZERO), ..Config::default() }),
        "hop_within: expected more than 0"
    );
    assert_eq!(
        refused(&Config { lap_within: Some(Time::ZERO), ..Config::default() }),
        "lap_within: expected more than 0"
    );
    assert_eq!(
        refused(&Config { lap_within: Some(ms(9)), ..Config::default() }),
        "lap_within: expected hop_within too, or no ballot gets past a crashed process"
    );
    assert_eq!(
        refused(&Config { hop_within: Some(ms(9)), lap_within: Some(ms(9)), ..Config::default() }),
        "lap_within: expected more than hop_within"
    );
    assert_eq!(
        refused(&Config { unilateral: true, ..Config::default() }),
        "unilateral: expected lap_within, which says when to re-create the token"
    );
    assert_eq!(TokenRing::validate(&mending(), &topology), Ok(()));
}
