//! What the simulator does to processes, shown with a protocol that only talks.

mod gossip;

use gossip::{Gossip, Word, heard, plan, run, say, traced};
use vez_core::{Layout, NodeId, Time, Topology};
use vez_sim::{Delay, Directions, Forget, Input, LinkRule, Network, Plan, What};

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const C: NodeId = NodeId(2);

#[test]
fn a_message_takes_one_millisecond() {
    let (report, trace) = traced(&plan(vec![say(0, A)]));
    assert_eq!(heard(&trace, Word::News), [(ms(1), B), (ms(1), C)]);
    assert_eq!(report.messages.of("News"), 2);
}

#[test]
fn within_a_moment_inputs_come_before_deliveries_and_deliveries_before_timers() {
    // A's news reaches B at 1 ms, when B's own timer of 1 ms runs out and B is asked once more.
    let inputs = vec![say(0, A), (ms(0), Input::Suspect(B, A)), (ms(1), Input::Suspect(B, B))];
    let (_, trace) = traced(&plan(inputs));
    let at_b: Vec<&str> = trace
        .iter()
        .filter(|event| event.node == Some(2) && event.at == ms(1))
        .filter_map(|event| match &event.what {
            What::Request { .. } => Some("request"),
            What::Receive { .. } => Some("receive"),
            What::Timer { .. } => Some("timer"),
            _ => None,
        })
        .collect();
    assert_eq!(at_b, ["request", "receive", "timer"]);
}

#[test]
fn deliveries_of_a_moment_go_by_receiver_then_sender_then_order_of_sending() {
    let (_, trace) = traced(&plan(vec![say(0, C), say(0, B), say(0, A), say(0, C)]));
    let order: Vec<(u64, u64)> = trace
        .iter()
        .filter_map(|event| match event.what {
            What::Receive { from, .. } if event.at == ms(1) => Some((event.node?, from)),
            _ => None,
        })
        .collect();
    assert_eq!(order, [(1, 2), (1, 3), (1, 3), (2, 1), (2, 3), (2, 3), (3, 1), (3, 2)]);
}

#[test]
fn what_a_process_says_to_itself_is_heard_at_once_and_not_counted() {
    let (report, trace) = traced(&plan(vec![(ms(3), Input::Suspect(A, A))]));
    assert_eq!(report.messages.total, 0);
    let state = trace.iter().rev().find_map(|event| match &event.what {
        What::State { state, .. } => Some((event.at, state["echoes"].clone())),
        _ => None,
    });
    assert_eq!(state, Some((ms(3), 1.into())));
}

#[test]
fn the_dead_hear_nothing_and_it_is_counted() {
    let (report, trace) = traced(&plan(vec![(ms(0), Input::Crash(B)), say(0, A)]));
    assert_eq!(heard(&trace, Word::News), [(ms(1), C)]);
    assert_eq!((report.messages.total, report.messages.to_crashed), (2, 1));
}

#[test]
fn a_restart_brings_back_what_was_saved_and_amnesia_nothing() {
    let inputs = || vec![say(0, A), say(1, A), (ms(5), Input::Crash(A)), restart(6, A), say(7, A)];
    let counts = |plan: &Plan| run(plan).rounds;
    assert_eq!(counts(&plan(inputs())), 3);
    assert_eq!(counts(&Plan { amnesia: true, ..plan(inputs()) }), 2);
    let mut forgets = inputs();
    forgets[3] = (ms(6), Input::Restart(A, Forget::Everything));
    assert_eq!(counts(&plan(forgets)), 2);
}

#[test]
fn a_restart_of_a_live_process_is_a_crash_and_a_return() {
    let (_, trace) = traced(&plan(vec![say(0, A), restart(2, A)]));
    let kinds: Vec<_> = trace.iter().filter(|event| event.at == ms(2)).map(|e| &e.what).collect();
    assert!(matches!(kinds[..2], [What::Crash, What::Restart { forgot: false }]), "{kinds:?}");
}

#[test]
fn a_crash_between_saving_and_sending_keeps_the_state_and_loses_the_words() {
    let doomed = vec![(ms(0), Input::CrashUnsent(A)), say(1, A), restart(5, A), say(6, A)];
    let (report, trace) = traced(&plan(doomed));
    assert_eq!(heard(&trace, Word::News), [(ms(7), B), (ms(7), C)], "the first words never left");
    assert_eq!(report.rounds, 2, "but they were counted and saved");
}

#[test]
fn a_crash_disarms_timers() {
    let (_, trace) = traced(&plan(vec![(ms(0), Input::Suspect(A, B)), (ms(0), Input::Crash(A))]));
    assert!(!trace.iter().any(|event| matches!(event.what, What::Timer { .. })));
}

#[test]
fn a_paused_process_handles_everything_when_it_goes_on() {
    let inputs = vec![
        (ms(0), Input::Suspect(B, A)),
        (ms(0), Input::Pause(B, ms(10))),
        say(0, A),
        (ms(2), Input::Suspect(B, B)),
        say(4, A),
    ];
    let (_, trace) = traced(&plan(inputs));
    let at_b: Vec<Time> = trace
        .iter()
        .filter(|event| event.node == Some(2) && ms(0) < event.at)
        .filter(|event| {
            matches!(event.what, What::Request { .. } | What::Receive { .. } | What::Timer { .. })
        })
        .map(|event| event.at)
        .collect();
    assert_eq!(at_b, [ms(10); 4], "a request, two messages and a timer");
}

#[test]
fn a_fast_clock_runs_out_early_and_a_drifting_one_somewhere_near() {
    let fired = |plan: &Plan| {
        let (_, trace) = traced(plan);
        trace.iter().find(|event| matches!(event.what, What::Timer { .. })).unwrap().at
    };
    let plan = plan(vec![(ms(0), Input::Suspect(A, B))]);
    assert_eq!(fired(&plan), ms(1));
    assert_eq!(fired(&Plan { clocks: [(A, 2.0)].into(), ..plan.clone() }), Time::from_micros(500));
    let drifted = fired(&Plan { drift: 0.1, ..plan.clone() });
    assert!(drifted != ms(1) && (900..1_120).contains(&drifted.as_micros()), "{drifted}");
    assert_eq!(drifted, fired(&Plan { drift: 0.1, ..plan }), "the same seed drifts the same way");
}

#[test]
fn a_cut_link_loses_what_is_sent_and_what_is_under_way() {
    let cut = |at| (Time::from_micros(at), Input::Cut(A, B, Directions::One));
    for at in [0, 500] {
        let (report, trace) = traced(&plan(vec![cut(at), say(0, A), say(0, B)]));
        assert_eq!(heard(&trace, Word::News), [(ms(1), A), (ms(1), C), (ms(1), C)]);
        assert_eq!(report.messages.lost, 1);
    }
    let healed = vec![cut(0), (ms(1), Input::Heal(A, B, Directions::One)), say(1, A)];
    assert_eq!(run(&plan(healed)).messages.lost, 0);
}

#[test]
fn a_partition_separates_sides_until_it_is_healed() {
    let split = (ms(0), Input::Partition(vec![vec![A, B]]));
    let (_, trace) = traced(&plan(vec![split.clone(), say(0, A), say(0, C)]));
    assert_eq!(heard(&trace, Word::News), [(ms(1), B)], "the rest is a side of its own");
    let healed = vec![split, (ms(1), Input::HealAll), say(1, C)];
    assert_eq!(run(&plan(healed)).messages.lost, 0);
}

#[test]
fn losses_and_repeats_come_at_the_rate_asked_for() {
    let inputs: Vec<_> = (0..1_000).map(|at| say(at, A)).collect();
    let network = Network { loss: 0.2, duplicate: 0.1, ..Network::default() };
    let report = run(&Plan { network, ..plan(inputs) });
    assert_eq!(report.messages.total, 2_000);
    assert!((330..470).contains(&report.messages.lost), "{}", report.messages.lost);
    assert!((110..210).contains(&report.messages.duplicated), "{}", report.messages.duplicated);
}

#[test]
fn one_link_can_have_rules_of_its_own() {
    let rule = LinkRule { delay: Some(Delay::Fixed(ms(5))), ..LinkRule::default() };
    let network = Network { links: [((A, B), rule)].into(), ..Network::default() };
    let (_, trace) = traced(&Plan { network, ..plan(vec![say(0, A)]) });
    assert_eq!(heard(&trace, Word::News), [(ms(1), C), (ms(5), B)]);
}

#[test]
fn a_run_ends_at_its_deadline_or_when_it_takes_too_many_steps() {
    let endless = vec![(ms(0), Input::Suspect(A, C))];
    let report = run(&Plan { until: Some(ms(20)), ..plan(endless.clone()) });
    assert_eq!((report.ending, report.time), (vez_core::Ending::Deadline, ms(20)));
    let report = run(&Plan { steps_max: 50, ..plan(endless) });
    assert_eq!(report.ending, vez_core::Ending::Limit);
}

#[test]
fn a_timer_that_was_disarmed_does_not_prolong_the_run() {
    let report = run(&plan(vec![(ms(0), Input::Suspect(A, B)), say(0, A)]));
    assert_eq!(report.time, ms(1), "asking anew disarms the timer, the news arrives");
}

#[test]
fn a_timer_that_runs_out_at_once_takes_its_turn() {
    let report = run(&plan(vec![(ms(4), Input::Suspect(B, B)), (ms(4), Input::Suspect(A, A))]));
    assert_eq!(report.ending, vez_core::Ending::Quiescent);
}

#[test]
fn hundreds_of_processes_boot_and_talk() {
    let topology = Topology::of(Layout::Complete, 300).unwrap();
    let plan = plan(vec![(ms(0), Input::Start(vez_sim::Who::All))]);
    let report = vez_sim::simulate::<Gossip>(&topology, &(), &plan);
    assert_eq!(report.messages.total, 300 * 299);
}

fn restart(at: u64, node: NodeId) -> (Time, Input) {
    (ms(at), Input::Restart(node, Forget::AsPlanned))
}
