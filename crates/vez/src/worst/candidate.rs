//! One way a run may go: who is where, who starts when, how slow each link is.

use std::collections::BTreeMap;

use vez_core::problem::Account;
use vez_core::{NodeId, Time, Topology};
use vez_sim::{Delay, Input, LinkRule, Plan, Report, Who};

use super::{Aim, Quest, STEPS_MAX};
use crate::scenario::{Act, Event, Expectation, Link, Members, Place, Placed, Scenario, Whom};

#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// By address.
    pub uids: Vec<u64>,
    /// When each process starts or asks, by address; `None` if it does not.
    pub starts: Vec<Option<Time>>,
    /// Links that take other than 1 ms, one direction each.
    pub delays: BTreeMap<(u32, u32), Time>,
}

impl Candidate {
    /// Uids in order, all start at once, every message takes 1 ms.
    pub(super) fn plain(quest: &Quest) -> Self {
        let n = quest.n;
        Self {
            uids: (1..=u64::from(n)).collect(),
            starts: vec![Some(Time::ZERO); n as usize],
            delays: BTreeMap::new(),
        }
    }

    /// Straight to a plan: a scenario would be read and checked anew for every one of millions.
    pub(super) fn run(&self, quest: &Quest, topology: &Topology, config: &toml::Table) -> Report {
        let plan = self.plan(quest);
        let entry = &quest.subject.entry;
        match quest.arrangement_matters() {
            true => {
                let arranged = topology.clone().with_uids(self.uids.clone());
                (entry.simulate)(&arranged, config, &plan)
            }
            false => (entry.simulate)(topology, config, &plan),
        }
    }

    fn plan(&self, quest: &Quest) -> Plan {
        let starts = (0..).map(NodeId).zip(&self.starts);
        let mut inputs: Vec<(Time, Input)> = starts
            .filter_map(|(node, start)| {
                let who = Who::One(node);
                let input = match quest.is_election() {
                    true => Input::Start(who),
                    false => Input::Acquire(who, quest.hold),
                };
                start.map(|at| (at, input))
            })
            .collect();
        inputs.sort_by_key(|(at, _)| *at);
        let mut plan = Plan { inputs, steps_max: STEPS_MAX, ..Plan::default() };
        for (&(from, to), &delay) in &self.delays {
            let rule = LinkRule { delay: Some(Delay::Fixed(delay)), ..LinkRule::default() };
            plan.network.links.insert((NodeId(from), NodeId(to)), rule);
        }
        plan
    }

    /// The same as people read it, with what must come out.
    pub fn scenario(&self, quest: &Quest, report: Option<&Report>) -> Scenario {
        let uid = |node: u32| self.uids[node as usize];
        let n = quest.n;
        let in_order = self.uids.iter().copied().eq(1..=u64::from(n));
        let members = match in_order {
            true => Members::Count(Placed::new(u64::from(n), Place::Whole)),
            false => Members::Ids(Placed::new(self.uids.clone(), Place::Whole)),
        };
        let act = |who: Whom| match quest.is_election() {
            true => Act::Start(who),
            false => Act::Acquire { who, hold: quest.hold },
        };
        let place = Place::Whole;
        let mut events: Vec<Event> = match self.starts.iter().all(|&s| s == Some(Time::ZERO)) {
            true => vec![Event { at: Time::ZERO, act: act(Whom::All), place: place.clone() }],
            false => (0..n)
                .filter_map(|node| {
                    let at = self.starts[node as usize]?;
                    Some(Event { at, act: act(Whom::One(uid(node))), place: place.clone() })
                })
                .collect(),
        };
        events.sort_by_key(|event| event.at);
        let link = |(&(from, to), &delay): (&(u32, u32), &Time)| {
            let delay = Some(Delay::Fixed(delay));
            Placed::new(
                Link { from: uid(from), to: uid(to), delay, ..Link::default() },
                place.clone(),
            )
        };
        let broken = report.map(|report| {
            let broken = report.promises.iter().filter(|verdict| !verdict.kept);
            broken.map(|verdict| verdict.promise.name().to_owned()).collect()
        });
        Scenario {
            algorithm: Placed::new(quest.subject.entry.meta.name.to_owned(), Place::Whole),
            members,
            wiring: quest.wiring.clone().map(|wiring| Placed::new(wiring, Place::Whole)),
            config: quest.subject.config.clone(),
            links: self.delays.iter().map(link).collect(),
            events,
            expect: report.map(|report| Expectation {
                messages: Some(report.messages.total),
                broken: broken.unwrap_or_default(),
                ..Expectation::default()
            }),
            ..Scenario::default()
        }
    }

    /// What its run cost; `None` if it did not do what it was there for.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(super) fn measure(&self, report: &Report, metric: Aim) -> Option<f64> {
        let messages = report.messages.total as f64;
        match &report.account {
            Account::Election(tally) => {
                let known = tally.leader().and(tally.changed)?;
                // Who starts when everyone knows the leader holds an election of its own.
                let again = self.starts.iter().flatten().any(|&at| known <= at && at != Time::ZERO);
                let cost = if metric == Aim::Messages { messages } else { known.as_millis_f64() };
                (!again).then_some(cost)
            }
            Account::Mutex(tally) => {
                if !tally.waiting.is_empty() {
                    return None;
                }
                let waits = tally.entries.iter().map(|entry| entry.entered - entry.requested);
                let longest = waits.max()?.as_millis_f64();
                let mean = messages / tally.entries.len() as f64;
                Some(if metric == Aim::Messages { mean } else { longest })
            }
        }
    }
}
