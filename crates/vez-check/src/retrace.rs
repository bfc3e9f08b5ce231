//! Finding the way back: from the log of who was found from whom to the steps of a run.

use crate::bfs::{Finding, Log, tag};
use crate::code::Code;
use crate::knowledge::Move;
use crate::mind::{Action, Birth, LOCALS, Mind, NONE, WEATHER};

/// A run: how it began, and each step with the world it was taken in.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) birth: Birth,
    pub(crate) steps: Vec<(Vec<u32>, Action)>,
    /// The world the run ends in.
    pub(crate) end: Vec<u32>,
    pub(crate) fingerprint: u64,
}

struct Frame {
    world: Vec<u32>,
    fingerprint: u64,
    actions: Vec<Action>,
    next: usize,
}

/// The run that led to a finding, its last step included.
pub(crate) fn retrace(mind: &mut Mind<'_>, log: &Log, finding: &Finding) -> Option<Path> {
    let mut tags = Vec::new();
    let mut state = finding.state;
    while state != NONE {
        tags.push(log.tags[state as usize]);
        state = log.parents[state as usize];
    }
    tags.reverse();
    let births = mind.births().into_iter().filter(|birth| tag(birth.fingerprint) == tags[0]);
    let mut paths = births.collect::<Vec<_>>().into_iter();
    let mut path = paths.find_map(|birth| follow(mind, birth, &tags[1..], finding.fingerprint))?;
    if let Some(last) = finding.last {
        let mut actions = Vec::new();
        mind.expand(&path.end, path.fingerprint, &mut actions);
        let is_last =
            |action: &&Action| action.fingerprint == last && action.breach == finding.breach;
        let action = *actions.iter().find(is_last)?;
        path.take(mind, action);
    }
    Some(path)
}

impl Path {
    pub(crate) fn new(birth: Birth) -> Self {
        let (end, fingerprint) = (birth.world.clone(), birth.fingerprint);
        Self { birth, steps: Vec::new(), end, fingerprint }
    }

    pub(crate) fn take(&mut self, mind: &mut Mind<'_>, action: Action) {
        let mut after = Vec::new();
        mind.build(&self.end, &action, &mut after);
        let world = std::mem::replace(&mut self.end, after);
        self.steps.push((world, action));
        self.fingerprint = action.fingerprint;
    }

    /// How everyone was born, and every step, for who tells the run.
    pub(crate) fn moves(&self, mind: &mut Mind<'_>) -> (Vec<Move>, Vec<Move>) {
        let mut unborn = vec![0, 0];
        unborn.extend(0..mind.n as u32);
        let boots = self.birth.boots.iter().map(|boot| mind.movement(&unborn, boot)).collect();
        let steps = self.steps.iter().map(|(world, action)| mind.movement(world, action));
        (boots, steps.collect())
    }
}

impl Mind<'_> {
    fn movement(&mut self, world: &[u32], action: &Action) -> Move {
        let local = match action.node {
            NONE => NONE,
            node => world[LOCALS + node as usize],
        };
        let way = match action.branch {
            NONE => 0,
            branch => branch - self.answers(local, action.code).0,
        };
        let packet = match action.item {
            NONE => NONE,
            index => {
                let item = world[LOCALS + self.n + index as usize];
                if self.is_fifo { self.queue(item).head } else { item }
            }
        };
        Move {
            code: Code::of(action.code),
            node: action.node,
            local,
            way,
            packet,
            uses_up: action.uses_up,
            side: self.weather(world[WEATHER]).side,
        }
    }
}

/// Steps whose fingerprints have these tags, ending in the one asked for. Eight bits may mislead
/// for a step or two; then it turns round.
fn follow(mind: &mut Mind<'_>, birth: Birth, tags: &[u8], goal: u64) -> Option<Path> {
    let mut frames = vec![open(mind, birth.world.clone(), birth.fingerprint)];
    loop {
        let level = frames.len() - 1;
        let frame = frames.last_mut()?;
        if level == tags.len() {
            if frame.fingerprint == goal {
                break;
            }
            frame.next = frame.actions.len();
        }
        let rest = frame.actions[frame.next..].iter();
        let fits = |action: &Action| {
            action.breach == 0 && tags.get(level) == Some(&tag(action.fingerprint))
        };
        let Some(skip) = rest.clone().position(fits) else {
            frames.pop();
            if frames.is_empty() {
                return None;
            }
            continue;
        };
        let action = frame.actions[frame.next + skip];
        frame.next += skip + 1;
        let mut after = Vec::new();
        mind.build(&frame.world, &action, &mut after);
        frames.push(open(mind, after, action.fingerprint));
    }
    let end = frames.pop()?;
    let steps = frames.into_iter().map(|frame| {
        let action = frame.actions[frame.next - 1];
        (frame.world, action)
    });
    Some(Path { birth, steps: steps.collect(), end: end.world, fingerprint: end.fingerprint })
}

fn open(mind: &mut Mind<'_>, world: Vec<u32>, fingerprint: u64) -> Frame {
    let mut actions = Vec::new();
    mind.expand(&world, fingerprint, &mut actions);
    Frame { world, fingerprint, actions, next: 0 }
}
