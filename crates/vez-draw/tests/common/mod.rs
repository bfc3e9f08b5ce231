//! The runs the pictures are tested with, and shown with.

#![allow(dead_code, reason = "each test binary uses its own part")]

use vez_algorithms::election::{Bully, ChangRoberts};
use vez_algorithms::mutex::{Coordinator, coordinator};
use vez_core::{NodeId, Protocol, Time, Topology};
use vez_draw::Run;
use vez_sim::{
    Delay, Directions, Forget, Input, Network, Plan, Report, Trace, TraceEvent, What, Who, watch,
};

/// A run that owns what it is made of.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    title: &'static str,
    subtitle: String,
    pub(crate) topology: Topology,
    pub(crate) report: Report,
    pub(crate) events: Vec<TraceEvent>,
}

impl Made {
    pub(crate) fn run(&self) -> Run<'_> {
        let Self { title, subtitle, topology, report, events, .. } = self;
        Run { title, subtitle, topology, report, events }
    }
}

pub(crate) fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn make<P: Protocol>(name: &'static str, n: u32, plan: &Plan) -> Made {
    make_with::<P>(name, n, &P::Config::default(), plan)
}

fn make_with<P: Protocol>(name: &'static str, n: u32, config: &P::Config, plan: &Plan) -> Made {
    let topology = Topology::of(P::META.layout, n).unwrap();
    let (report, trace) = watch::<P, _>(&topology, config, plan, Trace::default());
    let subtitle = format!("{n} processes, seed {}", plan.seed);
    Made { name, title: P::META.title, subtitle, topology, report, events: trace.events }
}

fn plan(inputs: Vec<(Time, Input)>) -> Plan {
    Plan { inputs, ..Plan::default() }
}

fn one(uid: u32) -> Who {
    Who::One(NodeId(uid - 1))
}

fn node(uid: u32) -> NodeId {
    NodeId(uid - 1)
}

/// One initiator on a ring of eight.
pub(crate) fn ring_of_eight() -> Made {
    make::<ChangRoberts>("ring-of-eight", 8, &plan(vec![(ms(0), Input::Start(one(3)))]))
}

/// The highest of seven is down, and the fourth notices.
pub(crate) fn top_crashed() -> Made {
    let crash = (ms(0), Input::Crash(node(7)));
    let suspect = (ms(0), Input::Suspect(node(4), node(7)));
    make::<Bully>("top-crashed", 7, &plan(vec![crash, suspect]))
}

/// A coordinator, and two others that want in at once.
pub(crate) fn three_take_turns() -> Made {
    let asks = |uid, at, hold| (ms(at), Input::Acquire(one(uid), ms(hold)));
    let inputs = vec![asks(2, 0, 3), asks(3, 0, 2), asks(1, 4, 2)];
    make::<Coordinator>("three-take-turns", 3, &plan(inputs))
}

/// A holder that is slow outlives its lease: two are inside at once.
pub(crate) fn lease_outlived() -> Made {
    let config = coordinator::Config { lease: Some(ms(10)), ..Default::default() };
    let inputs = vec![
        (ms(0), Input::Acquire(one(2), ms(4))),
        (ms(1), Input::Acquire(one(3), ms(6))),
        (ms(3), Input::Pause(node(2), ms(17))),
        (ms(2), Input::Acquire(one(4), ms(3))),
    ];
    make_with::<Coordinator>("lease-outlived", 4, &config, &plan(inputs))
}

/// Two sides of a split each choose a leader; later the network is whole and all is well again.
pub(crate) fn split_brain() -> Made {
    let sides = [(1..=3).map(node).collect(), (4..=6).map(node).collect()];
    let inputs = vec![
        (ms(0), Input::Start(one(1))),
        (ms(15), Input::Partition(sides.to_vec())),
        (ms(16), Input::Suspect(node(1), node(6))),
        (ms(40), Input::HealAll),
        (ms(41), Input::Start(one(2))),
        (ms(60), Input::Cut(node(1), node(6), Directions::Both)),
        (ms(61), Input::Start(one(1))),
        (ms(90), Input::Heal(node(1), node(6), Directions::Both)),
    ];
    make::<Bully>("split-brain", 6, &plan(inputs))
}

/// Messages are lost, repeated, and take their time.
pub(crate) fn lossy() -> Made {
    let delay = Delay::Uniform(ms(1), ms(5));
    let network = Network { delay, loss: 0.15, duplicate: 0.15, ..Network::default() };
    let inputs = vec![
        (ms(0), Input::Start(one(2))),
        (ms(30), Input::Crash(node(5))),
        (ms(32), Input::Suspect(node(1), node(5))),
        (ms(70), Input::Restart(node(5), Forget::Everything)),
    ];
    make::<Bully>("lossy", 5, &Plan { seed: 4, network, inputs, ..Plan::default() })
}

/// Five idle seconds in the middle.
pub(crate) fn long_idle() -> Made {
    let asks = |uid, at, hold| (ms(at), Input::Acquire(one(uid), ms(hold)));
    let inputs = vec![asks(2, 0, 2), asks(3, 5_003, 2)];
    make::<Coordinator>("long-idle", 3, &plan(inputs))
}

/// Thirty processes start at once: each asks all above it.
pub(crate) fn thirty_bullies() -> Made {
    make::<Bully>("thirty-bullies", 30, &plan(vec![(ms(0), Input::Start(Who::All))]))
}

pub(crate) fn ring_of_thirty() -> Made {
    make::<ChangRoberts>("ring-of-thirty", 30, &plan(vec![(ms(0), Input::Start(Who::All))]))
}

/// A long queue at one coordinator, with at least this many events.
pub(crate) fn long_run(events: usize) -> Made {
    let mut inputs = Vec::new();
    for round in 0..events as u64 / 120 {
        inputs.extend((2..=10).map(|uid| (ms(round * 50), Input::Acquire(one(uid), ms(1)))));
    }
    let made = make::<Coordinator>("long-run", 10, &plan(inputs));
    assert!(events <= made.events.len(), "{} events", made.events.len());
    made
}

/// Three that take turns, with messages, states and titles that mean something to every format.
pub(crate) fn nasty() -> Made {
    let mut made = three_take_turns();
    (made.name, made.title) = ("nasty", NASTY);
    NASTY.clone_into(&mut made.subtitle);
    for event in &mut made.events {
        match &mut event.what {
            What::Send { text, .. } | What::Receive { text, .. } => text.push_str(NASTY),
            What::State { changed, .. } if !changed.is_empty() => changed.push(NASTY.to_owned()),
            _ => (),
        }
    }
    let detail = NASTY.to_owned();
    let what = What::Violation { promise: "mutual-exclusion", detail };
    made.events.push(TraceEvent { at: ms(12), node: None, what });
    made
}

pub(crate) const NASTY: &str =
    "end; #1: <b>&amp;</b> %%{init}%% $$x$$ \"q\" 'q' `t` \\ -->> </script></style> \u{1}\nend";

pub(crate) fn gallery() -> Vec<Made> {
    vec![
        ring_of_eight(),
        top_crashed(),
        three_take_turns(),
        lease_outlived(),
        split_brain(),
        lossy(),
        long_idle(),
        thirty_bullies(),
        ring_of_thirty(),
        nasty(),
    ]
}
