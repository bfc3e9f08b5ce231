//! What the tests of this crate share: runs that grant an algorithm exactly what it assumes, and
//! short ways to write a run by hand.

#![allow(dead_code, reason = "each test binary uses its own part")]

use vez_core::problem::Account;
use vez_core::problem::election::ElectionTally;
use vez_core::problem::mutex::MutexTally;
use vez_core::{
    Chance, Channel, Crashes, Layout, NodeId, Problem, Protocol, Seeded, Shape, Time, Timing,
    Topology, Wish,
};
use vez_sim::{Delay, Forget, Input, Network, Plan, Report, Trace, Who, simulate, watch};

pub(crate) fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A system as its algorithm likes it, with uids `1..=n`.
pub(crate) fn system<P: Protocol>(n: u32) -> Topology {
    Topology::of(P::META.layout, n).unwrap()
}

/// Runs `inputs` under the reference schedule with the default settings.
pub(crate) fn run<P: Protocol>(topology: &Topology, inputs: Vec<(Time, Input)>) -> Report {
    run_with::<P>(topology, &P::Config::default(), inputs)
}

pub(crate) fn run_with<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    inputs: Vec<(Time, Input)>,
) -> Report {
    simulate::<P>(topology, config, &Plan { inputs, ..Plan::default() })
}

/// `uid` asks at `at` milliseconds and stays `hold` milliseconds.
pub(crate) fn acquire(topology: &Topology, uid: u64, at: u64, hold: u64) -> (Time, Input) {
    (ms(at), Input::Acquire(Who::One(topology.find(uid).unwrap()), ms(hold)))
}

pub(crate) fn start(topology: &Topology, uid: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Start(Who::One(topology.find(uid).unwrap())))
}

pub(crate) fn crash(topology: &Topology, uid: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Crash(topology.find(uid).unwrap()))
}

pub(crate) fn restart(topology: &Topology, uid: u64, at: u64) -> (Time, Input) {
    (ms(at), Input::Restart(topology.find(uid).unwrap(), Forget::AsPlanned))
}

pub(crate) fn mutex(report: &Report) -> &MutexTally {
    let Account::Mutex(tally) = &report.account else { panic!("not a mutual exclusion") };
    tally
}

pub(crate) fn election(report: &Report) -> &ElectionTally {
    let Account::Election(tally) = &report.account else { panic!("not an election") };
    tally
}

/// The uids that entered, in order.
pub(crate) fn entered(topology: &Topology, report: &Report) -> Vec<u64> {
    mutex(report).entries.iter().map(|entry| topology.uid(entry.node)).collect()
}

/// The uid every live process follows.
pub(crate) fn leader(topology: &Topology, report: &Report) -> Option<u64> {
    election(report).leader().map(|node| topology.uid(node))
}

/// Ids in an order drawn from a seed.
pub(crate) fn shuffled(n: u32, seed: u64) -> Vec<u64> {
    let mut ids: Vec<u64> = (1..=u64::from(n)).collect();
    let mut chance = Seeded(seed);
    for i in (1..ids.len()).rev() {
        ids.swap(i, chance.below(i as u32 + 1) as usize);
    }
    ids
}

/// A random run that grants an algorithm exactly what its `META` assumes, and nothing more.
pub(crate) fn fair_run<P: Protocol>(seed: u64) -> (Topology, Plan) {
    let mut chance = Seeded::stream(seed, 99);
    let n = 1 + chance.below(7);
    let topology = random_system::<P>(n, seed, &mut chance);
    let network = fair_network::<P>(&mut chance);
    let mut inputs = Vec::new();
    for node in topology.ids() {
        if P::Problem::request(Wish::Acquire).is_some() {
            for _ in 0..chance.below(4) {
                let (at, hold) = (wish::<P>(&mut chance, 40), moment(&mut chance, 6));
                inputs.push((at, Input::Acquire(Who::One(node), hold)));
            }
        } else if chance.below(2) == 0 {
            inputs.push((wish::<P>(&mut chance, 20), Input::Start(Who::One(node))));
        }
    }
    if inputs.is_empty() && P::Problem::request(Wish::Start).is_some() {
        inputs.push((Time::ZERO, Input::Start(Who::One(NodeId(chance.below(n))))));
    }
    if P::META.crashes != Crashes::None && n > 1 {
        add_crashes::<P>(&topology, &mut chance, &mut inputs);
    }
    let drift = if P::META.timing == Timing::Asynchronous { 0.1 } else { 0.0 };
    (topology, Plan { seed, network, inputs, drift, ..Plan::default() })
}

fn moment(chance: &mut Seeded, millis: u32) -> Time {
    Time::from_micros(u64::from(chance.below(millis * 1_000)))
}

/// When a user asks: where there are crashes, around one, so that it strikes who waits or is
/// inside.
fn wish<P: Protocol>(chance: &mut Seeded, millis: u32) -> Time {
    if P::META.crashes == Crashes::None {
        return moment(chance, millis);
    }
    let round = ms(100 * u64::from(chance.below(4)));
    (round + moment(chance, 30)).saturating_sub(ms(20))
}

fn random_system<P: Protocol>(n: u32, seed: u64, chance: &mut Seeded) -> Topology {
    let shape = match (P::META.layout, chance.below(4)) {
        (Layout::Connected, 0) => Shape::Random(0.3),
        (Layout::Connected, 1) => Shape::Grid,
        (Layout::Connected | Layout::Tree, 2) => Shape::Line,
        _ => Topology::of(P::META.layout, n).unwrap().shape().clone(),
    };
    Topology::new(shape, n, seed).unwrap().with_uids(shuffled(n, seed))
}

/// As bad as the algorithm's channel may be; where it is synchronous, no slower than the
/// reference schedule that its default timeouts are made for.
fn fair_network<P: Protocol>(chance: &mut Seeded) -> Network {
    let low = Time::from_micros(u64::from(1 + chance.below(500)));
    let high = match P::META.timing {
        Timing::Synchronous => ms(1),
        Timing::Asynchronous => ms(u64::from(1 + chance.below(20))),
    };
    let delay = Delay::Uniform(low, high);
    let fifo = P::META.channel == Channel::Fifo;
    let faulty = if P::META.channel == Channel::Lossy { 0.1 } else { 0.0 };
    Network { delay, fifo, loss: faulty, duplicate: faulty, ..Network::default() }
}

/// Crashes far enough apart for a synchronous algorithm to notice; every survivor's detector
/// speaks up, and so does the user of one that comes back.
fn add_crashes<P: Protocol>(
    topology: &Topology,
    chance: &mut Seeded,
    inputs: &mut Vec<(Time, Input)>,
) {
    let mut down = Vec::new();
    for round in 1..=chance.below(4) {
        let at = ms(100 * u64::from(round));
        let node = NodeId(chance.below(topology.n()));
        if let Some(index) = down.iter().position(|&other| other == node) {
            if P::META.crashes == Crashes::Recover {
                down.swap_remove(index);
                // Bully asks that nobody comes back in the middle of an election.
                let is_election = P::Problem::request(Wish::Start).is_some();
                let back = if is_election { at + ms(50) } else { at };
                inputs.push((back, Input::Restart(node, Forget::AsPlanned)));
            }
            continue;
        }
        if down.len() + 1 == topology.n() as usize {
            continue;
        }
        down.push(node);
        inputs.push((at, Input::Crash(node)));
        if P::Problem::request(Wish::Suspect(node)).is_some() {
            for other in topology.ids().filter(|other| !down.contains(other)) {
                inputs.push((at + ms(10) + moment(chance, 20), Input::Suspect(other, node)));
            }
        }
    }
}

/// The trace of a run as lines of JSON, and its report.
pub(crate) fn traced<P: Protocol>(topology: &Topology, plan: &Plan) -> (Report, Vec<String>) {
    let (report, trace) = watch::<P, _>(topology, &P::Config::default(), plan, Trace::default());
    let lines = trace.events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    (report, lines)
}
