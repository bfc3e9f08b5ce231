//! Breadth first, on many threads: all worlds so many steps away, then all one step further.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::ample::Oracle;
use crate::archive::Archive;
use crate::layer::Layer;
use crate::mind::{Action, Birth, Mind, NONE, SPEC};
use crate::visited::{Seen, Visited};
use crate::{Hooks, Progress, Stop};

/// A promise found broken: in a state, or in the step after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Number of the breach, plus one.
    pub(crate) breach: u32,
    /// The state, in the order of discovery, and its fingerprint.
    pub(crate) state: u32,
    pub(crate) fingerprint: u64,
    /// The fingerprint the last step would lead to; `None` if the run rests in the state.
    pub(crate) last: Option<u64>,
}

/// How every state was reached first: from which other, and eight bits of its own fingerprint to
/// find the step again by.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) parents: Vec<u32>,
    pub(crate) tags: Vec<u8>,
}

impl Log {
    /// How many steps a state is from the beginning.
    pub(crate) fn distance(&self, mut state: u32) -> u32 {
        let mut steps = 0;
        while self.parents[state as usize] != NONE {
            state = self.parents[state as usize];
            steps += 1;
        }
        steps
    }
}

pub(crate) fn tag(fingerprint: u64) -> u8 {
    (fingerprint >> 20) as u8
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) states: u64,
    pub(crate) transitions: u64,
    pub(crate) depth: u32,
    pub(crate) frontier_max: u64,
    pub(crate) memory: u64,
    pub(crate) unexpected: u64,
    pub(crate) ample_states: u64,
    pub(crate) ample_saved: u64,
    /// Whether a step led to a state found in an earlier layer: there may be a way round.
    pub(crate) turns_back: bool,
    pub(crate) beyond_epoch: bool,
}

pub(crate) struct Explored {
    pub(crate) tally: Tally,
    pub(crate) log: Log,
    pub(crate) findings: Vec<Finding>,
    pub(crate) stop: Option<Stop>,
    pub(crate) visited: Visited,
}

/// States a thread takes at a time.
const TASK: usize = 128;
/// Fingerprints looked for at once.
const BATCH: usize = 32;
/// States between two reports of progress.
const REPORT: u64 = 1 << 16;

/// What the threads of a round share.
struct Round<'a> {
    layer: &'a Layer,
    /// The number of the layer's first state.
    base: usize,
    tasks: &'a [Range<usize>],
    next_task: AtomicUsize,
    visited: &'a Visited,
    halt: AtomicBool,
    states: &'a AtomicU64,
    states_max: u64,
    /// How many bytes one thread's share of the next layer may take.
    bytes_max: u64,
    hooks: &'a Hooks<'a>,
    progress: Progress,
}

/// What one thread finds in a layer.
#[derive(Default)]
struct Haul {
    layer: Layer,
    tally: Tally,
    findings: Vec<Finding>,
    undone: Vec<Range<usize>>,
    stop: Option<Stop>,
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) depth_max: u32,
    pub(crate) states_max: u64,
}

pub(crate) fn explore<'a>(
    archive: &'a Archive<'a>,
    hooks: &Hooks<'_>,
    oracle: Option<&Oracle<'_>>,
    reach: Reach,
) -> Explored {
    let options = archive.setting.options;
    let mut minds: Vec<Mind<'a>> =
        (0..options.threads.max(1)).map(|_| Mind::new(archive)).collect();
    let mut explored = Explored {
        tally: Tally::default(),
        log: Log::default(),
        findings: Vec::new(),
        stop: None,
        visited: Visited::new(options),
    };
    let mut layer = explored.begin(&mut minds[0]);
    while !layer.is_empty() && explored.tally.depth < reach.depth_max {
        let (next, stop) =
            explored.live_through(&layer, &mut minds, hooks, oracle, reach.states_max);
        explored.end_layer(&next);
        let broken = !explored.findings.is_empty() && !options.keep_going;
        if let Some(stop) = if broken { Some(Stop::Broken) } else { stop } {
            explored.stop = Some(stop);
            break;
        }
        layer = next;
        explored.tally.depth += u32::from(!layer.is_empty());
    }
    if explored.stop.is_none() && explored.tally.beyond_epoch {
        explored.stop = Some(Stop::Epoch);
    }
    explored
}

impl Explored {
    fn begin(&mut self, mind: &mut Mind<'_>) -> Layer {
        let mut layer = Layer::default();
        for Birth { fingerprint, world, .. } in mind.births() {
            let second = mind.second(&world);
            loop {
                match self.visited.insert(fingerprint, second) {
                    Seen::New => layer.push(&world, fingerprint, second, NONE),
                    Seen::Full => {
                        self.visited.grow();
                        continue;
                    }
                    Seen::Fresh | Seen::Old => (),
                }
                break;
            }
        }
        self.tally.states = layer.len() as u64;
        self.end_layer(&layer);
        layer
    }

    /// Explores every state of a layer; what they lead to is the next.
    fn live_through(
        &mut self,
        layer: &Layer,
        minds: &mut [Mind<'_>],
        hooks: &Hooks<'_>,
        oracle: Option<&Oracle<'_>>,
        states_max: u64,
    ) -> (Layer, Option<Stop>) {
        let options = minds[0].setting.options;
        let base = self.log.parents.len() - layer.len();
        let states = AtomicU64::new(self.tally.states);
        let whole = 0..layer.len();
        let mut tasks: Vec<Range<usize>> =
            whole.step_by(TASK).map(|at| at..layer.len().min(at + TASK)).collect();
        let mut hauls: Vec<Haul> = minds.iter().map(|_| Haul::default()).collect();
        let mut stop = None;
        while stop.is_none() && !tasks.is_empty() {
            let fixed = self.bytes() + layer.bytes();
            let round = Round {
                layer,
                base,
                tasks: &tasks,
                next_task: AtomicUsize::new(0),
                visited: &self.visited,
                halt: AtomicBool::new(false),
                states: &states,
                states_max,
                bytes_max: options.memory_max.saturating_sub(fixed) / minds.len() as u64,
                hooks,
                progress: Progress {
                    states: 0,
                    transitions: self.tally.transitions,
                    depth: self.tally.depth,
                    frontier: layer.len() as u64,
                    memory: fixed,
                },
            };
            run(&round, minds, &mut hauls, oracle);
            let taken = round.next_task.load(Ordering::Relaxed).min(tasks.len());
            let mut rest = tasks.split_off(taken);
            rest.extend(hauls.iter_mut().flat_map(|haul| haul.undone.drain(..)));
            tasks = rest;
            stop = hauls.iter_mut().find_map(|haul| haul.stop.take());
            let held: u64 = hauls.iter().map(|haul| haul.layer.bytes()).sum();
            self.tally.memory = self.tally.memory.max(fixed + held);
            if self.visited.is_crowded() && stop.is_none() {
                match fixed + held + self.visited.bytes() / 2 <= options.memory_max {
                    true => self.visited.grow(),
                    false => stop = Some(Stop::Memory),
                }
            }
        }
        (self.gather(hauls), stop)
    }

    /// Takes in what the threads found.
    fn gather(&mut self, hauls: Vec<Haul>) -> Layer {
        let mut next = Layer::default();
        let tally = &mut self.tally;
        for haul in hauls {
            tally.states += haul.tally.states;
            tally.transitions += haul.tally.transitions;
            tally.unexpected += haul.tally.unexpected;
            tally.ample_states += haul.tally.ample_states;
            tally.ample_saved += haul.tally.ample_saved;
            tally.turns_back |= haul.tally.turns_back;
            tally.beyond_epoch |= haul.tally.beyond_epoch;
            self.findings.extend(haul.findings);
            next.append(haul.layer);
        }
        next
    }

    fn end_layer(&mut self, layer: &Layer) {
        // Once a step is known to lead back, nobody asks any more which do.
        if !self.tally.turns_back {
            for (index, batch) in layer.fingerprints.chunks(BATCH).enumerate() {
                self.visited.glance(batch.iter().copied());
                for (position, &fingerprint) in (index * BATCH..).zip(batch) {
                    self.visited.age(fingerprint, layer.second(position));
                }
            }
        }
        self.log.tags.extend(layer.fingerprints.iter().copied().map(tag));
        self.log.parents.extend_from_slice(&layer.parents);
        self.tally.frontier_max = self.tally.frontier_max.max(layer.len() as u64);
    }

    fn bytes(&self) -> u64 {
        self.visited.bytes() + (self.log.parents.capacity() * 4 + self.log.tags.capacity()) as u64
    }
}

fn run(round: &Round<'_>, minds: &mut [Mind<'_>], hauls: &mut [Haul], oracle: Option<&Oracle<'_>>) {
    if let ([mind], [haul]) = (&mut *minds, &mut *hauls) {
        return work(round, mind, haul, oracle);
    }
    std::thread::scope(|scope| {
        for (mind, haul) in minds.iter_mut().zip(hauls) {
            scope.spawn(|| work(round, mind, haul, oracle));
        }
    });
}

fn work(round: &Round<'_>, mind: &mut Mind<'_>, haul: &mut Haul, oracle: Option<&Oracle<'_>>) {
    let mut worker = Worker { round, mind, haul, oracle, actions: Vec::new(), world: Vec::new() };
    while !round.halt.load(Ordering::Relaxed) && !round.visited.is_crowded() {
        let Some(task) = round.tasks.get(round.next_task.fetch_add(1, Ordering::Relaxed)) else {
            return;
        };
        let before = worker.haul.tally.states;
        for position in task.clone() {
            if !worker.explore(position) {
                worker.haul.undone.push(position..task.end);
                break;
            }
        }
        worker.report(before);
    }
}

struct Worker<'a, 'b, 'c> {
    round: &'a Round<'a>,
    mind: &'a mut Mind<'b>,
    haul: &'a mut Haul,
    oracle: Option<&'a Oracle<'c>>,
    actions: Vec<Action>,
    world: Vec<u32>,
}

impl Worker<'_, '_, '_> {
    /// Tries everything that may happen next in one state. `false` if there was no room for it.
    fn explore(&mut self, position: usize) -> bool {
        let (world, fingerprint) = self.round.layer.get(position);
        let state = (self.round.base + position) as u32;
        let is_due = self.mind.expand(world, fingerprint, &mut self.actions);
        let mut findings = Vec::new();
        if !is_due && !self.mind.is_lossy {
            match self.mind.at_rest(world[SPEC]) {
                0 => (),
                breach => findings.push(Finding { breach, state, fingerprint, last: None }),
            }
        }
        let all = self.actions.len() as u64;
        if let Some(oracle) = self.oracle
            && let Some(index) = self.mind.ample(oracle, world, &self.actions)
        {
            self.actions.swap(0, index);
            self.actions.truncate(1);
            self.haul.tally.ample_states += 1;
            self.haul.tally.ample_saved += all - 1;
        }
        let mut unexpected = 0;
        self.round.visited.glance(self.actions.iter().map(|action| action.fingerprint));
        for index in 0..self.actions.len() {
            let action = self.actions[index];
            if action.breach != 0 {
                let last = Some(action.fingerprint);
                findings.push(Finding { breach: action.breach, state, fingerprint, last });
                continue;
            }
            if action.branch != NONE {
                unexpected += u64::from(self.mind.flats[action.branch as usize].unexpected);
            }
            let second = self.second(world, &action);
            match self.round.visited.insert(action.fingerprint, second) {
                Seen::New => self.discover(world, &action, second, state),
                Seen::Fresh => (),
                Seen::Old => self.haul.tally.turns_back = true,
                Seen::Full => return false,
            }
        }
        self.haul.tally.transitions += self.actions.len() as u64;
        self.haul.tally.unexpected += unexpected;
        self.haul.findings.append(&mut findings);
        true
    }

    /// The other half of the fingerprint of the world after `action`.
    #[inline]
    fn second(&mut self, world: &[u32], action: &Action) -> u64 {
        if !self.mind.is_wide {
            return 0;
        }
        self.mind.build(world, action, &mut self.world);
        self.mind.second(&self.world)
    }

    fn discover(&mut self, world: &[u32], action: &Action, second: u64, state: u32) {
        self.haul.tally.states += 1;
        if action.branch != NONE {
            let next = self.mind.flats[action.branch as usize].next;
            if self.mind.is_over(next) {
                self.haul.tally.beyond_epoch = true;
                return;
            }
        }
        self.mind.build(world, action, &mut self.world);
        self.haul.layer.push(&self.world, action.fingerprint, second, state);
    }

    fn report(&mut self, before: u64) {
        let round = self.round;
        let found = self.haul.tally.states - before;
        let states = round.states.fetch_add(found, Ordering::Relaxed) + found;
        let stop = if round.states_max <= states {
            Some(Stop::States)
        } else if round.bytes_max < self.haul.layer.bytes() {
            Some(Stop::Memory)
        } else if round.hooks.is_cancelled() {
            Some(Stop::Cancelled)
        } else {
            None
        };
        if stop.is_some() {
            self.haul.stop = stop;
            round.halt.store(true, Ordering::Relaxed);
        }
        if states / REPORT != (states - found) / REPORT {
            let transitions = round.progress.transitions + self.haul.tally.transitions;
            round.hooks.report(Progress { states, transitions, ..round.progress });
        }
    }
}
