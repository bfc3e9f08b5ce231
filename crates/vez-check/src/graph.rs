//! The whole graph of states, for what only shows in runs that never end.

use std::collections::VecDeque;

use crate::Hooks;
use crate::ample::Oracle;
use crate::archive::Archive;
use crate::code::Code;
use crate::intern::{PairMap, mix};
use crate::mind::{Action, LOCALS, Mind, NONE, SPEC};
use crate::retrace::Path;

/// States in the order of their distance, and every step between them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) fingerprints: Vec<u64>,
    /// The other halves of wide fingerprints.
    seconds: Vec<u64>,
    pub(crate) specs: Vec<u32>,
    pub(crate) parents: Vec<u32>,
    /// Where the steps of each state begin.
    firsts: Vec<u32>,
    /// `NONE` where a step leads to what is not explored: it could be taken all the same.
    pub(crate) targets: Vec<u32>,
    /// What happens in each step, as far as fairness goes; `NONE` for what may be put off for ever.
    pub(crate) keys: Vec<u32>,
}

/// The most bytes the graph of so many states and steps takes.
pub(crate) fn bytes(states: u64, transitions: u64) -> u64 {
    states * (16 + 4 + 4 + 4 + 48 + 12) + transitions * 8
}

impl Graph {
    /// Explores once more, and keeps everything. `None` if told to stop, or if it takes more bytes
    /// than there may be.
    pub(crate) fn new<'a>(
        archive: &'a Archive<'a>,
        oracle: Option<&Oracle<'_>>,
        bytes_max: u64,
        hooks: &Hooks<'_>,
    ) -> Option<(Self, Mind<'a>)> {
        let mut mind = Mind::new(archive);
        let mut graph = Self::default();
        let mut numbers = PairMap::default();
        let mut worlds = VecDeque::new();
        for birth in mind.births() {
            let fingerprint = (birth.fingerprint, mind.second(&birth.world));
            graph.number(&mut numbers, fingerprint, NONE, || {
                worlds.push_back(birth.world.clone());
                birth.world[SPEC]
            });
        }
        let (mut actions, mut after) = (Vec::new(), Vec::new());
        let mut state = 0;
        while let Some(world) = worlds.pop_front() {
            graph.firsts.push(graph.targets.len() as u32);
            actions.clear();
            mind.expand(&world, graph.fingerprints[state], &mut actions);
            if let Some(index) = oracle.and_then(|oracle| mind.ample(oracle, &world, &actions)) {
                actions.swap(0, index);
                actions.truncate(1);
            }
            for action in &actions {
                let is_over = action.branch != NONE && {
                    let next = mind.flats[action.branch as usize].next;
                    mind.is_over(next)
                };
                let key = mind.key(&world, action);
                if action.breach != 0 || is_over {
                    graph.targets.push(NONE);
                    graph.keys.push(key);
                    continue;
                }
                if mind.is_wide {
                    mind.build(&world, action, &mut after);
                }
                let fingerprint = (action.fingerprint, mind.second(&after));
                let target = graph.number(&mut numbers, fingerprint, state as u32, || {
                    mind.build(&world, action, &mut after);
                    worlds.push_back(after.clone());
                    action.spec
                });
                graph.targets.push(target);
                graph.keys.push(key);
            }
            state += 1;
            if state.is_multiple_of(1024) {
                let needed = bytes(graph.len() as u64, graph.targets.len() as u64);
                if bytes_max < needed || hooks.is_cancelled() {
                    return None;
                }
            }
        }
        graph.firsts.push(graph.targets.len() as u32);
        Some((graph, mind))
    }

    /// The number of a state; a new one is put in the queue, and its spec noted.
    fn number(
        &mut self,
        numbers: &mut PairMap,
        (fingerprint, second): (u64, u64),
        parent: u32,
        enqueue: impl FnOnce() -> u32,
    ) -> u32 {
        let mut key = fingerprint;
        loop {
            let (high, low) = ((key >> 32) as u32, key as u32);
            match numbers.get(high, low) {
                Some(number) if self.seconds[number as usize] == second => return number,
                // Only one half is the same.
                Some(_) => key = key.wrapping_add(mix(second)),
                None => {
                    let number = self.fingerprints.len() as u32;
                    numbers.insert(high, low, number);
                    self.fingerprints.push(fingerprint);
                    self.seconds.push(second);
                    self.specs.push(enqueue());
                    self.parents.push(parent);
                    return number;
                }
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The steps out of a state.
    pub(crate) fn edges(&self, state: u32) -> std::ops::Range<usize> {
        let state = state as usize;
        self.firsts[state] as usize..self.firsts[state + 1] as usize
    }

    /// The run that begins at birth, goes to `start` the shortest way and on along `edges`.
    pub(crate) fn path(&self, mind: &mut Mind<'_>, start: u32, edges: &[usize]) -> Path {
        let mut states = vec![start];
        while let Some(&state) =
            states.last().filter(|&&state| self.parents[state as usize] != NONE)
        {
            states.push(self.parents[state as usize]);
        }
        states.reverse();
        let first = self.fingerprints[states[0] as usize];
        let birth = mind.births().into_iter().find(|birth| birth.fingerprint == first);
        let mut path = Path::new(birth.expect("runs begin at birth"));
        let hops = states[1..].iter().map(|&state| (state, None));
        let rounds = edges.iter().map(|&edge| (self.targets[edge], Some(self.keys[edge])));
        for (state, key) in hops.chain(rounds) {
            let mut actions = Vec::new();
            mind.expand(&path.end, path.fingerprint, &mut actions);
            let goal = self.fingerprints[state as usize];
            let fits = |action: &&Action| {
                let is_key = key.is_none_or(|key| mind.key(&path.end, action) == key);
                action.fingerprint == goal && is_key
            };
            let action = *actions.iter().find(fits).expect("the step was taken before");
            path.take(mind, action);
        }
        path
    }
}

impl Mind<'_> {
    /// What fairness takes an action for: the same message, the same timer, the same user.
    fn key(&self, world: &[u32], action: &Action) -> u32 {
        if !action.is_due {
            return NONE;
        }
        match Code::of(action.code) {
            Code::Hear(_) | Code::Lose => {
                let item = world[LOCALS + self.n + action.item as usize];
                match self.is_fifo {
                    true => {
                        let (from, to) = self.packets[self.queues[item as usize].head as usize];
                        1 << 29 | (from * self.n as u32 + to)
                    }
                    false => item,
                }
            }
            Code::Ask(_) => 2 << 29 | action.node,
            Code::Fire(timer) => 3 << 29 | timer,
            Code::Pass(_) => 5 << 29,
            _ => 4 << 29,
        }
    }
}
