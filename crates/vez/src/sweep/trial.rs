//! One run of one point: its scenario, and what is kept of its report.

use vez_core::problem::Account;
use vez_core::problem::election::ElectionTally;
use vez_core::problem::mutex::MutexTally;
use vez_core::{Chance as _, Crashes, Ending, Promise, Seeded, Time};
use vez_numbers::cost::Order;
use vez_numbers::sample::jain;
use vez_sim::Report;

use super::{Spot, Starters, Study, axes};
use crate::scenario::{Act, Event, Members, Place, Placed, Scenario, Weather, Whom};

/// A run of more steps than this has no end, as far as a sweep is concerned.
pub(super) const STEPS_MAX: u64 = 100_000_000;

/// When the world stops crashing processes, if neither the study nor the algorithm has an end.
const CRASHES_UNTIL: Time = Time::from_secs(1);

/// What is kept of a run. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) messages: f64,
    pub(super) by_kind: Vec<(&'static str, u64)>,
    /// Times anyone was inside; 1 for an election, which is one thing done.
    pub(super) entries: u64,
    /// Who still waited at the end.
    pub(super) waiting: u64,
    pub(super) time: Option<f64>,
    pub(super) waits: Vec<f64>,
    pub(super) fairness: Option<f64>,
    pub(super) changes: Option<f64>,
    pub(super) broken: Vec<(Promise, bool)>,
    /// Whether it was cut off for its number of steps.
    pub(super) endless: bool,
}

pub(super) fn perform(study: &Study, spot: &Spot, number: u32) -> Trial {
    let resolved = study.resolved(spot, number);
    // Trials of one point differ in chance only, and the first was tried.
    let resolved = resolved.unwrap_or_else(|fault| panic!("trial {number} of {spot:?}: {fault}"));
    let report = (resolved.entry.simulate)(&resolved.topology, &resolved.config, &resolved.plan);
    Trial::new(&report)
}

impl Trial {
    #[expect(clippy::cast_precision_loss, reason = "counts of messages are small")]
    fn new(report: &Report) -> Self {
        let broken = report.promises.iter().filter(|verdict| !verdict.kept);
        let trial = Self {
            messages: report.messages.total as f64,
            by_kind: report.messages.by_kind.clone(),
            entries: 1,
            waiting: 0,
            time: None,
            waits: Vec::new(),
            fairness: None,
            changes: None,
            broken: broken.map(|verdict| (verdict.promise, verdict.claimed)).collect(),
            endless: report.ending == Ending::Limit,
        };
        match &report.account {
            Account::Election(tally) => trial.elected(tally),
            Account::Mutex(tally) => trial.served(tally),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "leaders do not change that often")]
    fn elected(self, tally: &ElectionTally) -> Self {
        let known = tally.leader().and(tally.changed);
        let changes = Some(tally.changes() as f64);
        Self { time: known.map(Time::as_millis_f64), changes, ..self }
    }

    fn served(self, tally: &MutexTally) -> Self {
        let wait = |entry: &vez_core::problem::mutex::Entry| {
            (entry.node, (entry.entered - entry.requested).as_millis_f64())
        };
        let waits: Vec<_> = tally.entries.iter().map(wait).collect();
        let mut by_node = std::collections::BTreeMap::<_, (f64, f64)>::new();
        for (node, wait) in &waits {
            let (sum, count) = by_node.entry(node).or_default();
            *sum += wait;
            *count += 1.0;
        }
        let means: Vec<f64> = by_node.values().map(|(sum, count)| sum / count).collect();
        let last = tally.entries.iter().filter_map(|entry| entry.left).max();
        Self {
            entries: tally.entries.len() as u64,
            waiting: tally.waiting.len() as u64,
            time: last.filter(|_| tally.waiting.is_empty()).map(Time::as_millis_f64),
            waits: waits.into_iter().map(|(_, wait)| wait).collect(),
            fairness: jain(&means),
            ..self
        }
    }
}

/// How many want in. Somebody does.
pub(super) fn askers(n: u32, load: f64) -> u32 {
    #[expect(clippy::cast_sign_loss, reason = "0 ≤ load ≤ 1")]
    let wanted = (f64::from(n) * load).round() as u32;
    wanted.clamp(1, n)
}

/// The run as a scenario that `vez run` takes. A function of the study's seed, the algorithm, the
/// size and the number of the trial; what else is varied is applied to the same system.
pub fn scenario(study: &Study, spot: &Spot, number: u32) -> Scenario {
    let subject = &study.algorithms[spot.subject];
    let seed = study.trial_seed(spot, number);
    let mut draw = Seeded::stream(seed, 0x0073_7765_6570);
    let is_mutex = subject.entry.problem == "mutex";
    let order = if is_mutex { Order::Ascending } else { study.order_of(spot) };
    let members = members(order, spot.n, &mut draw);
    let uids = uids(&members);
    let mut events = Vec::new();
    let mut at = |time, act| events.push(Event { at: time, act, place: Place::Whole });
    if is_mutex {
        for who in who_asks(spot, uids.clone(), &mut draw) {
            let first = moment(study, &mut draw);
            for _ in 0..study.requests {
                at(first, Act::Acquire { who, hold: study.hold });
            }
        }
    } else {
        let leader = winner(study, spot, &uids).filter(|_| study.leader_down);
        if let Some(node) = leader {
            at(Time::ZERO, Act::Crash { node, unsent: false });
        }
        let live: Vec<u64> = uids.iter().copied().filter(|&uid| Some(uid) != leader).collect();
        for whom in starters(study, live, &mut draw) {
            at(moment(study, &mut draw), Act::Start(whom));
        }
    }
    events.extend(crashes(study, spot, &uids, &mut draw));
    events.sort_by_key(|event| event.at);
    let weather = Weather {
        delay: study.delay,
        loss: Placed::new(spot.loss, Place::Flag(format!("--loss {}", spot.loss))),
        ..Weather::default()
    };
    Scenario {
        algorithm: Placed::new(subject.entry.meta.name.to_owned(), Place::Whole),
        seed,
        members,
        wiring: study.wiring.clone().map(|wiring| Placed::new(wiring, Place::Whole)),
        until: study.until,
        network: weather,
        config: subject.config.clone(),
        events,
        ..Scenario::default()
    }
}

fn members(order: Order, n: u32, draw: &mut Seeded) -> Members {
    let ids: Vec<u64> = match order {
        Order::Ascending => Vec::new(),
        Order::Descending => (1..=u64::from(n)).rev().collect(),
        Order::Random => {
            let mut ids: Vec<u64> = (1..=u64::from(n)).collect();
            shuffle(&mut ids, draw);
            ids
        }
    };
    match ids.is_empty() {
        true => Members::Count(Placed::new(u64::from(n), Place::Whole)),
        false => Members::Ids(Placed::new(ids, Place::Whole)),
    }
}

fn uids(members: &Members) -> Vec<u64> {
    match members {
        Members::Count(count) => (1..=count.value).collect(),
        Members::Ids(ids) => ids.value.clone(),
    }
}

/// Fisher and Yates: every arrangement equally likely.
pub(crate) fn shuffle<T>(items: &mut [T], draw: &mut Seeded) {
    for last in (1..items.len()).rev() {
        items.swap(last, draw.below(last as u32 + 1) as usize);
    }
}

fn winner(study: &Study, spot: &Spot, uids: &[u64]) -> Option<u64> {
    let pick = axes::setting(&study.algorithms[spot.subject], "pick");
    if pick.as_deref() == Some("min") { uids.iter().min() } else { uids.iter().max() }.copied()
}

fn starters(study: &Study, mut live: Vec<u64>, draw: &mut Seeded) -> Vec<Whom> {
    let count = match study.starters {
        Starters::All if study.within == Time::ZERO => return vec![Whom::All],
        Starters::All => live.len(),
        Starters::Smallest => return live.into_iter().min().map(Whom::One).into_iter().collect(),
        Starters::Largest => return live.into_iter().max().map(Whom::One).into_iter().collect(),
        Starters::Some(count) => count as usize,
        Starters::Random => 1 + draw.below(live.len().max(1) as u32) as usize,
    };
    shuffle(&mut live, draw);
    live.truncate(count);
    live.into_iter().map(Whom::One).collect()
}

/// The first process, which coordinates or has the token where there is one, asks only if all do.
fn who_asks(spot: &Spot, mut uids: Vec<u64>, draw: &mut Seeded) -> Vec<Whom> {
    let count = askers(spot.n, spot.load) as usize;
    if count == uids.len() {
        return uids.into_iter().map(Whom::One).collect();
    }
    uids.remove(0);
    shuffle(&mut uids, draw);
    uids.truncate(count);
    uids.sort_unstable();
    uids.into_iter().map(Whom::One).collect()
}

fn moment(study: &Study, draw: &mut Seeded) -> Time {
    match study.within {
        Time::ZERO => Time::ZERO,
        within => Time::from_micros(draw.below_u64(within.as_micros() + 1)),
    }
}

/// Every process crashes now and then, at random moments that know nothing of each other, and
/// comes back after a while if its algorithm allows for that.
fn crashes(study: &Study, spot: &Spot, uids: &[u64], draw: &mut Seeded) -> Vec<Event> {
    let mut events = Vec::new();
    if spot.crash_rate == 0.0 {
        return events;
    }
    let meta = &study.algorithms[spot.subject].entry.meta;
    let end = study.until.or(meta.restless).unwrap_or(CRASHES_UNTIL);
    let mut at = |at, act| events.push(Event { at, act, place: Place::Whole });
    for &node in uids {
        let mut now = Time::ZERO;
        loop {
            let seconds = -libm::log(1.0 - draw.unit()) / spot.crash_rate;
            #[expect(clippy::cast_sign_loss, reason = "the logarithm is of less than 1")]
            let span = Time::from_micros((seconds * 1e6).min(1e15) as u64 + 1);
            now += span;
            if end <= now {
                break;
            }
            at(now, Act::Crash { node, unsent: false });
            now += study.down;
            if meta.crashes != Crashes::Recover || end <= now {
                break;
            }
            at(now, Act::Restart { node, amnesia: false });
        }
    }
    events
}
