//! A run looked through once: who has which lane, what became of every message, who was in which
//! condition when.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use vez_core::Time;
use vez_sim::What;

use crate::Run;
use crate::changes::changes;
use crate::spells::{NetSpell, Spell, net_spells, spells};
use crate::steps::{Step, steps};

pub(crate) struct Scene<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) uids: Vec<u64>,
    lanes: BTreeMap<u64, usize>,
    pub(crate) steps: Vec<Step<'a>>,
    /// By step: what it changed in the state of its process.
    pub(crate) changes: Vec<Vec<String>>,
    /// In order. Of promises the algorithm does not make, only the first of each.
    pub(crate) violations: Vec<Violation<'a>>,
    pub(crate) flights: Vec<Flight<'a>>,
    by_id: BTreeMap<u64, usize>,
    /// By lane.
    pub(crate) spells: Vec<Vec<Spell>>,
    pub(crate) net: Vec<NetSpell>,
    pub(crate) end: Time,
}

/// A broken promise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Violation<'a> {
    pub(crate) at: Time,
    pub(crate) promise: &'static str,
    pub(crate) detail: &'a str,
    /// Whether the algorithm makes this promise. Others are judged for comparison, and breaking
    /// them is no failure.
    pub(crate) claimed: bool,
    /// Whether it is the first of its promise.
    pub(crate) first: bool,
    step: usize,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight<'a> {
    pub(crate) id: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) kind: &'static str,
    pub(crate) text: &'a str,
    pub(crate) message: &'a Value,
    pub(crate) sent: Time,
    /// Index of the step that sent it, and of the one it caused or was lost in.
    pub(crate) sent_in: usize,
    pub(crate) ended_in: Option<usize>,
    pub(crate) fate: Fate,
    /// The network delivered it once more.
    pub(crate) copy: bool,
}

impl Flight<'_> {
    /// When it arrived or was lost; for one under way, never.
    pub(crate) fn end(&self) -> Time {
        match self.fate {
            Fate::Heard(at) | Fate::Lost(at, _) => at,
            Fate::UnderWay => Time::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Heard(Time),
    Lost(Time, &'static str),
    /// The run, or its trace, ended before.
    UnderWay,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        let uids: Vec<u64> = run.topology.ids().map(|id| run.topology.uid(id)).collect();
        let lanes: BTreeMap<u64, usize> =
            uids.iter().enumerate().map(|(lane, &uid)| (uid, lane)).collect();
        let last = run.events.last().map_or(Time::ZERO, |event| event.at);
        let end = run.report.time.max(last);
        let steps = steps(run.events);
        let mut scene = Self {
            run,
            spells: spells(run.events, &lanes, end),
            net: net_spells(run.events, end),
            uids,
            lanes,
            changes: changes(&steps),
            violations: violations(run, &steps),
            steps,
            flights: Vec::new(),
            by_id: BTreeMap::new(),
            end,
        };
        for index in 0..scene.steps.len() {
            scene.follow_messages(index);
        }
        scene
    }

    fn follow_messages(&mut self, index: usize) {
        for event in self.steps[index].events {
            match &event.what {
                What::Send { to, id, kind, text, message } => self.add(Flight {
                    id: *id,
                    from: event.node.unwrap_or_default(),
                    to: *to,
                    kind,
                    text,
                    message,
                    sent: event.at,
                    sent_in: index,
                    ended_in: None,
                    fate: Fate::UnderWay,
                    copy: false,
                }),
                What::Repeat { id, copy } => {
                    if let Some(original) = self.flight(*id).cloned() {
                        self.add(Flight { id: *copy, copy: true, ..original });
                    }
                }
                What::Receive { id, .. } => self.land(*id, Fate::Heard(event.at), index),
                What::Lose { id, cause } => self.land(*id, Fate::Lost(event.at, cause), index),
                _ => (),
            }
        }
    }

    fn add(&mut self, flight: Flight<'a>) {
        self.by_id.insert(flight.id, self.flights.len());
        self.flights.push(flight);
    }

    fn land(&mut self, id: u64, fate: Fate, index: usize) {
        if let Some(&flight) = self.by_id.get(&id) {
            self.flights[flight].fate = fate;
            self.flights[flight].ended_in = Some(index);
        }
    }

    pub(crate) fn flight(&self, id: u64) -> Option<&Flight<'a>> {
        self.by_id.get(&id).map(|&index| &self.flights[index])
    }

    /// What a step broke.
    pub(crate) fn violations(&self, step: usize) -> &[Violation<'a>] {
        let from = self.violations.partition_point(|violation| violation.step < step);
        let to = self.violations.partition_point(|violation| violation.step <= step);
        &self.violations[from..to]
    }

    pub(crate) fn lane(&self, uid: u64) -> Option<usize> {
        self.lanes.get(&uid).copied()
    }
}

fn violations<'a>(run: &Run<'a>, steps: &[Step<'a>]) -> Vec<Violation<'a>> {
    let unclaimed = run.report.promises.iter().filter(|verdict| !verdict.claimed);
    let unclaimed: BTreeSet<&str> = unclaimed.map(|verdict| verdict.promise.name()).collect();
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (step, events) in steps.iter().enumerate() {
        for event in events.events {
            let What::Violation { promise, detail } = &event.what else { continue };
            let (claimed, first) = (!unclaimed.contains(promise), known.insert(promise));
            if claimed || first {
                all.push(Violation { at: event.at, promise, detail, claimed, first, step });
            }
        }
    }
    all
}
