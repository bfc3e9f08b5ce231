//! Large systems, and a long storm: what finishes on a laptop in seconds.

use std::time::Instant;

use vez_algorithms::election::{
    Franklin, WeightedMajority, Wireless, YoYo, franklin, weighted_majority, wireless, yoyo,
};
use vez_core::{Chance, Layout, NodeId, Promise, Protocol, Seeded, Shape, Time, Topology};
use vez_sim::{Delay, Directions, Forget, Input, Network, Plan, Report, Who, simulate};

use crate::ours;
use crate::sim::Scale;
use crate::table::Table;

/// Every row's baseline is Chang–Roberts on a ring of a million, in the same run.
pub(crate) fn sizes(table: &mut Table, scale: Scale) {
    let million = scale.pick(1_000_000, 100_000);
    let ring = ours::ring_of(million);
    let (baseline, report) = timed(|| ours::shipped_ring(&ring, &ours::all_start()));
    let mut row = |what: String, seconds: f64, report: &Report| {
        let name = format!("{what}, {} messages", report.messages.total);
        table.compare(name, (seconds, "s"), ("Chang–Roberts", baseline), seconds / baseline, None);
    };
    row(format!("Chang–Roberts, n = {million}"), baseline, &report);
    let (seconds, report) = timed(|| kept::<Franklin>(&ring, &franklin::Config::default()));
    row(format!("Franklin, n = {million}"), seconds, &report);
    let n = scale.pick(100_000, 10_000);
    // A tree, and twice as many links besides: three links a process.
    let share = 4.0 / f64::from(n - 1);
    let graph = Topology::new(Shape::Random(share), n, 1).expect("a graph of this size");
    let links = graph.link_count();
    let (seconds, report) = timed(|| kept::<YoYo>(&graph, &yoyo::Config::default()));
    row(format!("YoYo, n = {n}, {links} links"), seconds, &report);
    let n = scale.pick(10_000, 1_000);
    let (seconds, report) = timed(|| moving(n));
    row(format!("wireless, {n} moving processes for 2 s"), seconds, &report);
    let storms = scale.pick(10_000, 1_000);
    let (seconds, report) = timed(|| storm(u64::from(storms)));
    row(format!("weighted majority, {storms} storms, no term with two leaders"), seconds, &report);
}

fn timed(run: impl FnOnce() -> Report) -> (f64, Report) {
    let began = Instant::now();
    let report = run();
    (began.elapsed().as_secs_f64(), report)
}

fn kept<P: Protocol>(topology: &Topology, config: &P::Config) -> Report {
    let report = simulate::<P>(topology, config, &ours::all_start());
    assert!(report.claims_kept(), "{:?}", report.promises);
    report
}

/// Processes on a grid whose links come and go, one of each every millisecond.
fn moving(n: u32) -> Report {
    let topology = Topology::new(Shape::Grid, n, 1).expect("a grid of this size");
    let merits = (0..n).map(|i| u64::from(i * 7919 % n)).collect();
    let topology = topology.with_merits(merits);
    let links: Vec<(NodeId, NodeId)> = topology.links().collect();
    let mut chance = Seeded(1);
    let mut inputs = vec![(Time::ZERO, Input::Start(Who::One(NodeId(0))))];
    for at in 1..2_000 {
        let pick = |chance: &mut Seeded| links[chance.below(links.len() as u32) as usize];
        let (cut, healed) = (pick(&mut chance), pick(&mut chance));
        inputs.push((Time::from_millis(at), Input::Cut(cut.0, cut.1, Directions::Both)));
        inputs.push((Time::from_millis(at), Input::Heal(healed.0, healed.1, Directions::Both)));
    }
    let config = wireless::Config {
        heartbeat_every: Some(Time::from_millis(200)),
        // The grid is two hundred hops wide.
        lost_after: Time::from_secs(1),
        probe_every: Time::from_millis(50),
        ..wireless::Config::default()
    };
    let plan = Plan { inputs, until: Some(Time::from_secs(2)), ..Plan::default() };
    simulate::<Wireless>(&topology, &config, &plan)
}

/// Crashes, restarts, partitions, loss and delay at random: never two leaders in a term.
fn storm(seeds: u64) -> Report {
    let mut last = None;
    for seed in 0..seeds {
        let mut chance = Seeded::stream(seed, 77);
        let n = 2 + chance.below(6);
        let topology = Topology::of(Layout::Complete, n).expect("a handful");
        let mut inputs = Vec::new();
        for _ in 0..chance.below(30) {
            let at = Time::from_micros(u64::from(chance.below(2_000_000)));
            let node = NodeId(chance.below(n));
            let input = match chance.below(7) {
                0 => Input::Crash(node),
                1 => Input::CrashUnsent(node),
                2 | 3 => Input::Restart(node, Forget::AsPlanned),
                4 => Input::Pause(node, Time::from_millis(u64::from(chance.below(400)))),
                5 => {
                    let side = topology.ids().filter(|_| chance.below(2) == 0).collect();
                    Input::Partition(vec![side])
                }
                _ => Input::HealAll,
            };
            inputs.push((at, input));
        }
        let delay = Delay::Exponential(Time::from_millis(u64::from(1 + chance.below(60))));
        let loss = f64::from(chance.below(4)) / 10.0;
        let network = Network { delay, loss, duplicate: 0.1, fifo: false, ..Network::default() };
        let until = Some(Time::from_secs(2));
        let plan = Plan { seed, network, inputs, until, ..Plan::default() };
        let config = weighted_majority::Config::default();
        let report = simulate::<WeightedMajority>(&topology, &config, &plan);
        let verdict = report.verdict(Promise::Uniqueness).expect("an election");
        assert!(verdict.kept, "seed {seed}: {:?}", verdict.detail);
        last = Some(report);
    }
    last.expect("at least one storm")
}
