//! What each assumption is for: take it away, and the checker finds the harm, the shortest way
//! there, and a run of the simulator that does the same.

use vez_algorithms::election::chang_roberts::{self, Variant};
use vez_algorithms::election::{Bully, ChangRoberts, bully};
use vez_algorithms::mutex::{Coordinator, coordinator};
use vez_check::{Act, Counterexample, Hooks, Options, Replay, check};
use vez_core::{NodeId, Promise, Protocol, Time, Timing, Topology};
use vez_sim::{Delay, Forget, Input, Network, Plan, Who, simulate};

/// The counterexample, after the simulator has confirmed it.
fn harm<P: Protocol>(n: u32, config: &P::Config, options: &Options) -> Counterexample {
    let topology = Topology::of(P::META.layout, n).unwrap();
    let outcome = check::<P>(&topology, config, options, &Hooks::default()).unwrap();
    let found = outcome.counterexample.unwrap_or_else(|| {
        panic!("{:?} {:?} {}", outcome.promises, outcome.stopped, outcome.states)
    });
    let plan = plan_of(&topology, &found.replay);
    let report = simulate::<P>(&topology, config, &plan);
    let verdict = report.verdict(found.promise).unwrap();
    assert!(!verdict.kept, "the simulator keeps {:?}: {found:#?}\n{plan:#?}", found.promise);
    found
}

fn texts(found: &Counterexample) -> Vec<&str> {
    found.steps.iter().map(|step| step.text.as_str()).collect()
}

fn plan_of(topology: &Topology, replay: &Replay) -> Plan {
    let input = |act: &Act| match *act {
        Act::Start(node) => Input::Start(Who::One(node)),
        Act::Suspect(node, of) => Input::Suspect(node, of),
        Act::Acquire(node, hold) => Input::Acquire(Who::One(node), hold),
        Act::Withdraw(node) => Input::Withdraw(node),
        Act::Crash(node) => Input::Crash(node),
        Act::CrashUnsent(node) => Input::CrashUnsent(node),
        Act::Restart { node, forget: true } => Input::Restart(node, Forget::Everything),
        Act::Restart { node, forget: false } => Input::Restart(node, Forget::AsPlanned),
        Act::Split { side } => {
            let is_far = |node: &NodeId| side >> node.0 & 1 == 1;
            let (far, near) = topology.ids().partition(is_far);
            Input::Partition(vec![far, near])
        }
        Act::Heal => Input::HealAll,
    };
    let delay = Delay::Fixed(Time::from_secs(3600));
    Plan {
        network: Network { delay, ..Network::default() },
        inputs: replay.inputs.iter().map(|(at, act)| (*at, input(act))).collect(),
        messages: replay.messages.iter().cloned().collect(),
        timers: replay.timers.iter().copied().collect(),
        choices: replay.choices.clone(),
        until: replay.until,
        ..Plan::default()
    }
}

#[test]
fn drop_only_chang_roberts_stalls_unless_the_largest_starts() {
    let config = chang_roberts::Config { variant: Variant::DropOnly, ..Default::default() };
    let found = harm::<ChangRoberts>(3, &config, &Options::new(&ChangRoberts::META));
    assert_eq!(found.promise, Promise::Termination);
    assert_eq!((found.steps.len(), texts(&found)[0]), (2, "P1 asks: Start"));
}

#[test]
fn chang_roberts_needs_every_message() {
    let options = Options { losses: 1, ..Options::new(&ChangRoberts::META) };
    let found = harm::<ChangRoberts>(3, &chang_roberts::Config::default(), &options);
    assert_eq!((found.promise, found.steps.len()), (Promise::Termination, 2));
}

#[test]
fn coordinator_lets_two_in_once_it_stops_waiting_for_a_slow_holder() {
    let lease = Some(Time::from_millis(5));
    let config = coordinator::Config { lease, ..coordinator::Config::default() };
    let options = Options::new(&Coordinator::META);
    let found = harm::<Coordinator>(2, &config, &options);
    assert_eq!(found.promise, Promise::MutualExclusion);
    assert_eq!(found.detail, "P2 entered while P1 was inside");
    assert_eq!((found.steps.len(), texts(&found)[1]), (5, "P1: Lease runs out"));
    // The resource is safe all the same: the fence is what protects it.
    let topology = Topology::of(Coordinator::META.layout, 3).unwrap();
    let options = Options { promises: vec![Promise::Fencing], entries: 2, ..options };
    let outcome = check::<Coordinator>(&topology, &config, &options, &Hooks::default()).unwrap();
    assert!(outcome.complete && outcome.kept());
}

#[test]
fn coordinator_stops_with_its_first_process() {
    let options = Options { crashes: 1, ..Options::new(&Coordinator::META) };
    let found = harm::<Coordinator>(3, &coordinator::Config::default(), &options);
    assert_eq!(found.promise, Promise::NoDeadlock);
    let steps =
        ["P1 crashes", "P2 asks: Acquire", "P1 is down and misses Request { request: 1 } of P2"];
    assert_eq!(texts(&found), steps);
}

#[test]
fn coordinator_needs_every_message() {
    let options = Options { losses: 1, ..Options::new(&Coordinator::META) };
    let found = harm::<Coordinator>(3, &coordinator::Config::default(), &options);
    assert_eq!((found.promise, found.steps.len()), (Promise::NoDeadlock, 2));
}

#[test]
fn bully_has_two_leaders_when_timeouts_lie() {
    let timing = Timing::Asynchronous;
    let options = Options { timing, crashes: 0, ..Options::new(&Bully::META) };
    let found = harm::<Bully>(3, &bully::Config::default(), &options);
    assert_eq!(found.promise, Promise::Uniqueness);
    let steps = [
        "P1 asks: Start",
        "P1: Answer runs out; told Leader { id: n0, term: 0 }",
        "P3 asks: Start; told Leader { id: n2, term: 0 }",
    ];
    assert_eq!(texts(&found), steps);
}

#[test]
fn bully_leaves_some_behind_when_a_message_is_lost_or_the_network_falls_apart() {
    let options = Options { crashes: 0, ..Options::new(&Bully::META) };
    let lossy = Options { losses: 1, ..options.clone() };
    let found = harm::<Bully>(3, &bully::Config::default(), &lossy);
    assert_eq!((found.promise, found.steps.len()), (Promise::Agreement, 3));
    let split = Options { partitions: 1, ..options };
    let found = harm::<Bully>(3, &bully::Config::default(), &split);
    assert_eq!((found.promise, found.steps.len()), (Promise::Agreement, 3));
}
