//! The quorum of coordinators: what it costs, how it blocks, and what forgetting does to it.

mod common;

use common::{acquire, crash, entered, fair_run, ms, mutex, restart, run_with};
use vez_algorithms::mutex::Quorum;
use vez_algorithms::mutex::quorum::{Config, Order};
use vez_core::{Chance, Ending, Layout, NodeId, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Forget, Input, LinkRule, Network, Plan, Report, Who, simulate};

/// Coordinators 1 to `coordinators`, participants 101 and on.
fn system(coordinators: u32, participants: u32) -> Topology {
    let uids = (1..=coordinators).chain(101..=100 + participants).map(u64::from).collect();
    Topology::of(Layout::Complete, coordinators + participants).unwrap().with_uids(uids)
}

fn of(coordinators: u32, quorum: u32) -> Config {
    Config { coordinators: Some(coordinators), quorum: Some(quorum), ..Config::default() }
}

/// Messages from the first to the second process take so many milliseconds.
fn slow(topology: &Topology, links: &[(u64, u64, u64)]) -> Network {
    let node = |uid| topology.find(uid).unwrap();
    let rule = |delay| LinkRule { delay: Some(Delay::Fixed(ms(delay))), ..LinkRule::default() };
    let links = links.iter().map(|&(from, to, delay)| ((node(from), node(to)), rule(delay)));
    Network { links: links.collect(), ..Network::default() }
}

fn play(
    topology: &Topology,
    config: &Config,
    network: Network,
    inputs: Vec<(Time, Input)>,
) -> Report {
    assert_eq!(Quorum::validate(config, topology), Ok(()));
    simulate::<Quorum>(topology, config, &Plan { network, inputs, ..Plan::default() })
}

fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

/// Nobody blocked and nobody starved, and all that is claimed.
fn all_served(report: &Report) -> bool {
    report.claims_kept() && kept(report, Promise::NoDeadlock) && kept(report, Promise::NoStarvation)
}

fn by_kind(report: &Report) -> [u64; 3] {
    ["Request", "Ok", "Release"].map(|kind| report.messages.of(kind))
}

#[test]
fn an_entry_nobody_contends_costs_three_messages_a_coordinator() {
    for n in [1, 2, 3, 7, 16, 64] {
        for (quorum, hold) in [(n / 2 + 1, 2), (n, 2), (n / 2 + 1, 0)] {
            let topology = system(n, 1);
            let inputs = vec![acquire(&topology, 101, 0, hold)];
            let report = run_with::<Quorum>(&topology, &of(n, quorum), inputs);
            assert_eq!(by_kind(&report), [u64::from(n); 3], "n = {n}, m = {quorum}");
            assert_eq!(report.messages.total, 3 * u64::from(n));
            assert_eq!(mutex(&report).entries[0].entered, ms(2));
            assert!(all_served(&report));
        }
    }
}

#[test]
fn what_a_coordinator_says_to_itself_is_not_counted() {
    for n in [1, 2, 3, 7, 16, 64] {
        let topology = Topology::of(Layout::Complete, n).unwrap();
        let inputs = vec![acquire(&topology, u64::from(n), 0, 1)];
        let report = run_with::<Quorum>(&topology, &Config::default(), inputs);
        assert_eq!(report.messages.total, 3 * u64::from(n - 1));
        assert!(all_served(&report));
    }
}

#[test]
fn requests_of_one_moment_are_served_in_the_order_of_addresses() {
    for n in [1, 2, 3, 7, 16, 64] {
        for participants in [2, 5] {
            let topology = system(n, participants);
            let uids: Vec<u64> = (0..participants).map(|i| 101 + u64::from(i)).collect();
            let inputs = uids.iter().map(|&uid| acquire(&topology, uid, 0, 2)).collect();
            let report = run_with::<Quorum>(&topology, &of(n, n / 2 + 1), inputs);
            assert_eq!(entered(&topology, &report), uids);
            assert_eq!(by_kind(&report), [u64::from(n * participants); 3]);
            assert!(all_served(&report));
            // Hand-over: a release and a permission.
            let entries = &mutex(&report).entries;
            assert!(entries.windows(2).all(|two| two[1].entered == two[0].left.unwrap() + ms(2)));
        }
    }
}

#[test]
fn s05_a_release_frees_here_and_withdraws_there() {
    let topology = system(3, 2);
    let network = slow(&topology, &[(101, 3, 2)]);
    let inputs = vec![acquire(&topology, 101, 0, 2), acquire(&topology, 102, 0, 2)];
    let report = play(&topology, &of(3, 2), network, inputs);
    assert_eq!(entered(&topology, &report), [101, 102]);
    assert_eq!(by_kind(&report), [6, 5, 6]);
    assert_eq!(report.messages.total, 17);
    assert!(all_served(&report));
    let second = &mutex(&report).entries[1];
    assert_eq!(second.entered, ms(6), "with the third coordinator's permission and the first's");
}

/// The first participant is inside with the permission of the first two of three coordinators;
/// the third has permitted the second participant, whose request to the others is still on its
/// way. Then the second coordinator restarts.
fn s06(config: &Config) -> Report {
    let topology = system(3, 2);
    let network = slow(&topology, &[(101, 3, 4), (102, 1, 6), (102, 2, 6)]);
    let inputs = vec![
        acquire(&topology, 101, 0, 10),
        acquire(&topology, 102, 0, 2),
        restart(&topology, 2, 4),
    ];
    play(&topology, config, network, inputs)
}

#[test]
fn s06_a_coordinator_that_forgets_lets_two_in() {
    let report = s06(&of(3, 2));
    let verdict = report.verdict(Promise::MutualExclusion).unwrap();
    assert_eq!(verdict.broken_at, Some(ms(7)));
    assert_eq!(verdict.detail.as_deref(), Some("P102 entered while P101 was inside"));
}

#[test]
fn s06_a_coordinator_that_remembers_does_not() {
    let report = s06(&Config { durable: true, ..of(3, 2) });
    assert!(all_served(&report), "{:?}", report.promises);
    assert_eq!(mutex(&report).entries.len(), 2);
}

/// Seven coordinators; the first participant is inside with the first `quorum` of them, the second
/// has the rest, and its requests to the others come after these have restarted.
fn s07(quorum: u32, restarted: &[u64]) -> Report {
    let topology = system(7, 2);
    let late = (1..=7).map(|coordinator| {
        (if coordinator <= u64::from(quorum) { 102 } else { 101 }, coordinator, 6)
    });
    let network = slow(&topology, &late.collect::<Vec<_>>());
    let mut inputs = vec![acquire(&topology, 101, 0, 20), acquire(&topology, 102, 0, 2)];
    inputs.extend(restarted.iter().map(|&uid| restart(&topology, uid, 4)));
    play(&topology, &of(7, quorum), network, inputs)
}

#[test]
fn s07_of_seven_one_restart_breaks_four_and_three_break_five() {
    assert!(kept(&s07(4, &[]), Promise::MutualExclusion));
    assert!(!kept(&s07(4, &[4]), Promise::MutualExclusion));
    assert!(kept(&s07(5, &[4]), Promise::MutualExclusion));
    assert!(kept(&s07(5, &[4, 5]), Promise::MutualExclusion));
    assert!(!kept(&s07(5, &[3, 4, 5]), Promise::MutualExclusion));
}

/// Three participants, each the first at another of three coordinators.
fn s10(config: &Config, seed: u64) -> (Topology, Report) {
    let topology = system(3, 3);
    let links: Vec<_> = (1..=3)
        .flat_map(|c| (1..=3).map(move |p| (100 + p, c, if p == c { 1 } else { 2 })))
        .collect();
    let network = slow(&topology, &links);
    let inputs = (101..=103).map(|uid| acquire(&topology, uid, 0, 2)).collect();
    let plan = Plan { network, inputs, seed, ..Plan::default() };
    let report = simulate::<Quorum>(&topology, config, &plan);
    (topology, report)
}

#[test]
fn s10_with_a_permission_each_all_three_wait_for_ever() {
    let (_, report) = s10(&of(3, 2), 0);
    assert_eq!((report.ending, by_kind(&report)), (Ending::Quiescent, [9, 3, 0]));
    assert_eq!(mutex(&report).waiting.len(), 3);
    assert!(!kept(&report, Promise::NoDeadlock) && report.claims_kept());
}

#[test]
fn s10_giving_up_and_trying_again_at_random_gets_everyone_in() {
    let config = Config { retry_after: Some(ms(10)), ..of(3, 2) };
    let mut attempts = Vec::new();
    for seed in 0..200 {
        let (_, report) = s10(&config, seed);
        assert!(all_served(&report), "seed {seed}");
        assert_eq!(mutex(&report).entries.len(), 3);
        attempts.push(report.messages.of("Request") / 3);
    }
    assert!(attempts.iter().all(|&attempts| 3 + 3 <= attempts), "all three give up once");
    assert!(attempts.iter().any(|&attempts| 6 < attempts), "once is not always enough");
}

#[test]
fn s10_yielding_to_the_older_gets_everyone_in_without_giving_up() {
    let config = Config { order: Order::Timestamp, ..of(3, 2) };
    let (topology, report) = s10(&config, 0);
    assert!(all_served(&report));
    assert_eq!(entered(&topology, &report), [101, 102, 103], "equally old: by address");
    assert!(0 < report.messages.of("Inquire"));
    assert_eq!(report.messages.of("Relinquish"), report.messages.of("Inquire"));
}

#[test]
fn when_all_coordinate_and_all_ask_they_block_unless_the_younger_yield() {
    for n in [2, 3, 7, 16] {
        let topology = Topology::of(Layout::Complete, n).unwrap();
        let all = || vec![(Time::ZERO, Input::Acquire(Who::All, ms(1)))];
        let blocked = run_with::<Quorum>(&topology, &Config::default(), all());
        assert!(mutex(&blocked).entries.is_empty() && !kept(&blocked, Promise::NoDeadlock));
        let config = Config { order: Order::Timestamp, ..Config::default() };
        let report = run_with::<Quorum>(&topology, &config, all());
        assert!(all_served(&report));
        let everyone: Vec<u64> = (1..=u64::from(n)).collect();
        assert_eq!(entered(&topology, &report), everyone);
    }
}

#[test]
fn by_timestamp_who_was_let_in_long_ago_goes_before_who_was_just_inside() {
    let topology = system(1, 2);
    // The first is in again and again; the second asks later, but has never been inside.
    let mut inputs: Vec<_> = (0..3).map(|_| acquire(&topology, 101, 0, 5)).collect();
    inputs.push(acquire(&topology, 102, 8, 5));
    let by_age = Config { order: Order::Timestamp, ..of(1, 1) };
    let report = run_with::<Quorum>(&topology, &by_age, inputs);
    assert_eq!(entered(&topology, &report), [101, 101, 102, 101]);
}

#[test]
fn by_timestamp_age_counts_from_the_last_entry_one_has_heard_of() {
    let topology = system(1, 3);
    // One request each so far, the third's long ago. While the second is inside again, both others
    // ask: the first earlier, but it was inside later.
    let asked =
        [(103, 0, 1), (102, 10, 1), (101, 20, 1), (102, 30, 20), (101, 35, 1), (103, 40, 1)];
    let inputs = asked.map(|(uid, at, hold)| acquire(&topology, uid, at, hold)).to_vec();
    let by_age = Config { order: Order::Timestamp, ..of(1, 1) };
    let report = run_with::<Quorum>(&topology, &by_age, inputs);
    assert_eq!(entered(&topology, &report), [103, 102, 101, 102, 103, 101]);
}

#[test]
fn one_who_gives_up_is_out_of_every_queue() {
    let topology = system(3, 3);
    let give_up = |at| (ms(at), Input::Withdraw(topology.find(102).unwrap()));
    let asking = || (101..=103).map(|uid| acquire(&topology, uid, 0, 5)).collect::<Vec<_>>();
    // Waiting in all queues, then with all permissions on the way to it.
    for at in [3, 8] {
        let inputs = asking().into_iter().chain([give_up(at)]).collect();
        let report = run_with::<Quorum>(&topology, &of(3, 3), inputs);
        assert_eq!(entered(&topology, &report), [101, 103], "gave up at {at} ms");
        assert!(all_served(&report));
        assert_eq!(report.messages.of("Release"), 9);
    }
}

#[test]
fn one_who_gives_up_between_attempts_does_not_try_again() {
    let (topology, config) = (system(3, 2), Config { retry_after: Some(ms(4)), ..of(3, 2) });
    let asking = [acquire(&topology, 101, 0, 50), acquire(&topology, 102, 1, 5)];
    let give_up = (ms(6), Input::Withdraw(topology.find(102).unwrap()));
    for seed in 0..20 {
        let inputs = asking.iter().cloned().chain([give_up.clone()]).collect();
        let plan = Plan { inputs, seed, ..Plan::default() };
        let report = simulate::<Quorum>(&topology, &config, &plan);
        assert_eq!(entered(&topology, &report), [101]);
        assert!(all_served(&report), "seed {seed}");
    }
}

#[test]
fn every_attempt_has_a_number_of_its_own() {
    // The release of the first attempt is slow on its way to the coordinator; the second attempt's
    // request is not. Were they the same request, the coordinator would take it for a repeated one.
    let topology = system(1, 2);
    let config = Config { retry_after: Some(ms(3)), answer_late: true, ..of(1, 1) };
    let delay = Delay::Uniform(ms(1), ms(6));
    let inputs = vec![acquire(&topology, 101, 0, 20), acquire(&topology, 102, 1, 2)];
    for seed in 0..200 {
        let network = Network { delay, fifo: false, ..Network::default() };
        let plan = Plan { network, inputs: inputs.clone(), seed, ..Plan::default() };
        let report = simulate::<Quorum>(&topology, &config, &plan);
        assert!(all_served(&report), "seed {seed}: {:?}", report.promises);
    }
}

/// Two participants that keep changing their minds, on a network that does not keep the order.
fn fickle(seed: u64, config: &Config) -> Report {
    let topology = system(1, 2);
    let mut chance = Seeded(seed);
    let mut inputs = Vec::new();
    for uid in [101, 102] {
        for round in 0..4 {
            inputs.push(acquire(&topology, uid, 30 * round, 2));
            let at = ms(30 * round + u64::from(chance.below(5)));
            inputs.push((at, Input::Withdraw(topology.find(uid).unwrap())));
        }
        inputs.push(acquire(&topology, uid, 200, 2));
    }
    let network =
        Network { delay: Delay::Uniform(ms(1), ms(9)), fifo: false, ..Network::default() };
    simulate::<Quorum>(&topology, config, &Plan { network, inputs, seed, ..Plan::default() })
}

#[test]
fn where_messages_overtake_a_late_permission_must_be_answered() {
    let stuck = (0..200).filter(|&seed| !all_served(&fickle(seed, &of(1, 1)))).count();
    assert!(0 < stuck, "a release overtakes its request, and the coordinator waits for ever");
    let answering = Config { answer_late: true, ..of(1, 1) };
    for seed in 0..200 {
        assert!(all_served(&fickle(seed, &answering)), "seed {seed}");
    }
}

/// A run as the algorithm likes it, but nobody crashes.
fn untroubled(seed: u64) -> (Topology, Plan) {
    let (topology, mut plan) = fair_run::<Quorum>(seed);
    plan.inputs.retain(|(_, input)| matches!(input, Input::Acquire(..)));
    (topology, plan)
}

#[test]
fn by_timestamp_everyone_gets_in_on_many_seeds() {
    let config = Config { order: Order::Timestamp, ..Config::default() };
    let (mut inquired, mut fences) = (0, 0);
    for seed in 0..300 {
        let (topology, plan) = untroubled(seed);
        let report = simulate::<Quorum>(&topology, &config, &plan);
        assert!(all_served(&report), "seed {seed}: {:?}\n{plan:?}", report.promises);
        assert_eq!(report.unexpected, 0);
        inquired += report.messages.of("Inquire");
        assert!(mutex(&report).entries.is_sorted_by(|a, b| a.fence < b.fence));
        fences += mutex(&report).entries.len();
    }
    assert!(300 < inquired && 300 < fences, "{inquired} {fences}");
}

#[test]
fn with_retries_everyone_gets_in_on_many_seeds() {
    let config = Config { retry_after: Some(ms(100)), ..Config::default() };
    let mut attempts_given_up = 0;
    for seed in 0..200 {
        let (topology, plan) = untroubled(seed);
        let report = simulate::<Quorum>(&topology, &config, &plan);
        assert!(all_served(&report), "seed {seed}: {:?}\n{plan:?}", report.promises);
        attempts_given_up += report.messages.of("Release");
    }
    assert!(0 < attempts_given_up);
}

#[test]
fn no_loss_repetition_or_disorder_lets_two_in() {
    for seed in 0..200 {
        let (topology, mut plan) = untroubled(seed);
        plan.network.fifo = false;
        (plan.network.loss, plan.network.duplicate) = (0.1, 0.2);
        for retry_after in [None, Some(ms(30))] {
            plan.until = Some(ms(2_000));
            let config = Config { retry_after, answer_late: true, ..Config::default() };
            let report = simulate::<Quorum>(&topology, &config, &plan);
            assert!(kept(&report, Promise::MutualExclusion), "seed {seed}\n{plan:?}");
        }
    }
}

#[test]
fn coordinators_that_remember_keep_two_out_however_often_they_restart() {
    let restless = |seed, durable| {
        let topology = system(3, 3);
        let mut chance = Seeded(seed);
        let mut moment = |millis: u32| Time::from_micros(u64::from(chance.below(1_000 * millis)));
        let mut inputs: Vec<_> = (3..6)
            .flat_map(|index| [NodeId(index); 3])
            .map(|node| (moment(60), Input::Acquire(Who::One(node), moment(9))))
            .collect();
        for index in [0, 1, 2, 0, 1, 2] {
            inputs.push((moment(80), Input::Restart(NodeId(index), Forget::AsPlanned)));
        }
        let config = Config { durable, retry_after: Some(ms(20)), ..of(3, 2) };
        let plan = Plan { inputs, seed, ..Plan::default() };
        simulate::<Quorum>(&topology, &config, &plan)
    };
    let mut violations = 0;
    for seed in 0..200 {
        let report = restless(seed, true);
        assert!(all_served(&report), "seed {seed}: {:?}", report.promises);
        violations += usize::from(!kept(&restless(seed, false), Promise::MutualExclusion));
    }
    assert!(0 < violations, "the runs must be able to hurt");
}

#[test]
fn a_coordinator_that_remembers_says_again_what_may_not_have_left() {
    let topology = system(1, 2);
    let config = Config { durable: true, ..of(1, 1) };
    // It decides, saves, and crashes before the permission leaves.
    let inputs = vec![
        (Time::ZERO, Input::CrashUnsent(NodeId(0))),
        acquire(&topology, 101, 0, 2),
        restart(&topology, 1, 5),
    ];
    let report = run_with::<Quorum>(&topology, &config, inputs);
    assert_eq!(mutex(&report).entries[0].entered, ms(6));
    // It is down when the release comes: it learns of it by asking again.
    let inputs = vec![
        acquire(&topology, 101, 0, 3),
        acquire(&topology, 102, 0, 3),
        crash(&topology, 1, 4),
        restart(&topology, 1, 10),
    ];
    let report = run_with::<Quorum>(&topology, &config, inputs);
    assert!(all_served(&report));
    assert_eq!(mutex(&report).entries[1].entered, ms(13));
}

#[test]
fn s12_a_participant_that_dies_inside_starves_the_others() {
    let topology = system(3, 2);
    let inputs = vec![
        acquire(&topology, 101, 0, 5),
        acquire(&topology, 102, 1, 5),
        crash(&topology, 101, 3),
    ];
    let report = run_with::<Quorum>(&topology, &of(3, 2), inputs);
    assert!(report.claims_kept() && !kept(&report, Promise::NoDeadlock));
}

#[test]
fn a_minority_of_crashed_coordinators_is_not_missed() {
    let topology = system(5, 2);
    let dead = |count| {
        let crashes = (1..=count).map(|uid| crash(&topology, uid, 0));
        let asking = [acquire(&topology, 101, 0, 5), acquire(&topology, 102, 0, 5)];
        run_with::<Quorum>(&topology, &of(5, 3), crashes.chain(asking).collect())
    };
    assert!(all_served(&dead(2)));
    assert!(!kept(&dead(3), Promise::NoDeadlock));
}

#[test]
fn senseless_settings_are_refused() {
    let topology = system(4, 1);
    let refused = |config: &Config| Quorum::validate(config, &topology).unwrap_err();
    assert_eq!(refused(&of(4, 2)), "quorum: expected more than half of 4 coordinators, found 2");
    assert_eq!(refused(&of(3, 1)), "quorum: expected more than half of 3 coordinators, found 1");
    assert_eq!(refused(&of(3, 4)), "quorum: expected at most 3 coordinators, found 4");
    assert_eq!(refused(&of(6, 4)), "coordinators: expected 1 to 5 processes, found 6");
    assert_eq!(refused(&of(0, 1)), "coordinators: expected 1 to 5 processes, found 0");
    let config = Config { retry_after: Some(Time::ZERO), ..of(3, 2) };
    assert_eq!(refused(&config), "retry_after: expected more than 0");
    assert_eq!(Quorum::validate(&Config::default(), &topology), Ok(()));
    assert_eq!(Quorum::validate(&of(3, 3), &topology), Ok(()));
}

#[test]
fn settings_read_as_people_write_them() {
    let text = r#"{ "coordinators": 3, "quorum": 2, "retry_after": "10ms", "order": "timestamp" }"#;
    let config: Config = serde_json::from_str(text).unwrap();
    assert_eq!((config.retry_after, config.order), (Some(ms(10)), Order::Timestamp));
    assert_eq!((config.coordinators, config.quorum), (Some(3), Some(2)));
}
