//! What keeps the numbers up to date, beside the work: leases, leaders, samples, the log.

use std::cmp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::calls::Calls;
use super::chronicle::{Cause, Chronicle};
use super::meter::Counter;
use super::{Happening, View, samples};
use crate::raft::Replica;

/// What happened is logged so often at most: many lines at once are cheaper than one at a time.
const LOG_EVERY: Duration = Duration::from_millis(20);

/// What became of leases.
#[derive(Debug)]
pub(crate) struct LeaseCounts {
    /// So many there were, after the last command that was noted.
    there: AtomicUsize,
    pub(crate) granted: Counter,
    pub(crate) revoked: Counter,
    pub(crate) expired: Counter,
}

impl LeaseCounts {
    /// Begins with so many.
    pub(crate) fn new(there: usize) -> Self {
        let [granted, revoked, expired] = std::array::from_fn(|_| Counter::default());
        Self { there: AtomicUsize::new(there), granted, revoked, expired }
    }

    /// Everything became another.
    pub(crate) fn begin_anew(&self, there: usize) {
        self.there.store(there, Ordering::Relaxed);
    }

    /// Takes note of a command after which there are so many; `cause` is why it takes them away, if
    /// it does. Call with the state held, in the order of the commands.
    pub(crate) fn note(&self, there: usize, cause: Cause) {
        let before = self.there.swap(there, Ordering::Relaxed);
        match (there.cmp(&before), cause) {
            (cmp::Ordering::Greater, _) => self.granted.add(1),
            (cmp::Ordering::Less, Cause::Expiry) => self.expired.add(1),
            (cmp::Ordering::Less, _) => self.revoked.add(1),
            (cmp::Ordering::Equal, _) => {}
        }
    }
}

impl View {
    /// Does all that must be done for it, for as long as the chores last.
    pub(crate) fn keep(&self, chores: &mut JoinSet<()>) {
        chores.spawn(count_leaders(self.service.replica.clone(), Arc::clone(&self.leaders)));
        chores.spawn(log_history(Arc::clone(&self.chronicle)));
        chores.spawn(take_samples(self.clone()));
    }

    pub(crate) fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }
}

async fn count_leaders(replica: Replica, leaders: Arc<Counter>) {
    let mut leadership = replica.leadership();
    let mut before = None;
    loop {
        let now = *leadership.borrow_and_update();
        let known = now.leader.map(|leader| (now.term, leader));
        if known.is_some() && known != before {
            leaders.add(1);
            before = known;
        }
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

/// Says what happened, apart from where it happens: who reads slowly must not hold up a write.
async fn log_history(chronicle: Arc<Chronicle>) {
    loop {
        let (happenings, forgotten) = chronicle.news().await;
        if 0 < forgotten {
            tracing::warn!("{forgotten} more happened than could be logged; all were counted");
        }
        happenings.iter().for_each(Happening::log);
        tokio::time::sleep(LOG_EVERY).await;
    }
}

async fn take_samples(view: View) {
    let mut ticks = tokio::time::interval(samples::EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let took = &view.service.replica.counters().took;
        view.samples.take(&view.calls, &view.chronicle, took);
    }
}
