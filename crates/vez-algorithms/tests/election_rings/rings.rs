//! Rings to try, who starts on them, and what they must cost by arithmetic alone.

use vez_core::{Ending, Layout, NodeId, Protocol, Seeded, Time, Topology};
use vez_sim::{Delay, Input, Network, Plan, Report, Who, simulate};

use super::common::{election, leader, ms, shuffled};

pub(crate) const SIZES: [u32; 7] = [1, 2, 3, 5, 8, 16, 64];

pub(crate) fn ring(uids: &[u64]) -> Topology {
    Topology::of(Layout::Ring, uids.len() as u32).unwrap().with_uids(uids.to_vec())
}

/// Uids in ring order: ascending, descending, bit-reversed and random.
pub(crate) fn arrangements(n: u32) -> Vec<Vec<u64>> {
    let ascending: Vec<u64> = (1..=u64::from(n)).collect();
    let descending = ascending.iter().rev().copied().collect();
    let mut reversed = ascending.clone();
    reversed.sort_by_key(|&uid| (uid - 1).reverse_bits());
    vec![ascending, descending, reversed, shuffled(n, 1), shuffled(n, 2), shuffled(n, 3)]
}

/// Sets of initiators, by address: single ones, some, all.
pub(crate) fn initiators(n: u32) -> Vec<Vec<u32>> {
    let mut sets: Vec<Vec<u32>> = vec![vec![0], vec![n / 2], vec![n - 1]];
    sets.push((0..n).filter(|i| i % 3 == 1 || n < 3).collect());
    sets.push((0..n).filter(|i| i % 5 < 2).collect());
    sets.push((0..n).collect());
    sets
}

/// Everyone in `nodes` starts at once.
pub(crate) fn at_once(nodes: &[u32]) -> Vec<(Time, Input)> {
    nodes.iter().map(|&node| (ms(0), Input::Start(Who::One(NodeId(node))))).collect()
}

/// Most reactions any of these runs may need: one that never ends is cut short, and fails.
const STEPS_MAX: u64 = 50_000;

/// Runs `inputs` under the reference schedule to its end.
pub(crate) fn run<P: Protocol>(topology: &Topology, inputs: Vec<(Time, Input)>) -> Report {
    run_with::<P>(topology, &P::Config::default(), inputs)
}

pub(crate) fn run_with<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    inputs: Vec<(Time, Input)>,
) -> Report {
    let plan = Plan { inputs, steps_max: STEPS_MAX, ..Plan::default() };
    let report = simulate::<P>(topology, config, &plan);
    assert_eq!(report.ending, Ending::Quiescent, "it never ends");
    report
}

/// Every ring of every size with every set of initiators.
pub(crate) fn everywhere(mut check: impl FnMut(&[u64], &[u32])) {
    for n in SIZES {
        for uids in arrangements(n) {
            for starters in initiators(n) {
                check(&uids, &starters);
            }
        }
    }
}

/// A run in which messages take anything up to 20 ms and the initiators start anywhere in the
/// first 20 ms.
pub(crate) fn hectic<P: Protocol>(
    uids: &[u64],
    starters: &[u32],
    fifo: bool,
    seed: u64,
) -> (Topology, Report) {
    let topology = ring(uids);
    let mut chance = Seeded::stream(seed, 7);
    let start = |&node: &u32| {
        let at = Time::from_micros(chance.below_u64(20_000));
        (at, Input::Start(Who::One(NodeId(node))))
    };
    let inputs = starters.iter().map(start).collect();
    let delay = Delay::Uniform(Time::from_micros(1), ms(20));
    let network = Network { delay, fifo, ..Network::default() };
    let plan = Plan { seed, network, inputs, steps_max: STEPS_MAX, ..Plan::default() };
    let report = simulate::<P>(&topology, &P::Config::default(), &plan);
    (topology, report)
}

/// Everyone follows `uid`, every promise was kept, and nothing impossible happened.
pub(crate) fn assert_elected(topology: &Topology, report: &Report, uid: u64) {
    assert_eq!(leader(topology, report), Some(uid), "{:?}", report.promises);
    assert!(report.all_kept(), "{:?}", report.promises);
    assert_eq!(report.unexpected_first, None);
}

/// The uids that declared themselves leader, in order.
pub(crate) fn declared(topology: &Topology, report: &Report) -> Vec<u64> {
    election(report).declarations.iter().map(|d| topology.uid(d.node)).collect()
}

/// How far from `i`, in the direction of travel, the next larger uid is; all the way round if none.
pub(crate) fn to_next_larger(uids: &[u64], i: usize) -> u64 {
    let n = uids.len();
    let larger = (1..n).find(|d| uids[(i + d) % n] > uids[i]);
    larger.unwrap_or(n) as u64
}

/// Who is still in after each of Franklin's rounds but the last: the local maxima, again and again.
pub(crate) fn survivors(uids: &[u64]) -> Vec<Vec<u64>> {
    let mut rounds = Vec::new();
    let mut active = uids.to_vec();
    while 1 < active.len() {
        let k = active.len();
        let stays =
            |&i: &usize| active[(i + k - 1) % k] < active[i] && active[(i + 1) % k] < active[i];
        active = (0..k).filter(stays).map(|i| active[i]).collect();
        rounds.push(active.clone());
    }
    rounds
}

/// In the last round the one that is left hears itself.
pub(crate) fn franklin_rounds(uids: &[u64]) -> u64 {
    survivors(uids).len() as u64 + 1
}
