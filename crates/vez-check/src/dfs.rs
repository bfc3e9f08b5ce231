//! Depth first: every state too, but what waits to be explored is only what branches off one path.
//! For systems whose layers do not fit; what is found broken is not broken the shortest way.

use crate::ample::Oracle;
use crate::archive::Archive;
use crate::bfs::{Explored, Finding, Log, Tally, tag};
use crate::mind::{Mind, NONE, SPEC};
use crate::visited::{Seen, Visited};
use crate::{Hooks, Progress, Stop};

/// A state to be explored: its world, its fingerprint, its number and its distance.
type Waiting = (Vec<u32>, u64, u32, u32);

/// States between two looks at the limits.
const PAUSE: u64 = 1 << 12;

pub(crate) fn explore<'a>(
    archive: &'a Archive<'a>,
    hooks: &Hooks<'_>,
    oracle: Option<&Oracle<'_>>,
) -> Explored {
    let options = archive.setting.options;
    let mut mind = Mind::new(archive);
    let mut explored = Explored {
        // Whether a step leads back is not noticed here.
        tally: Tally { turns_back: true, ..Tally::default() },
        log: Log::default(),
        findings: Vec::new(),
        stop: None,
        visited: Visited::new(options),
    };
    let mut stack: Vec<Waiting> = Vec::new();
    for birth in mind.births() {
        let second = mind.second(&birth.world);
        explored.discover((birth.fingerprint, second), NONE, 0, birth.world, &mut stack);
    }
    let mut actions = Vec::new();
    while let Some((world, fingerprint, state, depth)) = stack.pop() {
        actions.clear();
        let is_due = mind.expand(&world, fingerprint, &mut actions);
        if !is_due && !mind.is_lossy {
            match mind.at_rest(world[SPEC]) {
                0 => (),
                breach => {
                    explored.findings.push(Finding { breach, state, fingerprint, last: None });
                }
            }
        }
        if let Some(oracle) = oracle
            && let Some(index) = mind.ample(oracle, &world, &actions)
        {
            explored.tally.ample_states += 1;
            explored.tally.ample_saved += actions.len() as u64 - 1;
            actions.swap(0, index);
            actions.truncate(1);
        }
        explored.tally.transitions += actions.len() as u64;
        for action in &actions {
            if action.breach != 0 {
                let (breach, last) = (action.breach, Some(action.fingerprint));
                explored.findings.push(Finding { breach, state, fingerprint, last });
                continue;
            }
            let mut after = Vec::new();
            if action.branch != NONE {
                let flat = mind.flats[action.branch as usize];
                explored.tally.unexpected += u64::from(flat.unexpected);
                if mind.is_over(flat.next) {
                    explored.tally.beyond_epoch = true;
                    continue;
                }
            }
            mind.build(&world, action, &mut after);
            let fingerprint = (action.fingerprint, mind.second(&after));
            explored.discover(fingerprint, state, depth + 1, after, &mut stack);
        }
        let broken = !explored.findings.is_empty() && !options.keep_going;
        explored.stop =
            if broken { Some(Stop::Broken) } else { explored.limit(&stack, options, hooks) };
        if explored.stop.is_some() {
            break;
        }
    }
    if explored.stop.is_none() && explored.tally.beyond_epoch {
        explored.stop = Some(Stop::Epoch);
    }
    explored
}

impl Explored {
    fn discover(
        &mut self,
        (fingerprint, second): (u64, u64),
        parent: u32,
        depth: u32,
        world: Vec<u32>,
        stack: &mut Vec<Waiting>,
    ) {
        let seen = loop {
            match self.visited.insert(fingerprint, second) {
                Seen::Full => self.visited.grow(1),
                seen => break seen,
            }
        };
        if seen == Seen::New {
            self.visited.note(1);
            if self.visited.is_crowded() {
                self.visited.grow(1);
            }
            let state = self.log.parents.len() as u32;
            self.log.parents.push(parent);
            self.log.tags.push(tag(fingerprint));
            stack.push((world, fingerprint, state, depth));
            self.tally.states += 1;
            self.tally.depth = self.tally.depth.max(depth);
            self.tally.frontier_max = self.tally.frontier_max.max(stack.len() as u64);
        }
    }

    /// Whether it is time to stop.
    fn limit(
        &mut self,
        stack: &[Waiting],
        options: &crate::Options,
        hooks: &Hooks<'_>,
    ) -> Option<Stop> {
        if !self.tally.states.is_multiple_of(PAUSE) {
            return (options.states_max <= self.tally.states).then_some(Stop::States);
        }
        let world = stack.last().map_or(0, |(world, ..)| world.len() * 4 + 40);
        let memory =
            self.visited.bytes() + (self.log.parents.capacity() * 5 + stack.len() * world) as u64;
        self.tally.memory = self.tally.memory.max(memory);
        hooks.report(Progress {
            states: self.tally.states,
            transitions: self.tally.transitions,
            depth: self.tally.depth,
            frontier: stack.len() as u64,
            memory,
        });
        if options.memory_max < memory {
            Some(Stop::Memory)
        } else if hooks.is_cancelled() {
            Some(Stop::Cancelled)
        } else {
            None
        }
    }
}
