//! Random runs, on many threads: for systems of which even the states do not fit. What is found
//! broken is broken; what is not proves nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use vez_core::{Chance, Seeded};

use crate::archive::{Archive, open};
use crate::bfs::{Explored, Finding, Log, Tally, tag};
use crate::mind::{Mind, NONE, SPEC};
use crate::visited::{Seen, Visited};
use crate::{Hooks, Progress, Stop};

/// Enough to tell a hundred million states apart well enough to count them.
const BITS_BYTES: u64 = 128 << 20;

/// Which runs to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walks {
    pub(crate) count: u64,
    pub(crate) steps_max: u32,
    pub(crate) seed: u64,
}

struct Shared<'a> {
    walks: Walks,
    next: AtomicU64,
    halt: AtomicBool,
    states: AtomicU64,
    steps: AtomicU64,
    visited: &'a Visited,
    /// The runs that broke something, as fingerprints, and how they ended.
    broken: Mutex<Vec<(Vec<u64>, Finding)>>,
    hooks: &'a Hooks<'a>,
}

pub(crate) fn explore<'a>(archive: &'a Archive<'a>, walks: Walks, hooks: &Hooks<'_>) -> Explored {
    let options = archive.setting.options;
    let bytes = BITS_BYTES.min(options.memory_max / 2);
    let visited = Visited::bits(options.reductions.bitstate.unwrap_or(bytes));
    let shared = Shared {
        walks,
        next: AtomicU64::new(0),
        halt: AtomicBool::new(false),
        states: AtomicU64::new(0),
        steps: AtomicU64::new(0),
        visited: &visited,
        broken: Mutex::new(Vec::new()),
        hooks,
    };
    let depth = std::thread::scope(|scope| {
        let work = || wander(Mind::new(archive), &shared);
        let threads: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no walk panics")).max()
    });
    let Shared { states, steps, broken, .. } = shared;
    let broken = broken.into_inner().unwrap_or_default();
    let (mut log, mut findings) = (Log::default(), Vec::new());
    for (fingerprints, finding) in broken {
        for (index, &fingerprint) in fingerprints.iter().enumerate() {
            let before = (log.parents.len() as u32).wrapping_sub(1);
            log.parents.push(if index == 0 { NONE } else { before });
            log.tags.push(tag(fingerprint));
        }
        findings.push(Finding { state: log.parents.len() as u32 - 1, ..finding });
    }
    let tally = Tally {
        states: states.into_inner(),
        transitions: steps.into_inner(),
        depth: depth.unwrap_or(0),
        memory: visited.bytes(),
        turns_back: true,
        ..Tally::default()
    };
    let stop = match findings.is_empty() {
        true if hooks.is_cancelled() => Stop::Cancelled,
        true => Stop::Walks,
        false => Stop::Broken,
    };
    Explored { tally, log, findings, stop: Some(stop), visited }
}

/// Takes walks until there are no more; returns the length of the longest.
fn wander(mut mind: Mind<'_>, shared: &Shared<'_>) -> u32 {
    let mut longest = 0;
    while !shared.halt.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if shared.walks.count <= number || shared.hooks.is_cancelled() {
            break;
        }
        let mut chance = Seeded::stream(shared.walks.seed, number);
        let (fingerprints, finding) = walk(&mut mind, shared, &mut chance);
        longest = longest.max(fingerprints.len() as u32 - 1);
        let steps = fingerprints.len() as u64 - 1;
        let transitions = shared.steps.fetch_add(steps, Ordering::Relaxed) + steps;
        if let Some(finding) = finding {
            open(&shared.broken).push((fingerprints, finding));
            shared.halt.store(!mind.setting.options.keep_going, Ordering::Relaxed);
        }
        if number.is_multiple_of(1024) {
            shared.hooks.report(Progress {
                states: shared.states.load(Ordering::Relaxed),
                transitions,
                depth: longest,
                frontier: shared.walks.count - number,
                memory: shared.visited.bytes(),
            });
        }
    }
    longest
}

fn walk(
    mind: &mut Mind<'_>,
    shared: &Shared<'_>,
    chance: &mut Seeded,
) -> (Vec<u64>, Option<Finding>) {
    let mut births = mind.births();
    let birth = births.swap_remove(chance.below(births.len() as u32) as usize);
    let (mut world, mut fingerprint) = (birth.world, birth.fingerprint);
    let mut fingerprints = vec![fingerprint];
    let (mut actions, mut after) = (Vec::new(), Vec::new());
    let found = |breach, fingerprint, last| Some(Finding { breach, state: 0, fingerprint, last });
    for _ in 0..shared.walks.steps_max {
        let is_new = shared.visited.insert(fingerprint, 0) == Seen::New;
        shared.states.fetch_add(u64::from(is_new), Ordering::Relaxed);
        actions.clear();
        let is_due = mind.expand(&world, fingerprint, &mut actions);
        if !is_due && !mind.is_lossy {
            let breach = mind.at_rest(world[SPEC]);
            if breach != 0 {
                return (fingerprints, found(breach, fingerprint, None));
            }
        }
        if actions.is_empty() {
            break;
        }
        let action = actions[chance.below(actions.len() as u32) as usize];
        if action.breach != 0 {
            return (fingerprints, found(action.breach, fingerprint, Some(action.fingerprint)));
        }
        mind.build(&world, &action, &mut after);
        std::mem::swap(&mut world, &mut after);
        fingerprint = action.fingerprint;
        fingerprints.push(fingerprint);
    }
    (fingerprints, None)
}
