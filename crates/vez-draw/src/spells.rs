//! Conditions that last: who was down, slow, waiting, inside or leading from when to when, and
//! what was cut.

use std::collections::BTreeMap;

use vez_core::Time;
use vez_sim::{TraceEvent, What};

use crate::words::{Told, told};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spell {
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// Whether it lasted beyond the end of the run.
    pub(crate) open: bool,
    pub(crate) what: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Down,
    Paused,
    Waiting,
    /// With this fence.
    Inside(Option<String>),
    /// In this term.
    Leads(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetSpell {
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) what: Cut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Sides(Vec<Vec<u64>>),
    /// From, to.
    Link(u64, u64),
}

/// What is true of one process now, and since when.
#[derive(Clone, Debug, Default)]
struct Lane {
    done: Vec<Spell>,
    open: Vec<Spell>,
}

impl Lane {
    fn begin(&mut self, from: Time, what: Condition) {
        self.open.push(Spell { from, to: from, open: true, what });
    }

    fn end(&mut self, at: Time, ends: impl Fn(&Condition) -> bool) {
        for mut spell in self.open.extract_if(.., |spell| ends(&spell.what)) {
            spell.open = false;
            // A pause knows its end.
            let planned = (spell.what == Condition::Paused).then_some(spell.to);
            spell.to = planned.map_or(at, |to| to.min(at));
            self.done.push(spell);
        }
    }

    fn hear(&mut self, at: Time, notice: &Told) {
        match notice {
            Told::Enters(fence) => {
                self.end(at, |what| matches!(what, Condition::Waiting | Condition::Inside(_)));
                self.begin(at, Condition::Inside(fence.clone()));
            }
            Told::Expelled => self.end(at, |what| matches!(what, Condition::Inside(_))),
            Told::Leads(term) => {
                let known = Condition::Leads(*term);
                if !self.open.iter().any(|spell| spell.what == known) {
                    self.end(at, |what| matches!(what, Condition::Leads(_)));
                    self.begin(at, known);
                }
            }
            Told::Follows(..) | Told::NoLeader => {
                self.end(at, |what| matches!(what, Condition::Leads(_)));
            }
            Told::Other(_) => (),
        }
    }
}

/// The spells of every lane, in the order they ended.
pub(crate) fn spells(
    events: &[TraceEvent],
    lanes: &BTreeMap<u64, usize>,
    end: Time,
) -> Vec<Vec<Spell>> {
    let mut all = vec![Lane::default(); lanes.len()];
    for event in events {
        let Some(&index) = event.node.as_ref().and_then(|uid| lanes.get(uid)) else { continue };
        let (lane, at) = (&mut all[index], event.at);
        match &event.what {
            What::Crash => {
                lane.end(at, |_| true);
                lane.begin(at, Condition::Down);
            }
            What::Restart { .. } => lane.end(at, |what| *what == Condition::Down),
            What::Pause { until } => {
                lane.end(at, |what| *what == Condition::Paused);
                let (from, to) = (at, *until);
                lane.open.push(Spell { from, to, open: true, what: Condition::Paused });
            }
            What::Resume => lane.end(at, |what| *what == Condition::Paused),
            What::Request { kind: "Acquire", .. } => lane.begin(at, Condition::Waiting),
            What::Request { kind: "Withdraw", .. } => {
                lane.end(at, |what| *what == Condition::Waiting);
            }
            What::Request { kind: "Release", .. } => {
                lane.end(at, |what| matches!(what, Condition::Inside(_)));
            }
            What::Notice { notice, kind, text } => {
                lane.hear(at, &told(event.node, notice, kind, text));
            }
            _ => (),
        }
    }
    let closed = all.into_iter().map(|mut lane| {
        let last = lane.done.len();
        lane.end(end, |_| true);
        // These ended only because the run did, but for a pause that was over by then.
        for spell in &mut lane.done[last..] {
            spell.open = spell.to == end;
        }
        lane.done
    });
    closed.collect()
}

/// What was cut from when to when, in the order it was cut.
pub(crate) fn net_spells(events: &[TraceEvent], end: Time) -> Vec<NetSpell> {
    let mut all: Vec<NetSpell> = Vec::new();
    // Indices of what still lasts, by link; `None` is the partition.
    let mut open: BTreeMap<Option<(u64, u64)>, usize> = BTreeMap::new();
    for event in events {
        let at = event.at;
        let mut ended = Vec::new();
        let mut begun = Vec::new();
        match &event.what {
            What::Partition { groups } => {
                ended.push(None);
                begun.push((None, Cut::Sides(groups.clone())));
            }
            What::Cut { from, to, both } => {
                for (from, to) in directions(*from, *to, *both) {
                    begun.push((Some((from, to)), Cut::Link(from, to)));
                }
            }
            What::Heal { link: None } => ended.extend(open.keys().copied()),
            What::Heal { link: Some((from, to, both)) } => {
                ended.extend(directions(*from, *to, *both).map(Some));
            }
            _ => continue,
        }
        for key in ended {
            if let Some(index) = open.remove(&key) {
                all[index].to = at;
            }
        }
        for (key, what) in begun {
            // Cut twice is cut once.
            open.entry(key).or_insert_with(|| {
                all.push(NetSpell { from: at, to: end, what });
                all.len() - 1
            });
        }
    }
    all
}

fn directions(from: u64, to: u64, both: bool) -> impl Iterator<Item = (u64, u64)> {
    [(from, to), (to, from)].into_iter().take(if both { 2 } else { 1 })
}
