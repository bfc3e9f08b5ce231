//! Runs that never end: whether one of them leaves for ever unpaid what is owed.
//!
//! Such a run goes round in the graph of states. It counts only if it is fair: what could happen
//! all the time (a message's arrival, a timer, the leaving of one who is inside) does happen in
//! it. A strongly connected part of the graph has a fair run through all of it unless something
//! is possible in all its states and done in none of its steps; and then no smaller part has.

use std::collections::{BTreeSet, VecDeque};

use vez_core::Debt;

use crate::archive::open;
use crate::graph::Graph;
use crate::mind::{Mind, NONE};

/// A way round.
#[derive(Clone, Debug)]
pub(crate) struct Lasso {
    pub(crate) debt: Debt,
    pub(crate) start: u32,
    /// The steps from `start` back to it.
    pub(crate) edges: Vec<usize>,
}

/// The fair way round nearest to the beginning in which a debt is never paid.
pub(crate) fn endless_debt(graph: &Graph, mind: &Mind<'_>) -> Option<Lasso> {
    let lore = open(&mind.archive.lore);
    let mut of_spec: Vec<Vec<Debt>> = vec![Vec::new(); lore.extent().specs as usize];
    for &spec in graph.specs.iter().collect::<BTreeSet<_>>() {
        of_spec[spec as usize] = lore.debts(spec);
    }
    let debts: BTreeSet<Debt> = of_spec.iter().flatten().copied().collect();
    let mut best: Option<Lasso> = None;
    for debt in debts {
        let owes = |state: u32| of_spec[graph.specs[state as usize] as usize].contains(&debt);
        // What is owed to one may be owed to it again; what is owed to all may not.
        let stays = |state: u32| debt.node.is_none() || owes(state);
        for part in components(graph, &stays) {
            let Some(start) = part.states.iter().copied().filter(|&state| owes(state)).min() else {
                continue;
            };
            if best.as_ref().is_some_and(|best| best.start <= start) || !part.is_fair(graph) {
                continue;
            }
            best = Some(Lasso { debt, start, edges: part.round(graph, start) });
        }
    }
    best
}

/// Whether any run goes on for ever.
pub(crate) fn is_endless(graph: &Graph) -> bool {
    components(graph, &|_| true).next().is_some()
}

/// States that can all reach each other, in at least one step.
struct Part {
    /// In order.
    states: Vec<u32>,
}

impl Part {
    fn has(&self, state: u32) -> bool {
        self.states.binary_search(&state).is_ok()
    }

    /// The steps from `state` that stay inside.
    fn edges<'a>(&'a self, graph: &'a Graph, state: u32) -> impl Iterator<Item = usize> + 'a {
        graph.edges(state).filter(|&edge| self.has(graph.targets[edge]))
    }

    fn is_fair(&self, graph: &Graph) -> bool {
        let keys = |state: u32| -> BTreeSet<u32> {
            graph.edges(state).map(|edge| graph.keys[edge]).filter(|&key| key != NONE).collect()
        };
        let mut always = keys(self.states[0]);
        for &state in &self.states {
            if always.is_empty() {
                return true;
            }
            let here = keys(state);
            always.retain(|key| here.contains(key));
        }
        for &state in &self.states {
            for edge in self.edges(graph, state) {
                always.remove(&graph.keys[edge]);
            }
        }
        always.is_empty()
    }

    /// A closed walk from `start` that does, or passes a state that cannot do, everything that
    /// can be done at the start.
    fn round(&self, graph: &Graph, start: u32) -> Vec<usize> {
        let enabled = |state: u32| -> BTreeSet<u32> {
            graph.edges(state).map(|edge| graph.keys[edge]).filter(|&key| key != NONE).collect()
        };
        let mut open = enabled(start);
        let mut walk: Vec<usize> = Vec::new();
        let mut at = start;
        while !open.is_empty() {
            let pays = |edge: usize| {
                let there = enabled(graph.targets[edge]);
                open.contains(&graph.keys[edge]) || open.iter().any(|key| !there.contains(key))
            };
            let leg = self.way(graph, at, &pays).expect("a fair part pays everything");
            for &edge in &leg {
                let there = enabled(graph.targets[edge]);
                open.retain(|key| *key != graph.keys[edge] && there.contains(key));
            }
            at = graph.targets[*leg.last().expect("a way has a step")];
            walk.extend(leg);
        }
        if at != start || walk.is_empty() {
            let home = |edge: usize| graph.targets[edge] == start;
            walk.extend(self.way(graph, at, &home).expect("all can reach each other"));
        }
        walk
    }

    /// The shortest way from `from` that ends with a step that `fits`.
    fn way(&self, graph: &Graph, from: u32, fits: &dyn Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut reached: Vec<(u32, usize)> = vec![(NONE, 0); self.states.len()];
        let place = |state: u32| self.states.binary_search(&state).expect("it is inside");
        let mut queue = VecDeque::from([from]);
        reached[place(from)] = (from, usize::MAX);
        while let Some(state) = queue.pop_front() {
            for edge in self.edges(graph, state) {
                if fits(edge) {
                    let mut way = vec![edge];
                    let mut at = state;
                    while at != from {
                        let (before, edge) = reached[place(at)];
                        way.push(edge);
                        at = before;
                    }
                    way.reverse();
                    return Some(way);
                }
                let target = graph.targets[edge];
                if reached[place(target)].0 == NONE {
                    reached[place(target)] = (state, edge);
                    queue.push_back(target);
                }
            }
        }
        None
    }
}

/// Tarjan's algorithm, on the states that `stays` admits, without recursion: a path may be as
/// long as there are states.
fn components<'a>(
    graph: &'a Graph,
    stays: &'a dyn Fn(u32) -> bool,
) -> impl Iterator<Item = Part> + 'a {
    let mut tarjan = Tarjan {
        graph,
        stays,
        order: vec![NONE; graph.len()],
        low: vec![NONE; graph.len()],
        stack: Vec::new(),
        calls: Vec::new(),
        next: 0,
    };
    let mut root = 0;
    std::iter::from_fn(move || {
        loop {
            if let Some(part) = tarjan.advance() {
                return Some(part);
            }
            while root < graph.len() as u32 && (tarjan.order[root as usize] != NONE || !stays(root))
            {
                root += 1;
            }
            if root == graph.len() as u32 {
                return None;
            }
            tarjan.enter(root);
        }
    })
}

struct Tarjan<'a> {
    graph: &'a Graph,
    stays: &'a dyn Fn(u32) -> bool,
    order: Vec<u32>,
    /// The earliest that can be reached, while on the stack; `NONE` once its part is known.
    low: Vec<u32>,
    stack: Vec<u32>,
    calls: Vec<(u32, usize)>,
    next: u32,
}

impl Tarjan<'_> {
    fn enter(&mut self, state: u32) {
        self.order[state as usize] = self.next;
        self.low[state as usize] = self.next;
        self.next += 1;
        self.stack.push(state);
        self.calls.push((state, self.graph.edges(state).start));
    }

    /// Goes on until a part with a way round in it is found, or the search from here is over.
    fn advance(&mut self) -> Option<Part> {
        while let Some((state, edge)) = self.calls.pop() {
            if edge < self.graph.edges(state).end {
                self.calls.push((state, edge + 1));
                let target = self.graph.targets[edge];
                if target == NONE || !(self.stays)(target) {
                    continue;
                }
                if self.order[target as usize] == NONE {
                    self.enter(target);
                } else if self.low[target as usize] != NONE {
                    let reached = self.order[target as usize];
                    self.low[state as usize] = self.low[state as usize].min(reached);
                }
                continue;
            }
            let low = self.low[state as usize];
            if let Some(&(caller, _)) = self.calls.last() {
                self.low[caller as usize] = self.low[caller as usize].min(low);
            }
            if low == self.order[state as usize]
                && let Some(part) = self.close(state)
            {
                return Some(part);
            }
        }
        None
    }

    fn close(&mut self, root: u32) -> Option<Part> {
        let at = self.stack.iter().rposition(|&state| state == root).expect("it is on the stack");
        let mut states = self.stack.split_off(at);
        for &state in &states {
            self.low[state as usize] = NONE;
        }
        states.sort_unstable();
        let part = Part { states };
        let goes_round =
            part.states.iter().any(|&state| part.edges(self.graph, state).next().is_some());
        goes_round.then_some(part)
    }
}
