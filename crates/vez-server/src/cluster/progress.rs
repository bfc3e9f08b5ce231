//! How far this member has come in the log, for those who wait for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Entries are counted: entry 0 is applied when one is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    applied: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Vec<oneshot::Sender<()>>>>,
}

impl Progress {
    /// The entry with this index is applied, and all before it.
    pub(crate) fn reached(&self, index: u64) {
        self.applied.store(index + 1, Ordering::Release);
        let mut waiting = self.waiting();
        if waiting.first_key_value().is_some_and(|(first, _)| *first <= index) {
            let later = waiting.split_off(&(index + 1));
            let reached = std::mem::replace(&mut *waiting, later);
            drop(waiting);
            for caller in reached.into_values().flatten() {
                // Whoever has gone meanwhile need not know.
                caller.send(()).ok();
            }
        }
    }

    /// Returns when the entry with this index is applied.
    pub(crate) async fn wait(&self, index: u64) {
        let told = {
            let mut waiting = self.waiting();
            // Under the lock: whoever applies it now finds us.
            if index < self.applied.load(Ordering::Acquire) {
                return;
            }
            let (caller, told) = oneshot::channel();
            waiting.entry(index).or_default().push(caller);
            told
        };
        // Who tells lives as long as we do.
        told.await.ok();
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<oneshot::Sender<()>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn who_waits_is_told_when_the_entry_is_applied_and_not_before() {
        let progress = Progress::default();
        let mut first = Box::pin(progress.wait(0));
        let mut fifth = Box::pin(progress.wait(4));
        assert!((&mut first).now_or_never().is_none());
        progress.reached(3);
        assert!(first.now_or_never().is_some());
        assert!((&mut fifth).now_or_never().is_none());
        progress.reached(4);
        assert!(fifth.now_or_never().is_some());
        assert!(progress.wait(4).now_or_never().is_some());
        assert!(progress.wait(5).now_or_never().is_none());
    }
}
