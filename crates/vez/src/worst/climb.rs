//! Hill climbing with restarts: change one thing, keep what costs no less.

use std::sync::atomic::{AtomicBool, Ordering};

use vez_core::{Chance as _, NodeId, Seeded, Time, Topology};

use super::enumerate::config;
use super::{Candidate, Finding, Quest, Scored};
use crate::sweep::{crew, shuffle};

/// How many climbs there are. Not the number of threads: the same seed finds the same.
const CLIMBS: u64 = 32;

/// Climbs from several starts. Improves on what `finding` has, if it can.
pub(super) fn climb(
    quest: &Quest,
    stop: &AtomicBool,
    finding: &mut Finding,
    mut told: impl FnMut(u64, Option<f64>),
) {
    let Ok(topology) = quest.topology() else { return };
    let config = config(quest);
    let known = finding.best.clone();
    let climbs = CLIMBS.min(quest.trials);
    let work = |climb: usize| {
        let share = quest.trials / climbs + u64::from((climb as u64) < quest.trials % climbs);
        let climber = Climber { quest, topology: &topology, config: &config };
        climber.climb(climb as u64, share, known.as_ref(), stop)
    };
    let mut results: Vec<Option<Ascent>> = Vec::new();
    results.resize_with(climbs as usize, || None);
    let mut best = known.as_ref().map(|known| known.score);
    crew(quest.threads, climbs as usize, stop, work, |finished| {
        if let Some((climb, ascent)) = finished {
            finding.tried.searched += ascent.runs;
            finding.refused += ascent.refused;
            if let Some(top) = &ascent.top
                && best.is_none_or(|known| quest.is_better(top.score, known))
            {
                best = Some(top.score);
            }
            results[climb] = Some(ascent);
        }
        told(finding.tried.searched, best);
    });
    // In the order of the climbs, so that of equals always the same one is kept.
    for top in results.into_iter().flatten().filter_map(|ascent| ascent.top) {
        if quest.keep(&mut finding.best, top) {
            finding.tried.beyond = true;
        }
    }
}

struct Climber<'a> {
    quest: &'a Quest,
    topology: &'a Topology,
    config: &'a toml::Table,
}

/// What one climb found.
struct Ascent {
    top: Option<Scored>,
    runs: u64,
    refused: u64,
}

impl Climber<'_> {
    fn climb(&self, number: u64, runs: u64, known: Option<&Scored>, stop: &AtomicBool) -> Ascent {
        let mut draw = Seeded::stream(self.quest.seed, number + 1);
        let mut ascent = Ascent { top: None, runs: 0, refused: 0 };
        let mut here: Option<Scored> = None;
        while ascent.runs < runs && !stop.load(Ordering::SeqCst) {
            let candidate = match &here {
                None => self.start(number, known, &mut draw),
                Some(here) => self.neighbour(&here.candidate, &mut draw),
            };
            ascent.runs += 1;
            let report = candidate.run(self.quest, self.topology, self.config);
            let Some(score) = self.quest.score(&candidate, &report) else {
                ascent.refused += 1;
                continue;
            };
            let worse = |here: &Scored| self.quest.is_better(here.score, score);
            if !here.as_ref().is_some_and(worse) {
                let found = Scored { score, candidate };
                self.quest.keep(&mut ascent.top, found.clone());
                here = Some(found);
            }
        }
        ascent
    }

    /// The first climbs start from what is known or plain, the others anywhere.
    fn start(&self, number: u64, known: Option<&Scored>, draw: &mut Seeded) -> Candidate {
        let mut candidate = Candidate::plain(self.quest);
        match (number, known) {
            (0..8, Some(known)) => return known.candidate.clone(),
            (0, None) => return candidate,
            (1, None) if self.quest.arrangement_matters() => {
                candidate.uids.reverse();
                return candidate;
            }
            _ => (),
        }
        if self.quest.arrangement_matters() {
            shuffle(&mut candidate.uids, draw);
        }
        if !self.quest.all_start && draw.below(2) == 0 {
            for start in &mut candidate.starts {
                *start = (draw.below(2) == 0).then_some(Time::ZERO);
            }
            let sure = draw.below(self.quest.n) as usize;
            candidate.starts[sure] = Some(Time::ZERO);
        }
        candidate
    }

    fn neighbour(&self, of: &Candidate, draw: &mut Seeded) -> Candidate {
        let mut next = of.clone();
        // Often one change, sometimes more: a way out of small dips.
        loop {
            self.change(&mut next, draw);
            if draw.below(3) != 0 {
                return next;
            }
        }
    }

    fn change(&self, candidate: &mut Candidate, draw: &mut Seeded) {
        let quest = self.quest;
        let n = quest.n;
        let node = draw.below(n) as usize;
        match draw.below(4) {
            0 if quest.arrangement_matters() => candidate.uids.swap(node, draw.below(n) as usize),
            1 if quest.arrangement_matters() => {
                let (a, b) = (node, draw.below(n) as usize);
                candidate.uids[a.min(b)..=a.max(b)].reverse();
            }
            2 if !quest.all_start => toggle(candidate, node),
            2 if quest.starts_vary() => {
                let at = Time::from_millis(u64::from(draw.below(n)));
                candidate.starts[node] = candidate.starts[node].map(|_| at);
            }
            3 if quest.starts_vary() && draw.below(2) == 0 => {
                let at = Time::from_millis(u64::from(draw.below(n)));
                candidate.starts[node] = candidate.starts[node].map(|_| at);
            }
            3 if quest.delays_vary() => self.slow_down(candidate, node, draw),
            _ => (),
        }
    }

    fn slow_down(&self, candidate: &mut Candidate, node: usize, draw: &mut Seeded) {
        let from = NodeId(node as u32);
        let neighbours: Vec<NodeId> = self.topology.neighbors(from).collect();
        if neighbours.is_empty() {
            return;
        }
        let to = neighbours[draw.below(neighbours.len() as u32) as usize];
        let millis = self.quest.delay_max.as_micros() / 1_000;
        match 1 + draw.below_u64(millis.max(1)) {
            1 => candidate.delays.remove(&(from.0, to.0)),
            delay => candidate.delays.insert((from.0, to.0), Time::from_millis(delay)),
        };
    }
}

/// Somebody starts in any case.
fn toggle(candidate: &mut Candidate, node: usize) {
    let others = candidate.starts.iter().flatten().count();
    candidate.starts[node] = match candidate.starts[node] {
        Some(_) if 1 < others => None,
        _ => Some(Time::ZERO),
    };
}
