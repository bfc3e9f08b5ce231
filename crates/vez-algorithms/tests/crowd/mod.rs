//! Crowds at the door: many processes that ask again and again, over a network of very different
//! delays.

#![allow(dead_code, reason = "each test binary uses its own part")]

use vez_core::{Chance, Channel, Mutex, Promise, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Input, Network, Plan, Report, Who, simulate};

use crate::common::{ms, system};

/// `n` processes that all ask again and again, over a network of very different delays.
pub(crate) fn crowd<P: Protocol<Problem = Mutex>>(
    n: u32,
    seed: u64,
    fifo: bool,
) -> (Topology, Plan) {
    let mut chance = Seeded::stream(seed, 7);
    let topology = system::<P>(n);
    let mut inputs = Vec::new();
    for node in topology.ids() {
        for _ in 0..3 {
            let at = Time::from_micros(u64::from(chance.below(20_000)));
            let hold = Time::from_micros(u64::from(chance.below(1_000)));
            inputs.push((at, Input::Acquire(Who::One(node), hold)));
        }
    }
    let delay = Delay::Uniform(Time::from_micros(100), ms(10));
    let network = Network { delay, fifo, ..Network::default() };
    (topology, Plan { seed, network, inputs, ..Plan::default() })
}

pub(crate) fn crowded<P: Protocol<Problem = Mutex>>(
    config: &P::Config,
    n: u32,
    seed: u64,
) -> Report {
    let (topology, plan) = crowd::<P>(n, seed, P::META.channel == Channel::Fifo);
    simulate::<P>(&topology, config, &plan)
}

pub(crate) fn kept(report: &Report, promise: Promise) -> bool {
    report.verdict(promise).unwrap().kept
}

pub(crate) fn assert_sound<P: Protocol<Problem = Mutex>>(report: &Report, seed: u64) {
    let name = P::META.name;
    assert!(report.claims_kept(), "{name}, seed {seed}: {:?}", report.promises);
    assert_eq!(report.unexpected_first, None, "{name}, seed {seed}");
}
