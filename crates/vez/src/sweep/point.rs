//! What the trials of one point come to.

use std::collections::BTreeMap;

use serde::Serialize;
use vez_numbers::cost::{self, Per, Quantity, Relation, Value};
use vez_numbers::sample::Summary;

use super::trial::Trial;
use super::{Metric, Spot, Study};

/// One algorithm at one size under one load and weather. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub algorithm: &'static str,
    pub nodes: u32,
    /// The share of processes that want in; none for elections.
    pub load: Option<f64>,
    pub loss: f64,
    pub crash_rate: f64,
    pub trials: u32,
    /// To elect, or for one entry on the average of a run.
    pub messages: Option<Summary>,
    /// Of whole runs.
    pub messages_total: Option<Summary>,
    /// On the average of all runs, for whole runs.
    pub by_kind: BTreeMap<&'static str, f64>,
    pub time_ms: Option<Summary>,
    /// Of all entries of all runs.
    pub wait_ms: Option<Summary>,
    pub fairness: Option<Summary>,
    pub changes: Option<Summary>,
    /// Runs in which a promise broke, by promise.
    pub broken: Vec<Break>,
    /// Runs in which somebody still waited at the end, or nobody all agree on led.
    pub unserved: u32,
    /// Runs cut off for taking too many steps.
    pub endless: u32,
    pub formulas: Vec<Value>,
    #[serde(skip)]
    pub spot: Spot,
    #[serde(skip)]
    pub per: Per,
    /// The first trial that broke a promise of its algorithm.
    #[serde(skip)]
    pub broken_first: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Break {
    pub promise: &'static str,
    /// Whether the algorithm makes this promise.
    pub claimed: bool,
    pub runs: u32,
}

impl Point {
    pub(super) fn new(study: &Study, spot: Spot, trials: &[Trial]) -> Self {
        let entry = &study.algorithms[spot.subject].entry;
        let is_mutex = entry.problem == "mutex";
        let all = |value: &dyn Fn(&Trial) -> Option<f64>| {
            Summary::of(&trials.iter().filter_map(value).collect::<Vec<_>>())
        };
        let waits: Vec<f64> = trials.iter().flat_map(|trial| &trial.waits).copied().collect();
        let unserved = |trial: &&Trial| match is_mutex {
            true => 0 < trial.waiting,
            false => trial.time.is_none(),
        };
        let cost = cost::of(entry.meta.name);
        Self {
            algorithm: entry.meta.name,
            nodes: spot.n,
            load: is_mutex.then_some(spot.load),
            loss: spot.loss,
            crash_rate: spot.crash_rate,
            trials: trials.len() as u32,
            messages: all(&per_entry),
            messages_total: all(&|trial| Some(trial.messages)),
            by_kind: by_kind(trials),
            time_ms: all(&|trial| trial.time),
            wait_ms: Summary::of(&waits),
            fairness: all(&|trial| trial.fairness),
            changes: all(&|trial| trial.changes),
            broken: broken(trials),
            unserved: trials.iter().filter(unserved).count() as u32,
            endless: trials.iter().filter(|trial| trial.endless).count() as u32,
            formulas: cost.map_or_else(Vec::new, |cost| cost.evaluate(&study.case(&spot))),
            spot,
            per: if is_mutex { Per::Entry } else { Per::Election },
            broken_first: trials
                .iter()
                .position(|trial| trial.broken.iter().any(|&(_, claimed)| claimed))
                .map(|number| number as u32),
        }
    }

    pub fn of(&self, metric: Metric) -> Option<&Summary> {
        match metric {
            Metric::Messages => self.messages.as_ref(),
            Metric::Time => self.time_ms.as_ref(),
            Metric::Wait => self.wait_ms.as_ref(),
            Metric::Fairness => self.fairness.as_ref(),
            Metric::Changes => self.changes.as_ref(),
        }
    }

    /// The formula that says most about a metric: an equality, a mean, else a bound.
    pub fn formula(&self, metric: Metric) -> Option<Value> {
        let quantity = metric.quantity()?;
        // Delays are milliseconds on the reference schedule only, and there `About` is none.
        let in_time =
            |value: &Value| quantity == Quantity::Messages || value.relation != Relation::About;
        let of_quantity =
            self.formulas.iter().filter(|v| v.quantity == quantity).filter(|v| in_time(v));
        let rank = |value: &&Value| match value.relation {
            Relation::Exact => 0,
            Relation::Mean => 1,
            Relation::AtMost => 2,
            Relation::About => 3,
            Relation::AtLeast => 4,
        };
        of_quantity.min_by_key(rank).copied()
    }

    /// Whether what was measured contradicts a formula.
    pub fn contradicts(&self, metric: Metric) -> bool {
        let Some(measured) = self.of(metric) else { return false };
        // Quotients of whole numbers, rounded once or twice.
        let slack = 1e-9 * measured.max.abs().max(1.0);
        let differs = |value: &&Value| match value.relation {
            Relation::Exact => {
                slack < (measured.min - value.value).abs()
                    || slack < (measured.max - value.value).abs()
            }
            Relation::AtMost => value.value + slack < measured.max,
            Relation::AtLeast => measured.min + slack < value.value,
            Relation::Mean | Relation::About => false,
        };
        let of_metric = |value: &&Value| Some(value.quantity) == metric.quantity();
        // A run that stopped half-way is no measurement.
        self.unserved == 0 && self.formulas.iter().filter(of_metric).any(|v| differs(&v))
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody enters that often")]
fn per_entry(trial: &Trial) -> Option<f64> {
    (0 < trial.entries).then(|| trial.messages / trial.entries as f64)
}

#[expect(clippy::cast_precision_loss, reason = "counts of messages are small")]
fn by_kind(trials: &[Trial]) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::<_, u64>::new();
    for &(kind, count) in trials.iter().flat_map(|trial| &trial.by_kind) {
        *sums.entry(kind).or_default() += count;
    }
    sums.into_iter().map(|(kind, sum)| (kind, sum as f64 / trials.len() as f64)).collect()
}

fn broken(trials: &[Trial]) -> Vec<Break> {
    let mut counts = BTreeMap::<_, u32>::new();
    for &broken in trials.iter().flat_map(|trial| &trial.broken) {
        *counts.entry(broken).or_default() += 1;
    }
    let named = |((promise, claimed), runs): ((vez_core::Promise, bool), u32)| Break {
        promise: promise.name(),
        claimed,
        runs,
    };
    counts.into_iter().map(named).collect()
}
