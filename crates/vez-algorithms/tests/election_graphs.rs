//! `YoYo`: the stories and figures of the notes, exact costs against a model of the whole graph,
//! and what happens when an assumption is taken away.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{election, leader, ms, run, run_with, shuffled, start};
use vez_algorithms::election::YoYo;
use vez_algorithms::election::yoyo::{Config, Pick, Rule};
use vez_core::{Ending, NodeId, Promise, Shape, Time, Topology};
use vez_sim::{Delay, Directions, Input, Network, Plan, Report, Trace, What, Who, simulate, watch};

const EVERYONE: [(Time, Input); 1] = [(Time::ZERO, Input::Start(Who::All))];

/// A graph by uids, with one process for each uid named.
fn graph(edges: &[(u64, u64)]) -> Topology {
    let uids: BTreeSet<u64> = edges.iter().flat_map(|&(a, b)| [a, b]).collect();
    let uids: Vec<u64> = uids.into_iter().collect();
    let at = |uid| uids.iter().position(|&own| own == uid).unwrap() as u32;
    let links = edges.iter().map(|&(a, b)| (at(a), at(b))).collect();
    Topology::new(Shape::Edges(links), uids.len() as u32, 0).unwrap().with_uids(uids)
}

/// The figure of the notes.
const FIGURE: [(u64, u64); 12] = [
    (1, 4),
    (4, 8),
    (8, 2),
    (2, 10),
    (10, 9),
    (9, 5),
    (5, 11),
    (5, 7),
    (11, 3),
    (3, 7),
    (1, 6),
    (6, 8),
];

/// One vote of a run: from, to, whether YES, whether to prune.
type Ballot = (u64, u64, bool, bool);

/// Every vote cast, in order.
fn votes(topology: &Topology, config: &Config, until: Option<Time>) -> (Report, Vec<Ballot>) {
    let plan = Plan { inputs: EVERYONE.to_vec(), until, ..Plan::default() };
    let (report, trace) = watch::<YoYo, _>(topology, config, &plan, Trace::default());
    let ballot = |event: &vez_sim::TraceEvent| {
        let What::Send { to, kind: "Vote", message, .. } = &event.what else { return None };
        let is = |what: &str| message["Vote"][what] == true;
        Some((event.node?, *to, is("yes"), is("prune")))
    };
    (report, trace.events.iter().filter_map(ballot).collect())
}

/// What an iteration of the model did.
#[derive(Debug, PartialEq, Eq)]
struct Iteration {
    links: usize,
    sources: usize,
    yes: usize,
    no: usize,
}

/// The algorithm played on the whole graph at once, iteration by iteration; with the winner.
fn model(topology: &Topology, any: bool, prune: bool, most: usize) -> (Vec<Iteration>, u64) {
    let uid = |node: NodeId| topology.uid(node);
    let mut down: BTreeSet<(u64, u64)> =
        topology.links().map(|(a, b)| (uid(a).min(uid(b)), uid(a).max(uid(b)))).collect();
    let mut nodes: BTreeSet<u64> = topology.ids().map(uid).collect();
    let mut iterations = Vec::new();
    while !down.is_empty() && iterations.len() < most {
        let above = |node: u64| down.iter().filter(move |&&(_, b)| b == node).map(|&(a, _)| a);
        let below = |node: u64| down.iter().filter(move |&&(a, _)| a == node).map(|&(_, b)| b);
        // Everyone after all above it.
        let mut order: Vec<u64> = Vec::new();
        while order.len() < nodes.len() {
            let ready = |n: &&u64| !order.contains(n) && above(**n).all(|a| order.contains(&a));
            let next = *nodes.iter().find(ready).expect("no cycles");
            order.push(next);
        }
        let mut said = BTreeMap::new();
        for &node in &order {
            let best = above(node).map(|a| said[&a]).min().unwrap_or(node);
            said.insert(node, best);
        }
        let mut cast: BTreeMap<(u64, u64), (bool, bool)> = BTreeMap::new();
        for &node in order.iter().rev() {
            let from_below: Vec<bool> =
                below(node).map(|b| cast[&(node, b)]).filter(|v| !v.1).map(|v| v.0).collect();
            let mut good = from_below.iter().all(|&yes| yes);
            if any && !from_below.is_empty() {
                good = from_below.iter().any(|&yes| yes);
            }
            let values: BTreeSet<u64> = above(node).map(|a| said[&a]).collect();
            for a in above(node) {
                let first = above(node).filter(|o| said[o] == said[&a]).min() == Some(a);
                let alone = from_below.is_empty() && values.len() == 1;
                let yes = good && said[&a] == said[&node];
                cast.insert((a, node), (yes, prune && (!first || alone)));
            }
        }
        let yes = cast.values().filter(|vote| vote.0).count();
        let sources = nodes.iter().filter(|&&n| above(n).next().is_none()).count();
        iterations.push(Iteration { links: down.len(), sources, yes, no: down.len() - yes });
        let turn = |(&(a, b), &(yes, _)): (&(u64, u64), &(bool, bool))| {
            if yes { (a, b) } else { (b, a) }
        };
        down = cast.iter().filter(|(_, vote)| !vote.1).map(turn).collect();
        let linked = |node: &u64| down.iter().any(|&(a, b)| a == *node || b == *node);
        let winner = *nodes.iter().min().unwrap();
        nodes.retain(|node| linked(node) || *node == winner);
    }
    (iterations, *nodes.iter().min().unwrap())
}

fn assert_costs(topology: &Topology, report: &Report, iterations: &[Iteration]) {
    let links = topology.link_count() as u64;
    let live: usize = iterations.iter().map(|iteration| iteration.links).sum();
    let flood = 2 * links - (u64::from(topology.n()) - 1);
    let costs = ["Setup", "Yo", "Vote", "Leader"].map(|kind| report.messages.of(kind));
    assert_eq!(costs, [2 * links, live as u64, live as u64, flood]);
    assert_eq!(report.rounds, iterations.len() as u64);
}

#[test]
fn s31_passes_the_smallest_down_and_the_votes_up() {
    let topology = graph(&[(5, 14), (3, 14), (14, 18), (3, 18), (9, 18)]);
    let (report, votes) = votes(&topology, &Config::default(), None);
    let of = |from, to| votes.iter().find(|v| (v.0, v.1) == (from, to)).unwrap().2;
    assert_eq!((of(18, 14), of(18, 3), of(18, 9)), (true, true, false));
    assert_eq!((of(14, 3), of(14, 5)), (true, false));
    assert_eq!(leader(&topology, &report), Some(3));
}

#[test]
fn s32_the_figure_takes_three_iterations_over_12_10_and_8_links() {
    let topology = graph(&FIGURE);
    let (report, votes) = votes(&topology, &Config::default(), None);
    let costs = ["Setup", "Yo", "Vote", "Leader"].map(|kind| report.messages.of(kind));
    assert_eq!(costs, [24, 30, 30, 14]);
    assert_eq!((report.rounds, leader(&topology, &report)), (3, Some(1)));
    let (iterations, _) = model(&topology, false, true, 9);
    let links: Vec<_> = iterations.iter().map(|i| (i.links, i.sources)).collect();
    assert_eq!(links, [(12, 4), (10, 2), (8, 1)]);
    // The first 12 votes are not all of the first iteration: look at each link's first.
    let mut first: BTreeMap<(u64, u64), bool> = BTreeMap::new();
    for &(from, to, yes, _) in &votes {
        if !first.contains_key(&(to, from)) {
            first.entry((from, to)).or_insert(yes);
        }
    }
    let no: Vec<_> = first.iter().filter(|(_, yes)| !**yes).map(|(&link, _)| link).collect();
    assert_eq!((first.len() - no.len(), no.len()), (7, 5));
    assert_eq!(no, [(7, 5), (8, 2), (9, 5), (10, 9), (11, 5)]);
    assert!(report.all_kept());
}

#[test]
fn s32_without_pruning_the_second_iteration_has_8_yes_and_4_no_and_there_is_no_end() {
    let topology = graph(&FIGURE);
    let config = Config { prune: false, ..Config::default() };
    let (report, votes) = votes(&topology, &config, Some(ms(200)));
    assert_eq!(report.ending, Ending::Deadline);
    assert_eq!(report.messages.of("Leader"), 0);
    // Over each link one vote an iteration: its second is the second iteration's.
    let mut seen: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    let mut count = [[0; 2]; 2];
    for &(from, to, yes, prune) in &votes {
        assert!(!prune);
        let nth = seen.entry((from.min(to), from.max(to))).or_default();
        if *nth < 2 {
            count[*nth as usize][usize::from(!yes)] += 1;
        }
        *nth += 1;
    }
    assert_eq!(count, [[7, 5], [8, 4]]);
    let (iterations, _) = model(&topology, false, false, 2);
    assert_eq!((iterations[1].yes, iterations[1].no, iterations[1].sources), (8, 4, 2));
}

fn leaders(topology: &Topology, report: &Report) -> Vec<u64> {
    let mut leaders: Vec<u64> =
        election(report).declarations.iter().map(|d| topology.uid(d.node)).collect();
    leaders.sort_unstable();
    leaders
}

#[test]
fn s33_a_bridge_down_before_the_start_gives_one_leader_on_each_side() {
    let without: Vec<_> = FIGURE.into_iter().filter(|&link| link != (2, 10)).collect();
    let topology = graph(&without);
    let report = run::<YoYo>(&topology, EVERYONE.to_vec());
    assert_eq!(leaders(&topology, &report), [1, 3]);
    assert!(!report.verdict(Promise::Agreement).unwrap().kept);
    assert!(!report.verdict(Promise::Uniqueness).unwrap().kept);
}

#[test]
fn s33_a_cut_before_the_start_blocks_unless_silent_neighbours_are_given_up() {
    let topology = graph(&FIGURE);
    let (a, b) = (topology.find(2).unwrap(), topology.find(10).unwrap());
    let inputs = vec![(Time::ZERO, Input::Cut(a, b, Directions::Both)), EVERYONE[0].clone()];
    let report = run::<YoYo>(&topology, inputs.clone());
    assert_eq!((report.ending, leaders(&topology, &report)), (Ending::Quiescent, vec![]));
    let config = Config { setup_within: Some(ms(5)), ..Config::default() };
    let report = run_with::<YoYo>(&topology, &config, inputs);
    assert_eq!(leaders(&topology, &report), [1, 3]);
}

#[test]
fn costs_are_the_models_on_every_kind_of_graph() {
    let shapes = [
        Shape::Line,
        Shape::Ring,
        Shape::Star,
        Shape::Grid,
        Shape::Complete,
        Shape::Random(0.0),
        Shape::Random(0.1),
        Shape::Random(0.4),
    ];
    for shape in shapes {
        for (n, seed) in (1..=14).chain([20, 30]).zip(0..) {
            let topology =
                Topology::new(shape.clone(), n, seed).unwrap().with_uids(shuffled(n, seed));
            let (iterations, winner) = model(&topology, false, true, 99);
            let report = run::<YoYo>(&topology, EVERYONE.to_vec());
            assert_costs(&topology, &report, &iterations);
            assert_eq!(leader(&topology, &report), Some(winner), "{shape:?} {n}");
            // s sources are one after ⌈log₂ s⌉ iterations; the next at the latest sees it.
            let sources = iterations.first().map_or(1, |first| first.sources as u64);
            let halvings = u64::from(sources.next_power_of_two().ilog2());
            assert!(report.rounds <= halvings + 1, "{shape:?} {n}: {iterations:?}");
            // The same whoever starts and however long messages take.
            let delay = Delay::Uniform(Time::from_micros(10), ms(9));
            let network = Network { delay, ..Network::default() };
            let inputs = vec![start(&topology, u64::from(n), 0)];
            let plan = Plan { seed, network, inputs, ..Plan::default() };
            let slow = simulate::<YoYo>(&topology, &Config::default(), &plan);
            assert_costs(&topology, &slow, &iterations);
            assert!(report.all_kept() && slow.all_kept());
            assert_eq!((report.unexpected, slow.unexpected), (0, 0));
        }
    }
}

#[test]
fn a_known_path_costs_what_it_should() {
    // 1 – 2 – 3: one source; 3 and then 2 prune themselves in the same -YO.
    let topology = graph(&[(1, 2), (2, 3)]);
    let report = run::<YoYo>(&topology, EVERYONE.to_vec());
    assert_eq!((report.messages.total, report.rounds), (4 + 2 + 2 + 2, 1));
    let alone = Topology::new(Shape::Line, 1, 0).unwrap();
    let report = run::<YoYo>(&alone, EVERYONE.to_vec());
    assert_eq!((report.messages.total, leader(&alone, &report)), (0, Some(1)));
}

/// Source 2 above a path of `k` processes, each with a leaf of its own, that ends in a sink which
/// source 1 points at too.
fn comb(k: u64) -> Topology {
    let mut edges = vec![(2, 10), (9 + k, 99), (1, 99)];
    edges.extend((1..k).map(|i| (9 + i, 10 + i)));
    edges.extend((0..k).map(|i| (10 + i, 100 + i)));
    graph(&edges)
}

#[test]
fn on_a_comb_one_no_ends_a_source_but_with_any_yes_the_no_climbs_a_step_an_iteration() {
    for k in 1..=6 {
        let topology = comb(k);
        for (rule, iterations) in [(Rule::All, 1), (Rule::Any, k + 1)] {
            // Pruning would cut the leaves off before they can hide a NO.
            let config = Config { rule, prune: false, ..Config::default() };
            let (_, votes) = votes(&topology, &config, Some(ms(400)));
            let to_loser = votes.iter().filter(|vote| (vote.0, vote.1) == (10, 2));
            let yeses = to_loser.take_while(|vote| vote.2).count() as u64;
            assert_eq!(yeses + 1, iterations, "{rule:?} {k}");
        }
    }
}

#[test]
fn with_any_yes_the_same_leader_is_elected_as_the_model_says() {
    for seed in 0..60 {
        let topology =
            Topology::new(Shape::Random(0.15), 16, seed).unwrap().with_uids(shuffled(16, seed));
        let config = Config { rule: Rule::Any, ..Config::default() };
        let report = run_with::<YoYo>(&topology, &config, EVERYONE.to_vec());
        assert_costs(&topology, &report, &model(&topology, true, true, 99).0);
        assert!(report.all_kept());
        assert_eq!(leader(&topology, &report), Some(1));
    }
}

#[test]
fn the_largest_wins_when_asked_to() {
    for seed in 0..20 {
        let topology =
            Topology::new(Shape::Random(0.2), 12, seed).unwrap().with_uids(shuffled(12, seed));
        let config = Config { pick: Pick::Max, ..Config::default() };
        let report = run_with::<YoYo>(&topology, &config, EVERYONE.to_vec());
        assert!(report.all_kept());
        assert_eq!(leader(&topology, &report), Some(12));
    }
}

#[test]
fn s38_a_recycled_identity_gives_two_leaders() {
    let topology = Topology::new(Shape::Line, 3, 0).unwrap();
    let reused = topology.clone().with_uids(vec![1, 2, 1]);
    let report = run::<YoYo>(&reused, EVERYONE.to_vec());
    assert!(!report.verdict(Promise::Uniqueness).unwrap().kept);
    assert!(run::<YoYo>(&topology, EVERYONE.to_vec()).all_kept());
}

#[test]
fn a_crash_or_a_lost_message_blocks_it() {
    let topology = graph(&FIGURE);
    let mut inputs = EVERYONE.to_vec();
    inputs.push((ms(1), Input::Crash(topology.find(9).unwrap())));
    let report = run::<YoYo>(&topology, inputs);
    assert_eq!(report.ending, Ending::Quiescent);
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
    let network = Network { loss: 0.1, ..Network::default() };
    let plan = Plan { seed: 3, network, inputs: EVERYONE.to_vec(), ..Plan::default() };
    let report = simulate::<YoYo>(&topology, &Config::default(), &plan);
    assert!(!report.verdict(Promise::Termination).unwrap().kept);
}

#[test]
fn nonsense_from_the_network_is_reported_and_survived() {
    // Repeated and reordered messages are outside the assumptions; they must not crash anyone.
    let topology = graph(&FIGURE);
    let mut unexpected = 0;
    for seed in 0..200 {
        let delay = Delay::Uniform(Time::from_micros(10), ms(9));
        let network = Network { delay, duplicate: 0.3, fifo: false, ..Network::default() };
        let inputs = EVERYONE.to_vec();
        let plan = Plan { seed, network, inputs, steps_max: 20_000, ..Plan::default() };
        unexpected += simulate::<YoYo>(&topology, &Config::default(), &plan).unexpected;
    }
    assert!(0 < unexpected);
}

#[test]
fn a_large_sparse_graph_is_no_trouble() {
    let n = 100_000;
    // A tree and about twice as many links besides.
    let share = 200_000.0 / (f64::from(n) * f64::from(n - 1) / 2.0);
    let topology = Topology::new(Shape::Random(share), n, 1).unwrap().with_uids(shuffled(n, 1));
    assert!(299_900 < topology.link_count());
    let report = run::<YoYo>(&topology, EVERYONE.to_vec());
    assert_eq!(leader(&topology, &report), Some(1));
    assert!(report.all_kept() && report.rounds < 17);
}
