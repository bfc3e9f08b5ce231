//! The wireless election: exact costs where nothing moves, and the right leader in every part of
//! the network, in the end, where everything does.

mod common;

use std::collections::BTreeSet;

use common::{election, leader, ms, run, run_with, shuffled, start};
use vez_algorithms::election::Wireless;
use vez_algorithms::election::wireless::{Announce, Config};
use vez_core::problem::election::View;
use vez_core::{Chance, Ending, NodeId, Protocol, Seeded, Shape, Time, Topology};
use vez_sim::{
    Delay, Directions, Forget, Input, Network, Plan, Report, Trace, What, Who, simulate, watch,
};

const KINDS: [&str; 6] = ["Election", "Ack", "Leader", "Probe", "Reply", "Heartbeat"];

fn costs(report: &Report) -> [u64; 6] {
    KINDS.map(|kind| report.messages.of(kind))
}

#[test]
fn costs_are_those_of_the_formulas() {
    let shapes = [
        Shape::Line,
        Shape::Ring,
        Shape::Star,
        Shape::Grid,
        Shape::Complete,
        Shape::Random(0.0),
        Shape::Random(0.2),
    ];
    for shape in shapes {
        for (n, seed) in [1_u32, 2, 3, 4, 7, 12, 25].into_iter().zip(0..) {
            let uids = shuffled(n, seed);
            let merits: Vec<u64> = uids.iter().map(|uid| uid * 7 % 5).collect();
            let topology = Topology::new(shape.clone(), n, seed).unwrap();
            let topology = topology.with_uids(uids).with_merits(merits);
            let best = topology.ids().max_by_key(|&id| topology.rank(id)).unwrap();
            let tree = u64::from(n) - 1;
            let once = 2 * topology.link_count() as u64 - tree;
            for (announce, leaders) in [(Announce::Tree, tree), (Announce::Flood, once)] {
                let config = Config { announce, ..Config::default() };
                let inputs = vec![start(&topology, 1 + seed % u64::from(n), 0)];
                let report = run_with::<Wireless>(&topology, &config, inputs);
                assert_eq!(costs(&report), [once, once, leaders, 0, 0, 0], "{shape:?} {n}");
                assert_eq!(leader(&topology, &report), Some(topology.uid(best)));
                assert_eq!(report.ending, Ending::Quiescent);
                assert!(report.all_kept());
            }
        }
    }
}

#[test]
fn of_elections_that_meet_the_largest_index_swallows_the_others() {
    for seed in 0..200 {
        let topology =
            Topology::new(Shape::Random(0.2), 12, seed).unwrap().with_uids(shuffled(12, seed));
        let delay = Delay::Uniform(Time::from_micros(10), ms(9));
        let network = Network { delay, ..Network::default() };
        let inputs = (0..6).map(|i| (ms(2 * i), Input::Start(Who::One(NodeId(2 * i as u32)))));
        let plan = Plan { seed, network, inputs: inputs.collect(), ..Plan::default() };
        for announce in [Announce::Tree, Announce::Flood] {
            let config = Config { announce, ..Config::default() };
            let report = simulate::<Wireless>(&topology, &config, &plan);
            assert!(report.all_kept(), "{seed} {:?}", report.promises);
            assert_eq!((report.unexpected, report.ending), (0, Ending::Quiescent));
        }
    }
}

#[test]
fn s36_the_best_is_reported_from_parent_to_parent() {
    // a to j are 1 to 10; h is worth most.
    let links = ["ab", "aj", "bc", "bg", "cd", "de", "df", "ge", "gh", "fi", "ij"];
    let at = |name: u8| u32::from(name - b'a');
    let links = links.map(|link| (at(link.as_bytes()[0]), at(link.as_bytes()[1]))).to_vec();
    let topology = Topology::new(Shape::Edges(links), 10, 0).unwrap();
    let topology = topology.with_merits(vec![4, 6, 3, 2, 1, 4, 2, 8, 5, 4]);
    let plan = Plan { inputs: vec![start(&topology, 1, 0)], ..Plan::default() };
    let (report, trace) =
        watch::<Wireless, _>(&topology, &Config::default(), &plan, Trace::default());
    let h = 8;
    assert_eq!(leader(&topology, &report), Some(h));
    let reports: BTreeSet<(u64, u64)> = trace
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Send { to, kind: "Ack", message, .. } => {
                let best = message["Ack"]["best"]["uid"].as_u64()?;
                Some((event.node?, *to, best))
            }
            _ => None,
        })
        .filter(|&(.., best)| best == h)
        .map(|(from, to, _)| (from, to))
        .collect();
    assert_eq!(reports, [(8, 7), (7, 2), (2, 1)].into()); // h to g, g to b, b to a.
}

#[test]
fn equal_worth_is_decided_by_the_uid() {
    let topology = Topology::new(Shape::Ring, 5, 0).unwrap().with_merits(vec![3, 9, 9, 2, 1]);
    let report = run::<Wireless>(&topology, vec![(ms(0), Input::Start(Who::All))]);
    assert_eq!(leader(&topology, &report), Some(3));
}

fn mobile() -> Config {
    Config { heartbeat_every: Some(ms(10)), ..Config::default() }
}

/// Who is up and with whom, given the links that are cut for good.
fn assert_each_part_follows_its_best(
    topology: &Topology,
    report: &Report,
    cut: &BTreeSet<(NodeId, NodeId)>,
    what: &str,
) {
    let views = &election(report).views;
    let up = |node: &NodeId| views[node.index()] != View::Down;
    let mut left: BTreeSet<NodeId> = topology.ids().filter(up).collect();
    while let Some(&first) = left.first() {
        let mut part = BTreeSet::from([first]);
        let mut todo = vec![first];
        while let Some(node) = todo.pop() {
            for next in topology.neighbors(node) {
                let link = (node.min(next), node.max(next));
                if left.contains(&next) && !cut.contains(&link) && part.insert(next) {
                    todo.push(next);
                }
            }
        }
        let best = *part.iter().max_by_key(|&&node| topology.rank(node)).unwrap();
        for &node in &part {
            assert_eq!(views[node.index()], View::Follows(best), "{what}: {node:?} of {part:?}");
            left.remove(&node);
        }
    }
}

fn storm(seed: u64) -> (Topology, Plan, BTreeSet<(NodeId, NodeId)>) {
    let mut chance = Seeded(seed);
    let n = 3 + chance.below(8);
    let topology = Topology::new(Shape::Random(0.2), n, seed).unwrap().with_uids(shuffled(n, seed));
    let links: Vec<_> = topology.links().collect();
    let moment = |chance: &mut Seeded| Time::from_micros(u64::from(chance.below(600_000)));
    let mut changes: Vec<(Time, usize)> =
        (0..20).map(|_| (moment(&mut chance), chance.below(links.len() as u32) as usize)).collect();
    changes.sort_unstable();
    let mut cut = BTreeSet::new();
    let mut inputs = Vec::new();
    for (at, link) in changes {
        let (a, b) = links[link];
        if cut.remove(&(a, b)) {
            inputs.push((at, Input::Heal(a, b, Directions::Both)));
        } else {
            cut.insert((a, b));
            inputs.push((at, Input::Cut(a, b, Directions::Both)));
        }
    }
    for _ in 0..chance.below(3) {
        let (at, node) = (moment(&mut chance), NodeId(chance.below(n)));
        inputs.push((at, Input::Crash(node)));
        if chance.below(3) > 0 {
            inputs.push((at + ms(100), Input::Restart(node, Forget::AsPlanned)));
        }
    }
    let delay = Delay::Uniform(Time::from_micros(100), ms(2));
    let network = Network { delay, loss: 0.05, duplicate: 0.05, fifo: false, ..Network::default() };
    let until = Some(Time::from_secs(4));
    (topology, Plan { seed, network, inputs, until, ..Plan::default() }, cut)
}

#[test]
fn when_nothing_moves_any_more_each_part_comes_to_follow_its_best() {
    for seed in 0..100 {
        let (topology, plan, cut) = storm(seed);
        for announce in [Announce::Tree, Announce::Flood] {
            let config = Config { announce, ..mobile() };
            let report = simulate::<Wireless>(&topology, &config, &plan);
            assert_each_part_follows_its_best(&topology, &report, &cut, &format!("seed {seed}"));
        }
    }
}

/// P1 – P2 – … – Pn, with time to settle before and after the inputs.
fn line(n: u32, inputs: Vec<(Time, Input)>, until: u64) -> (Topology, Report) {
    let topology = Topology::new(Shape::Line, n, 0).unwrap();
    let plan = Plan { inputs, until: Some(ms(until)), ..Plan::default() };
    let report = simulate::<Wireless>(&topology, &mobile(), &plan);
    (topology, report)
}

#[test]
fn a_parent_that_vanishes_leaves_its_child_at_the_root_of_what_is_below() {
    // P1 starts; P3 has reported to P2 when the link between them goes.
    let cut = Input::Cut(NodeId(1), NodeId(2), Directions::Both);
    let inputs = vec![(ms(0), Input::Start(Who::One(NodeId(0)))), (ms(4), cut)];
    let (topology, report) = line(4, inputs, 40);
    let cut = BTreeSet::from([(NodeId(1), NodeId(2))]);
    // Before anyone can have missed a heartbeat.
    assert_each_part_follows_its_best(&topology, &report, &cut, "parent gone");
    assert!(0 < report.messages.of("Probe"));
}

#[test]
fn parts_that_split_elect_and_parts_that_meet_follow_the_better_leader() {
    let link = (NodeId(1), NodeId(2));
    let cut = Input::Cut(link.0, link.1, Directions::Both);
    let mut inputs = vec![(ms(0), Input::Start(Who::One(NodeId(0)))), (ms(100), cut)];
    let (topology, report) = line(5, inputs.clone(), 400);
    assert_each_part_follows_its_best(&topology, &report, &[link].into(), "split");
    inputs.push((ms(400), Input::Heal(link.0, link.1, Directions::Both)));
    let (topology, report) = line(5, inputs, 440);
    assert_eq!(leader(&topology, &report), Some(5));
    // P2 led its part, and was won over by heartbeats: no new election.
    assert_eq!(election(&report).changes(), 1);
}

#[test]
fn a_leader_that_dies_is_replaced_and_takes_over_when_it_returns() {
    let mut inputs =
        vec![(ms(0), Input::Start(Who::One(NodeId(0)))), (ms(100), Input::Crash(NodeId(4)))];
    let (topology, report) = line(5, inputs.clone(), 400);
    assert_eq!(leader(&topology, &report), Some(4));
    inputs.push((ms(400), Input::Restart(NodeId(4), Forget::AsPlanned)));
    let (topology, report) = line(5, inputs, 450);
    assert_eq!(leader(&topology, &report), Some(5));
}

#[test]
fn without_probes_a_lost_message_blocks_it() {
    let topology = Topology::new(Shape::Line, 4, 0).unwrap();
    let cut = Input::Cut(NodeId(1), NodeId(2), Directions::Both);
    let inputs = vec![(ms(0), Input::Start(Who::One(NodeId(0)))), (ms(1), cut)];
    let report = run::<Wireless>(&topology, inputs);
    assert_eq!(report.ending, Ending::Quiescent);
    assert!(election(&report).declarations.is_empty());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let topology = Topology::new(Shape::Line, 4, 0).unwrap();
    let refused = |config: Config| Wireless::validate(&config, &topology).unwrap_err();
    let short = Config { lost_after: ms(10), ..mobile() };
    assert_eq!(refused(short), "lost_after: expected more than heartbeat_every, 10ms, found 10ms");
    assert!(refused(Config { probe_every: Time::ZERO, ..mobile() }).contains("more than 0"));
    assert_eq!(Wireless::validate(&Config::default(), &topology), Ok(()));
}
