//! The last minutes, a sample a second: what small plots are made of.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::calls::Calls;
use super::chronicle::Chronicle;
use super::meter::{Distribution, Histogram};

pub(crate) const EVERY: Duration = Duration::from_secs(1);
const KEPT: usize = 300;

/// What happened within a second; times in milliseconds, none if nothing took any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub requests: f64,
    /// The 99th percentile of what does not wait for other clients.
    pub request_ms: Option<f64>,
    pub grants: f64,
    /// On average, of those that got their turn.
    pub wait_ms: Option<f64>,
    pub syncs: f64,
    /// The 99th percentile.
    pub sync_ms: Option<f64>,
    pub held: u64,
    pub waiting: u64,
}

/// The counters as they were a sample ago.
struct Before {
    at: Duration,
    requests: u64,
    request: Distribution,
    grants: u64,
    wait: Distribution,
    sync: Distribution,
}

#[derive(Default)]
pub(crate) struct Samples {
    before: Mutex<Option<Before>>,
    kept: Mutex<VecDeque<Sample>>,
}

impl Samples {
    /// Looks at the counters; the first time there is nothing to compare with.
    #[expect(clippy::cast_precision_loss, reason = "rates for people")]
    pub(crate) fn take(&self, calls: &Calls, chronicle: &Chronicle, syncs: &Histogram) {
        let now = Before {
            at: chronicle.elapsed(),
            requests: calls.started(),
            request: calls.took.now(),
            grants: chronicle.grants.get(),
            wait: chronicle.waits.now(),
            sync: syncs.now(),
        };
        let (held, waiting) = chronicle.standing();
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = &*before {
            let seconds = (now.at.saturating_sub(before.at)).as_secs_f64().max(1e-3);
            let sync = now.sync.since(&before.sync);
            let ms = |seconds: f64| seconds * 1e3;
            let sample = Sample {
                requests: (now.requests - before.requests) as f64 / seconds,
                request_ms: now.request.since(&before.request).quantile(0.99).map(ms),
                grants: (now.grants - before.grants) as f64 / seconds,
                wait_ms: now.wait.since(&before.wait).mean().map(ms),
                syncs: sync.count() as f64 / seconds,
                sync_ms: sync.quantile(0.99).map(ms),
                held,
                waiting,
            };
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(sample);
        }
        *before = Some(now);
    }

    /// Oldest first.
    pub(crate) fn all(&self) -> Vec<Sample> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().copied().collect()
    }
}
