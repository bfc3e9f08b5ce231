//! Breadth first, on many threads: all worlds so many steps away, then all one step further.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::ample::Oracle;
use crate::archive::Archive;
use crate::layer::{Frontier, Layer, Task};
use crate::mind::{Action, Birth, Mind, NONE, SPEC};
use crate::symmetry::Symmetry;
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
    /// In how many ways everyone was renamed.
    pub(crate) renamings: u64,
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
/// States it explores together.
const GROUP: usize = 16;
/// Layers with fewer states are one thread's: to wake the others would take longer.
const SHARED: usize = 4 * TASK;
/// Fingerprints looked for at once.
const BATCH: usize = 32;
/// States between two reports of progress.
const REPORT: u64 = 1 << 16;

/// What the threads of a round share.
struct Round<'a> {
    frontier: &'a Frontier,
    /// The number of the frontier's first state.
    base: usize,
    tasks: &'a [Task],
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
    undone: Vec<Task>,
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
    symmetry: Option<&Arc<Symmetry>>,
    reach: Reach,
) -> Explored {
    let options = archive.setting.options;
    let mind = |_| Mind { symmetry: symmetry.cloned(), ..Mind::new(archive) };
    let mut minds: Vec<Mind<'a>> = (0..options.threads.max(1)).map(mind).collect();
    let renamings = symmetry.map_or(1, |symmetry| symmetry.order() as u64);
    let mut explored = Explored {
        // Where others stand for a state, whether a step leads back to it is not noticed.
        tally: Tally { turns_back: symmetry.is_some(), renamings, ..Tally::default() },
        log: Log::default(),
        findings: Vec::new(),
        stop: None,
        visited: Visited::new(options),
    };
    let mut frontier = explored.begin(&mut minds[0]);
    let mut next = Frontier::default();
    let is_broken = || symmetry.is_some_and(|symmetry| symmetry.is_broken());
    while 0 < frontier.len() && explored.tally.depth < reach.depth_max && !is_broken() {
        next.clear();
        next.shares.resize_with(minds.len(), Layer::default);
        let states_max = reach.states_max;
        let stop =
            explored.live_through(&frontier, &mut next, &mut minds, hooks, oracle, states_max);
        explored.end_layer(&next);
        let broken = !explored.findings.is_empty() && !options.keep_going;
        if let Some(stop) = if broken { Some(Stop::Broken) } else { stop } {
            explored.stop = Some(stop);
            break;
        }
        mem::swap(&mut frontier, &mut next);
        explored.tally.depth += u32::from(0 < frontier.len());
    }
    if explored.stop.is_none() && explored.tally.beyond_epoch {
        explored.stop = Some(Stop::Epoch);
    }
    explored
}

impl Explored {
    fn begin(&mut self, mind: &mut Mind<'_>) -> Frontier {
        let mut layer = Layer::default();
        for Birth { fingerprint, world, .. } in mind.births() {
            let second = mind.second(&world);
            let likeness = mind.likeness(&world);
            loop {
                match self.visited.insert(likeness, second) {
                    Seen::New => layer.push(&world, fingerprint, second, NONE),
                    Seen::Full => {
                        self.visited.grow(1);
                        continue;
                    }
                    Seen::Fresh | Seen::Old => (),
                }
                break;
            }
        }
        self.tally.states = layer.len() as u64;
        self.visited.note(layer.len());
        let frontier = Frontier { shares: vec![layer] };
        self.end_layer(&frontier);
        frontier
    }

    /// Explores every state of a frontier; what they lead to is the next.
    fn live_through(
        &mut self,
        frontier: &Frontier,
        next: &mut Frontier,
        minds: &mut [Mind<'_>],
        hooks: &Hooks<'_>,
        oracle: Option<&Oracle<'_>>,
        states_max: u64,
    ) -> Option<Stop> {
        let options = minds[0].setting.options;
        let base = self.log.parents.len() - frontier.len();
        let states = AtomicU64::new(self.tally.states);
        let mut tasks = frontier.tasks(TASK);
        let layers = mem::take(&mut next.shares).into_iter();
        let mut hauls: Vec<Haul> = layers.map(|layer| Haul { layer, ..Haul::default() }).collect();
        let mut stop = None;
        while stop.is_none() && !tasks.is_empty() {
            let fixed = self.bytes() + frontier.bytes();
            let round = Round {
                frontier,
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
                    frontier: frontier.len() as u64,
                    memory: fixed,
                },
            };
            run(&round, minds, &mut hauls, oracle);
            let taken = round.next_task.load(Ordering::Relaxed).min(tasks.len());
            let rest = tasks.split_off(taken);
            // First what is left of those begun: which way is found first does not depend on when
            // the tables grew.
            tasks = hauls.iter_mut().flat_map(|haul| haul.undone.drain(..)).collect();
            tasks.extend(rest);
            stop = hauls.iter_mut().find_map(|haul| haul.stop.take());
            let held: u64 = hauls.iter().map(|haul| haul.layer.bytes()).sum();
            self.tally.memory = self.tally.memory.max(fixed + held);
            if self.visited.is_crowded() && stop.is_none() {
                match fixed + held + self.visited.bytes() / 2 <= options.memory_max {
                    true => self.visited.grow(minds.len()),
                    false => stop = Some(Stop::Memory),
                }
            }
        }
        for haul in hauls {
            let layer = self.gather(haul);
            next.shares.push(layer);
        }
        stop
    }

    /// Takes in what a thread found.
    fn gather(&mut self, haul: Haul) -> Layer {
        let tally = &mut self.tally;
        tally.states += haul.tally.states;
        tally.transitions += haul.tally.transitions;
        tally.unexpected += haul.tally.unexpected;
        tally.ample_states += haul.tally.ample_states;
        tally.ample_saved += haul.tally.ample_saved;
        tally.turns_back |= haul.tally.turns_back;
        tally.beyond_epoch |= haul.tally.beyond_epoch;
        self.findings.extend(haul.findings);
        haul.layer
    }

    fn end_layer(&mut self, frontier: &Frontier) {
        // Once a step is known to lead back, nobody asks any more which do.
        if !self.tally.turns_back {
            let visited = &self.visited;
            let is_shared = SHARED <= frontier.len();
            thread::scope(|scope| {
                let mut shares = frontier.shares.iter();
                let first = shares.next();
                for layer in shares {
                    match is_shared {
                        true => drop(scope.spawn(|| age(visited, layer))),
                        false => age(visited, layer),
                    }
                }
                if let Some(layer) = first {
                    age(visited, layer);
                }
            });
        }
        for layer in &frontier.shares {
            self.log.tags.extend(layer.fingerprints.iter().copied().map(tag));
            self.log.parents.extend_from_slice(&layer.parents);
        }
        self.tally.frontier_max = self.tally.frontier_max.max(frontier.len() as u64);
    }

    fn bytes(&self) -> u64 {
        self.visited.bytes() + (self.log.parents.capacity() * 4 + self.log.tags.capacity()) as u64
    }
}

fn age(visited: &Visited, layer: &Layer) {
    for (index, batch) in layer.fingerprints.chunks(BATCH).enumerate() {
        visited.glance(batch.iter().copied());
        for (position, &fingerprint) in (index * BATCH..).zip(batch) {
            visited.age(fingerprint, layer.second(position));
        }
    }
}

fn run(round: &Round<'_>, minds: &mut [Mind<'_>], hauls: &mut [Haul], oracle: Option<&Oracle<'_>>) {
    let crew = if round.tasks.len() * TASK < SHARED { 1 } else { minds.len() };
    let mut crew = minds.iter_mut().zip(hauls).take(crew);
    thread::scope(|scope| {
        let first = crew.next();
        for (mind, haul) in crew {
            scope.spawn(|| work(round, mind, haul, oracle));
        }
        if let Some((mind, haul)) = first {
            work(round, mind, haul, oracle);
        }
    });
}

fn work(round: &Round<'_>, mind: &mut Mind<'_>, haul: &mut Haul, oracle: Option<&Oracle<'_>>) {
    let mut worker = Worker {
        round,
        mind,
        haul,
        oracle,
        actions: Vec::new(),
        ends: Vec::new(),
        world: Vec::new(),
    };
    while !round.halt.load(Ordering::Relaxed) && !round.visited.is_crowded() {
        let Some(task) = round.tasks.get(round.next_task.fetch_add(1, Ordering::Relaxed)) else {
            return;
        };
        let before = worker.haul.tally.states;
        let Range { start, end } = task.places;
        for first in (start..end).step_by(GROUP) {
            if let Err(full) = worker.explore(task, first..end.min(first + GROUP)) {
                worker.haul.undone.push(Task { places: full..end, ..*task });
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
    /// All that may happen next in a group of states, and where that of each state ends.
    actions: Vec<Action>,
    ends: Vec<usize>,
    world: Vec<u32>,
}

impl Worker<'_, '_, '_> {
    /// Tries everything that may happen next in some states; or says for which there was no room.
    ///
    /// What comes of all is worked out before any of it is looked for: the tables are large, and
    /// looking in many places at once takes hardly longer than looking in one.
    fn explore(&mut self, task: &Task, places: Range<usize>) -> Result<(), usize> {
        self.actions.clear();
        self.ends.clear();
        let layer = &self.round.frontier.shares[task.share];
        let findings = self.haul.findings.len();
        for place in places.clone() {
            let (world, fingerprint) = layer.get(place);
            let state = (self.round.base + task.before + place) as u32;
            self.expand(world, fingerprint, state);
        }
        self.round.visited.glance(self.actions.iter().map(|action| action.fingerprint));
        let (actions, ends) = (mem::take(&mut self.actions), mem::take(&mut self.ends));
        let mut first = 0;
        let full = places.zip(&ends).find_map(|(place, &end)| {
            let (world, fingerprint) = layer.get(place);
            let state = (self.round.base + task.before + place) as u32;
            let is_done = self.insert(world, fingerprint, state, &actions[first..end]);
            first = end;
            (!is_done).then_some((place, state))
        });
        (self.actions, self.ends) = (actions, ends);
        let Some((place, state)) = full else { return Ok(()) };
        // What the states from there on break will be found again.
        let found = self.haul.findings.split_off(findings);
        self.haul.findings.extend(found.into_iter().filter(|finding| finding.state < state));
        Err(place)
    }

    /// Lists what may happen next in one state, or what of it is enough.
    fn expand(&mut self, world: &[u32], fingerprint: u64, state: u32) {
        let first = self.actions.len();
        let is_due = self.mind.expand(world, fingerprint, &mut self.actions);
        if !is_due && !self.mind.is_lossy {
            match self.mind.at_rest(world[SPEC]) {
                0 => (),
                breach => {
                    self.haul.findings.push(Finding { breach, state, fingerprint, last: None });
                }
            }
        }
        if let Some(oracle) = self.oracle
            && let Some(index) = self.mind.ample(oracle, world, &self.actions[first..])
        {
            self.haul.tally.ample_states += 1;
            self.haul.tally.ample_saved += (self.actions.len() - first) as u64 - 1;
            self.actions.swap(first, first + index);
            self.actions.truncate(first + 1);
        }
        self.ends.push(self.actions.len());
    }

    /// Looks up where one state's actions lead. `false` if there was no room.
    fn insert(&mut self, world: &[u32], fingerprint: u64, state: u32, actions: &[Action]) -> bool {
        let mut unexpected = 0;
        for action in actions {
            if action.breach != 0 {
                let last = Some(action.fingerprint);
                let breach = action.breach;
                self.haul.findings.push(Finding { breach, state, fingerprint, last });
                continue;
            }
            unexpected += u64::from(action.is_unexpected);
            let (fingerprint, second) = self.prints(world, action);
            match self.round.visited.insert(fingerprint, second) {
                Seen::New => self.discover(world, action, second, state),
                Seen::Fresh => (),
                Seen::Old => self.haul.tally.turns_back = true,
                Seen::Full => return false,
            }
        }
        self.haul.tally.transitions += actions.len() as u64;
        self.haul.tally.unexpected += unexpected;
        true
    }

    /// What the world after `action` is remembered by.
    #[inline]
    fn prints(&mut self, world: &[u32], action: &Action) -> (u64, u64) {
        if !self.mind.is_wide && self.mind.symmetry.is_none() {
            return (action.fingerprint, 0);
        }
        self.mind.build(world, action, &mut self.world);
        if self.mind.symmetry.is_some() {
            return (self.mind.likeness(&self.world), 0);
        }
        (action.fingerprint, self.mind.second(&self.world))
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
        round.visited.note(found as usize);
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
