//! Everything there is: all arrangements and all sets of initiators, on the reference schedule.

use std::sync::atomic::AtomicBool;

use vez_core::Time;

use super::{Candidate, Finding, Quest, Scored};
use crate::sweep::crew;

/// What there is to enumerate.
pub(super) struct Space {
    /// How many uids change places: on a ring all but one, since rotations are alike.
    movable: u32,
    /// Whether the largest uid stays at the first place.
    anchored: bool,
    arrangements: Option<u64>,
    initiator_sets: Option<u64>,
}

impl Space {
    pub(super) fn of(quest: &Quest) -> Self {
        let (movable, anchored) = match quest.arrangement_matters() {
            false => (0, false),
            true if quest.is_ring() => (quest.n - 1, true),
            true => (quest.n, false),
        };
        let arrangements = (1..=u64::from(movable)).try_fold(1, u64::checked_mul);
        let initiator_sets = match quest.all_start {
            true => Some(1),
            false => 1_u64.checked_shl(quest.n).map(|sets| sets - 1),
        };
        Self { movable, anchored, arrangements, initiator_sets }
    }

    pub(super) fn runs(&self) -> Option<u64> {
        self.arrangements?.checked_mul(self.initiator_sets?)
    }

    /// The arrangement of this number, in mixed radix: which of those left comes next.
    fn uids(&self, quest: &Quest, mut number: u64) -> Vec<u64> {
        let n = u64::from(quest.n);
        if self.movable == 0 {
            return (1..=n).collect();
        }
        let mut left: Vec<u64> = (1..=u64::from(self.movable)).collect();
        let mut uids = if self.anchored { vec![n] } else { Vec::new() };
        for size in (1..=u64::from(self.movable)).rev() {
            let index = number % size;
            number /= size;
            uids.push(left.remove(index as usize));
        }
        uids
    }

    fn starts(&self, quest: &Quest, number: u64) -> Vec<Option<Time>> {
        // From all on down, so that of equals the one with most initiators is shown.
        let sets = self.initiator_sets.unwrap_or(1);
        let mask = if quest.all_start { u64::MAX } else { sets - number };
        (0..quest.n).map(|node| (mask >> node & 1 == 1).then_some(Time::ZERO)).collect()
    }
}

/// What one job found.
struct Part {
    best: Option<Scored>,
    runs: u64,
    refused: u64,
}

/// Runs all of `space`. Of equals the first in order is kept, whatever thread found it.
pub(super) fn enumerate(
    quest: &Quest,
    space: &Space,
    stop: &AtomicBool,
    finding: &mut Finding,
    mut told: impl FnMut(u64, Option<f64>),
) {
    let (arrangements, sets) = (space.arrangements.unwrap_or(0), space.initiator_sets.unwrap_or(0));
    let Ok(topology) = quest.topology() else { return };
    let config = config(quest);
    // A job is a set of initiators for some arrangements: enough of them to be worth a thread.
    let blocks = arrangements.div_ceil(BLOCK);
    let work = |job: usize| {
        let (set, block) = (job as u64 / blocks, job as u64 % blocks);
        let mut part = Part { best: None, runs: 0, refused: 0 };
        let starts = space.starts(quest, set);
        for number in block * BLOCK..arrangements.min((block + 1) * BLOCK) {
            let uids = space.uids(quest, number);
            let candidate = Candidate {
                uids,
                starts: starts.clone(),
                delays: std::collections::BTreeMap::new(),
            };
            part.runs += 1;
            match quest.score(&candidate, &candidate.run(quest, &topology, &config)) {
                Some(score) => {
                    quest.keep(&mut part.best, Scored { score, candidate });
                }
                None => part.refused += 1,
            }
        }
        part
    };
    let jobs = (sets * blocks) as usize;
    let mut first = usize::MAX;
    crew(quest.threads, jobs, stop, work, |finished| {
        if let Some((job, part)) = finished {
            finding.tried.enumerated += part.runs;
            finding.refused += part.refused;
            if let Some(found) = part.best {
                let better = match &finding.best {
                    Some(known) if quest.is_better(known.score, found.score) => false,
                    Some(known) => quest.is_better(found.score, known.score) || job < first,
                    None => true,
                };
                if better {
                    (finding.best, first) = (Some(found), job);
                }
            }
        }
        told(finding.tried.enumerated, finding.best.as_ref().map(|best| best.score));
    });
    finding.tried.arrangements = arrangements;
    finding.tried.initiator_sets = sets;
}

const BLOCK: u64 = 64;

pub(super) fn config(quest: &Quest) -> toml::Table {
    let settings = quest.subject.config.iter();
    settings.map(|(key, value)| (key.clone(), value.value.clone())).collect()
}
