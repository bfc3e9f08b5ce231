//! Where implementations of the algorithms that order requests by logical time go wrong, each by
//! a run that would show it; and what breaks when an assumption is taken away.

mod common;
mod crowd;
mod hand;

use common::{acquire, crash, entered, fair_run, ms, mutex, run, system};
use crowd::{assert_sound, crowd, crowded, kept};
use hand::Hand;
use vez_algorithms::mutex::{
    Lamport, Maekawa, RicartAgrawala, RicartAgrawalaTanenbaum, lamport, maekawa, ricart_agrawala,
    ricart_agrawala_tanenbaum,
};
use vez_core::problem::mutex::Entry;
use vez_core::{Chance, Crashes, Mutex, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{
    Delay, Forget, Input, Network, Plan, Report, Trace, TraceEvent, What, Who, simulate, watch,
};

const ROUCAIROL_CARVALHO: ricart_agrawala::Config =
    ricart_agrawala::Config { variant: ricart_agrawala::Variant::RoucairolCarvalho };

fn classic() -> ricart_agrawala::Config {
    ricart_agrawala::Config::default()
}

/// The most entries of others that anyone waited for, counted from asking.
fn longest_wait(report: &Report) -> usize {
    let entries = &mutex(report).entries;
    let others = |mine: &Entry| {
        let within =
            |other: &&Entry| mine.requested <= other.entered && other.entered < mine.entered;
        entries.iter().filter(within).count()
    };
    entries.iter().map(others).max().unwrap_or(0)
}

#[test]
fn many_who_ask_again_and_again_all_get_in_one_at_a_time() {
    fn check<P: Protocol<Problem = Mutex>>(config: &P::Config) {
        for seed in 0..100 {
            for n in [2, 3, 7, 13] {
                let report = crowded::<P>(config, n, seed);
                assert_sound::<P>(&report, seed);
                assert_eq!(mutex(&report).entries.len(), 3 * n as usize);
            }
        }
    }
    check::<Lamport>(&lamport::Config::default());
    check::<Lamport>(&lamport::Config { save_replies: true });
    check::<RicartAgrawala>(&classic());
    check::<RicartAgrawala>(&ROUCAIROL_CARVALHO);
    check::<Maekawa>(&maekawa::Config::default());
}

#[test]
fn who_gives_up_at_any_moment_harms_nobody() {
    fn check<P: Protocol<Problem = Mutex>>(config: &P::Config) {
        for seed in 0..300 {
            let (topology, mut plan) = fair_run::<P>(seed);
            let mut chance = Seeded::stream(seed, 5);
            for node in topology.ids() {
                for _ in 0..4 {
                    let at = Time::from_micros(u64::from(chance.below(80_000)));
                    plan.inputs.push((at, Input::Withdraw(node)));
                }
            }
            assert_sound::<P>(&simulate::<P>(&topology, config, &plan), seed);
        }
    }
    check::<Lamport>(&lamport::Config::default());
    check::<Lamport>(&lamport::Config { save_replies: true });
    check::<RicartAgrawala>(&classic());
    check::<RicartAgrawala>(&ROUCAIROL_CARVALHO);
    check::<RicartAgrawalaTanenbaum>(&ricart_agrawala_tanenbaum::Config::default());
    check::<Maekawa>(&maekawa::Config::default());
}

// Lamport, CACM 1978.

#[test]
fn lamports_idle_clock_advances_when_a_message_comes() {
    let mut hand = Hand::<Lamport>::new(2, lamport::Config::default());
    for _ in 0..3 {
        hand.acquire(2);
        hand.withdraw(2);
    }
    hand.acquire(2);
    while !hand.on_the_way(2, 1).is_empty() {
        hand.deliver(2, 1);
    }
    hand.acquire(1); // A clock that only counts what it says itself would put this before P2's.
    hand.deliver_all();
    assert_eq!(hand.inside(), [2]);
    hand.release(2);
    hand.deliver_all();
    assert_eq!(hand.entered, [2, 1]);
}

#[test]
fn a_release_takes_its_senders_request_off_lamports_queue_and_no_other() {
    let mut hand = Hand::<Lamport>::new(3, lamport::Config::default());
    for uid in [1, 3, 2] {
        hand.acquire(uid);
        hand.deliver_all();
    }
    hand.withdraw(2); // Its request is the first in nobody's queue.
    hand.deliver_all();
    assert_eq!(hand.inside(), [1]);
    hand.release(1);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]);
    hand.release(3);
    hand.deliver_all();
    assert_eq!(hand.entered, [1, 3]);
}

#[test]
fn an_earlier_request_with_a_larger_id_counts_as_later_for_lamport() {
    let mut hand = Hand::<Lamport>::new(2, lamport::Config::default());
    hand.acquire(1);
    hand.acquire(2);
    assert_eq!(hand.deliver(2, 1), "Request");
    assert_eq!(hand.inside(), [1], "(1, P2) comes after (1, P1): no reply is needed");
    hand.deliver_all();
    assert_eq!(hand.inside(), [1]);
}

#[test]
fn lamport_lets_two_in_when_a_reply_overtakes_a_request() {
    let mut hand = Hand::<Lamport>::new(2, lamport::Config::default());
    hand.acquire(1);
    hand.acquire(2);
    hand.deliver(2, 1); // P1 has heard something later and enters; its reply goes out.
    assert_eq!(hand.inside(), [1]);
    assert_eq!(hand.on_the_way(1, 2), ["Request", "Reply"]);
    assert_eq!(hand.deliver_newest(1, 2), "Reply");
    assert_eq!(hand.inside(), [1, 2], "P2 does not know of the request before its own");
}

#[test]
fn lamport_waits_for_ever_when_a_release_overtakes_its_request() {
    let mut hand = Hand::<Lamport>::new(3, lamport::Config::default());
    hand.acquire(1);
    hand.withdraw(1);
    assert_eq!(hand.on_the_way(1, 2), ["Request", "Release"]);
    assert_eq!(hand.deliver_newest(1, 2), "Release");
    hand.deliver_all();
    hand.acquire(2);
    hand.deliver_all();
    assert_eq!(hand.inside(), [0; 0], "the ghost of P1's request is before P2's");
}

#[test]
fn lamport_without_order_on_the_channels_is_neither_safe_nor_live() {
    let (mut unsafe_runs, mut blocked_runs) = (Vec::new(), Vec::new());
    for seed in 0..300 {
        let (topology, plan) = crowd::<Lamport>(3, seed, false);
        let report = simulate::<Lamport>(&topology, &lamport::Config::default(), &plan);
        if !kept(&report, Promise::MutualExclusion) {
            unsafe_runs.push(seed);
        }
        if !kept(&report, Promise::NoDeadlock) {
            blocked_runs.push(seed);
        }
        let ordered = Plan { network: Network { fifo: true, ..plan.network.clone() }, ..plan };
        let report = simulate::<Lamport>(&topology, &lamport::Config::default(), &ordered);
        assert_sound::<Lamport>(&report, seed);
    }
    assert_eq!((unsafe_runs.len(), unsafe_runs[0]), (62, 1));
    assert_eq!((blocked_runs.len(), blocked_runs[0]), (16, 7));
}

#[test]
fn lamport_is_overtaken_more_than_once_by_who_has_not_heard() {
    let overtaken = |seed| {
        let report = crowded::<Lamport>(&lamport::Config::default(), 3, seed);
        2 < longest_wait(&report)
    };
    assert_eq!(
        (0..200).find(|&seed| overtaken(seed)),
        Some(127),
        "so no bound of n − 1 is promised"
    );
}

// Ricart and Agrawala, CACM 1981.

#[test]
fn a_waiting_request_keeps_its_time_though_the_clock_runs_on() {
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(3, config);
        hand.acquire(2);
        hand.deliver(2, 3);
        hand.acquire(3);
        hand.deliver(3, 2); // P3's reply: P2's clock runs on, past P3's request.
        hand.deliver(3, 2); // P3's request, later than P2's and earlier than P2's clock.
        let answers = hand.on_the_way(2, 3);
        assert!(!answers.contains(&"Reply") && !answers.contains(&"Grant"), "{answers:?}");
        hand.deliver_all();
        assert_eq!(hand.inside(), [2], "{}", P::META.name);
    }
    check::<RicartAgrawala>(classic());
    check::<RicartAgrawala>(ROUCAIROL_CARVALHO);
    check::<RicartAgrawalaTanenbaum>(ricart_agrawala_tanenbaum::Config::default());
}

#[test]
fn an_idle_clock_advances_when_a_request_comes() {
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(2, config);
        for _ in 0..3 {
            hand.acquire(2);
            hand.withdraw(2);
        }
        hand.acquire(2);
        hand.deliver_newest(2, 1);
        hand.acquire(1); // A clock that only counts what it says itself would put this first.
        hand.deliver_newest(1, 2); // It overtakes P1's permission.
        hand.deliver_all();
        assert_eq!(hand.inside(), [2], "{}", P::META.name);
        hand.release(2);
        hand.deliver_all();
        assert_eq!(hand.entered, [2, 1], "{}", P::META.name);
    }
    check::<RicartAgrawala>(classic());
    check::<RicartAgrawala>(ROUCAIROL_CARVALHO);
    check::<RicartAgrawalaTanenbaum>(ricart_agrawala_tanenbaum::Config::default());
}

#[test]
fn of_two_requests_of_one_time_the_smaller_id_goes_first() {
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(2, config);
        hand.acquire(2);
        hand.acquire(1);
        hand.deliver_all();
        assert_eq!(hand.inside(), [1], "{}", P::META.name);
        hand.release(1);
        hand.deliver_all();
        assert_eq!(hand.inside(), [2], "{}", P::META.name);
    }
    check::<Lamport>(lamport::Config::default());
    check::<Lamport>(lamport::Config { save_replies: true });
    check::<RicartAgrawala>(classic());
    check::<RicartAgrawala>(ROUCAIROL_CARVALHO);
    check::<RicartAgrawalaTanenbaum>(ricart_agrawala_tanenbaum::Config::default());
    check::<Maekawa>(maekawa::Config::default());
}

#[test]
fn a_reply_to_a_withdrawn_request_permits_nothing() {
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(2, config);
        hand.acquire(1);
        hand.deliver(1, 2); // P2's permission is on its way…
        hand.withdraw(1);
        hand.acquire(2);
        hand.deliver_newest(2, 1); // …overtaken by P2's own request, which P1 grants.
        hand.deliver(1, 2);
        assert_eq!(hand.inside(), [2]);
        hand.acquire(1);
        hand.deliver_all(); // Now the old permission comes.
        assert_eq!(hand.inside(), [2], "{}", P::META.name);
        hand.release(2);
        hand.deliver_all();
        assert_eq!(hand.inside(), [1], "{}", P::META.name);
    }
    check::<RicartAgrawala>(classic());
    check::<RicartAgrawala>(ROUCAIROL_CARVALHO);
    check::<RicartAgrawalaTanenbaum>(ricart_agrawala_tanenbaum::Config::default());
}

#[test]
fn a_late_permission_is_not_kept_by_one_who_gave_its_own_away() {
    let mut hand = Hand::<RicartAgrawala>::new(2, ROUCAIROL_CARVALHO);
    hand.acquire(1);
    hand.deliver(1, 2);
    hand.withdraw(1);
    hand.acquire(2);
    hand.deliver_newest(2, 1);
    hand.deliver_all(); // The old permission reaches an idle P1; P2 is inside.
    assert_eq!(hand.inside(), [2]);
    hand.acquire(1); // If it had kept it, it would now enter without asking.
    assert_eq!(hand.inside(), [2]);
}

#[test]
fn a_kept_permission_that_is_given_away_is_asked_for_again() {
    let mut hand = Hand::<RicartAgrawala>::new(3, ROUCAIROL_CARVALHO);
    hand.acquire(1);
    hand.deliver_all();
    hand.release(1); // P1 keeps the permissions of P2 and P3.
    hand.acquire(3);
    hand.deliver_all();
    assert_eq!(hand.inside(), [3]); // P3 has P1's now.
    hand.acquire(2); // An early time: P2 has heard P1's first request and P3's.
    hand.acquire(1); // P1 still has P2's permission and asks P3 only.
    assert_eq!((hand.on_the_way(1, 2), hand.on_the_way(1, 3)), (vec![], vec!["Request"]));
    hand.deliver(2, 1);
    let earlier = hand.on_the_way(1, 2);
    assert_eq!(earlier, ["Reply", "Request"], "P2's request is earlier: give, and ask back");
    hand.deliver_newest(1, 2); // The request overtakes the permission.
    hand.deliver_all();
    hand.release(3);
    hand.deliver_all();
    assert_eq!(hand.inside(), [2]);
    hand.release(2);
    hand.deliver_all();
    assert_eq!(hand.inside(), [1]);
}

#[test]
fn nobody_waits_for_more_than_two_entries_of_each_other_process() {
    let mut beyond = 0;
    for seed in 0..1_000 {
        let report = crowded::<RicartAgrawala>(&classic(), 3, seed);
        assert!(kept(&report, Promise::BoundedWait), "{seed}: {:?}", report.promises);
        beyond += u32::from(2 < longest_wait(&report));
    }
    assert!(0 < beyond, "n − 1 is no bound when counted from asking");
}

#[test]
fn who_is_replied_to_learns_the_time_and_cannot_overtake_again() {
    fn check<P: Protocol<Problem = Mutex>>(config: P::Config) {
        let mut hand = Hand::<P>::new(3, config);
        for _ in 0..9 {
            hand.acquire(2);
            hand.withdraw(2);
        }
        hand.deliver_newest(2, 3); // P3's clock is far ahead of P1's.
        hand.acquire(3); // Its request to P1 is slow.
        for _ in 0..2 {
            hand.acquire(1);
            for other in [2, 3] {
                hand.deliver_newest(1, other);
                hand.deliver_newest(other, 1);
            }
            if hand.inside() == [1] {
                hand.release(1);
            }
        }
        assert_eq!(hand.entered, [1], "{}: once, having heard nothing of P3", P::META.name);
        hand.deliver_all();
        assert_eq!(hand.inside(), [3], "{}", P::META.name);
    }
    check::<RicartAgrawala>(classic());
    check::<RicartAgrawalaTanenbaum>(ricart_agrawala_tanenbaum::Config::default());
}

#[test]
fn kept_permissions_bound_nothing() {
    let report = crowded::<RicartAgrawala>(&ROUCAIROL_CARVALHO, 3, 0);
    let detail = report.verdict(Promise::BoundedWait).unwrap().detail.clone().unwrap();
    assert!(!detail.contains("promised"), "{detail}");
    // P1 has P2's permission; P2's request is slow, and P1 enters five times before it comes.
    let mut hand = Hand::<RicartAgrawala>::new(2, ROUCAIROL_CARVALHO);
    hand.acquire(1);
    hand.deliver_all();
    hand.release(1);
    hand.acquire(2);
    for _ in 0..5 {
        hand.acquire(1);
        hand.release(1);
    }
    assert_eq!(hand.entered, [1; 6]);
}

#[test]
fn ricart_agrawala_blocks_when_even_an_idle_process_crashes() {
    let topology = system::<RicartAgrawala>(4);
    let inputs = vec![crash(&topology, 4, 0), acquire(&topology, 1, 1, 2)];
    let report = run::<RicartAgrawala>(&topology, inputs.clone());
    assert!(!kept(&report, Promise::NoDeadlock));
    assert_eq!(entered(&topology, &report), [0; 0]);
    let report = run::<RicartAgrawalaTanenbaum>(&topology, inputs.clone());
    assert_sound::<RicartAgrawalaTanenbaum>(&report, 0);
    assert_eq!(entered(&topology, &report), [1]);
    assert_eq!(mutex(&report).entries[0].entered, ms(1 + 2), "after answer_within");
    assert!(!kept(&run::<Lamport>(&topology, inputs.clone()), Promise::NoDeadlock));
    // The quorum of P1 is {1, 2, 3}: what befalls P4 is none of its business.
    assert!(run::<Maekawa>(&topology, inputs).claims_kept());
    let inputs = vec![crash(&topology, 2, 0), acquire(&topology, 1, 1, 2)];
    assert!(!kept(&run::<Maekawa>(&topology, inputs), Promise::NoDeadlock));
}

#[test]
fn the_clock_of_ricart_agrawala_survives_a_restart() {
    let topology = system::<RicartAgrawala>(2);
    let p1 = topology.find(1).unwrap();
    let requests = |forget| {
        let inputs = vec![
            acquire(&topology, 1, 0, 1),
            (ms(10), Input::Restart(p1, forget)),
            acquire(&topology, 1, 11, 1),
        ];
        let plan = Plan { inputs, ..Plan::default() };
        let trace = Trace::default();
        let (_, trace) = watch::<RicartAgrawala, _>(&topology, &classic(), &plan, trace);
        let time = |event: &TraceEvent| match &event.what {
            What::Send { kind: "Request", text, .. } => Some(text.clone()),
            _ => None,
        };
        trace.events.iter().filter_map(time).collect::<Vec<_>>()
    };
    let [first, second] = &requests(Forget::AsPlanned)[..] else { panic!("two requests") };
    assert_ne!(first, second, "a reply to the first must not pass for one to the second");
    let [first, second] = &requests(Forget::Everything)[..] else { panic!("two requests") };
    assert_eq!(first, second, "so amnesia is harmful");
}

// Tanenbaum's variant.

/// Requests and crashes all over the run, never so close that a survivor is unclear.
fn dying_crowd(seed: u64) -> (Topology, Plan) {
    let mut chance = Seeded::stream(seed, 21);
    let n = 2 + chance.below(5);
    let topology = system::<RicartAgrawalaTanenbaum>(n);
    let mut inputs = Vec::new();
    for node in topology.ids() {
        for _ in 0..3 {
            let at = Time::from_micros(u64::from(chance.below(150_000)));
            let hold = Time::from_micros(u64::from(chance.below(8_000)));
            inputs.push((at, Input::Acquire(Who::One(node), hold)));
        }
    }
    for _ in 0..chance.below(n) {
        let (at, node) =
            (Time::from_micros(u64::from(chance.below(150_000))), NodeId(chance.below(n)));
        let unsent = chance.below(2) == 0;
        inputs.push((at, if unsent { Input::CrashUnsent(node) } else { Input::Crash(node) }));
    }
    let delay = Delay::Uniform(Time::from_micros(10), ms(1));
    let network = Network { delay, fifo: false, ..Network::default() };
    (topology, Plan { seed, network, inputs, ..Plan::default() })
}

#[test]
fn tanenbaums_variant_survives_crashes_at_any_moment() {
    assert_eq!(RicartAgrawalaTanenbaum::META.crashes, Crashes::Stop);
    let mut blocked = 0;
    for seed in 0..1_000 {
        let (topology, plan) = dying_crowd(seed);
        let config = ricart_agrawala_tanenbaum::Config::default();
        let report = simulate::<RicartAgrawalaTanenbaum>(&topology, &config, &plan);
        assert_sound::<RicartAgrawalaTanenbaum>(&report, seed);
        let report = simulate::<RicartAgrawala>(&topology, &classic(), &plan);
        assert!(kept(&report, Promise::MutualExclusion), "{seed}");
        blocked += u32::from(!kept(&report, Promise::NoDeadlock));
    }
    assert!(100 < blocked, "{blocked}: the same crashes block the algorithm without answers");
}

#[test]
fn one_who_denied_and_crashed_inside_does_not_block_tanenbaums_variant() {
    let topology = system::<RicartAgrawalaTanenbaum>(3);
    let inputs =
        vec![acquire(&topology, 1, 0, 100), acquire(&topology, 2, 5, 1), crash(&topology, 1, 9)];
    let report = run::<RicartAgrawalaTanenbaum>(&topology, inputs);
    assert_sound::<RicartAgrawalaTanenbaum>(&report, 0);
    // Denied at 7 ms, it asks again after 20 and concludes after 2 more.
    let times: Vec<_> = mutex(&report).entries.iter().map(|entry| entry.entered).collect();
    assert_eq!(times, [ms(2), ms(29)]);
}

#[test]
fn who_is_presumed_crashed_is_asked_no_more() {
    let topology = system::<RicartAgrawalaTanenbaum>(4);
    let inputs = vec![
        crash(&topology, 4, 0),
        acquire(&topology, 1, 0, 1),
        acquire(&topology, 1, 10, 1),
        acquire(&topology, 2, 20, 1),
    ];
    let report = run::<RicartAgrawalaTanenbaum>(&topology, inputs);
    // P1 learns that P4 is gone, and asks two the second time; P2 has to learn it by itself.
    assert_eq!(report.messages.of("Request"), 3 + 2 + 3);
    assert_eq!(report.messages.of("Grant"), 2 + 2 + 2);
    assert_eq!(report.messages.to_crashed, 2);
}

#[test]
fn tanenbaums_variant_lets_two_in_when_a_slow_process_is_taken_for_dead() {
    let topology = system::<RicartAgrawalaTanenbaum>(3);
    let p1 = topology.find(1).unwrap();
    let inputs = vec![
        acquire(&topology, 1, 0, 50),
        (ms(5), Input::Pause(p1, ms(20))),
        acquire(&topology, 2, 6, 5),
    ];
    let report = run::<RicartAgrawalaTanenbaum>(&topology, inputs.clone());
    assert!(!kept(&report, Promise::MutualExclusion));
    let report = run::<RicartAgrawala>(&topology, inputs);
    assert_sound::<RicartAgrawala>(&report, 0);
}

#[test]
fn timeouts_of_nothing_are_refused() {
    let topology = system::<RicartAgrawalaTanenbaum>(3);
    let default = ricart_agrawala_tanenbaum::Config::default();
    let refused = |config| RicartAgrawalaTanenbaum::validate(&config, &topology).unwrap_err();
    let never = ricart_agrawala_tanenbaum::Config { answer_within: Time::ZERO, ..default.clone() };
    assert_eq!(refused(never), "answer_within: expected more than 0");
    let never = ricart_agrawala_tanenbaum::Config { ask_again_after: Time::ZERO, ..default };
    assert_eq!(refused(never), "ask_again_after: expected more than 0");
}
