//! What goes wrong that a process can live with: counted always, said once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::link::WAITING_MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Garbage {
    Frame,
    Stranger,
    Tls,
}

/// What has gone wrong so far, counted; and said once.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    frames: AtomicU64,
    strangers: AtomicU64,
    handshakes: AtomicU64,
    overflows: AtomicU64,
    outlived: AtomicU64,
    unsent: AtomicU64,
    unreadable: AtomicU64,
    warnings: Mutex<Warnings>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Warnings {
    said: BTreeSet<String>,
    /// Those nobody has taken yet.
    fresh: Vec<String>,
}

impl Counters {
    pub(crate) fn garbage(&self, what: Garbage) {
        let (counter, text) = match what {
            Garbage::Frame => (&self.frames, "somebody sends what is no frame of ours"),
            Garbage::Stranger => (&self.strangers, "somebody was refused who is not of the group"),
            Garbage::Tls => (&self.handshakes, "somebody comes without a certificate of ours"),
        };
        self.count(counter, || text.to_owned());
    }

    pub(crate) fn overflowed(&self, peer: u64) {
        let text = || {
            format!(
                "{peer} does not listen: more than {WAITING_MAX} messages wait for it; the newest are dropped"
            )
        };
        self.count(&self.overflows, text);
    }

    pub(crate) fn outlived(&self, dropped: usize) {
        self.outlived.fetch_add(dropped as u64, Ordering::Relaxed);
    }

    pub(crate) fn unsent(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unreadable(&self) {
        let text = || "a peer sends what is no message of the algorithm".to_owned();
        self.count(&self.unreadable, text);
    }

    fn count(&self, counter: &AtomicU64, text: impl FnOnce() -> String) {
        if counter.fetch_add(1, Ordering::Relaxed) == 0 {
            self.warn(text());
        }
    }

    /// Says it, unless it has been said.
    pub(crate) fn warn(&self, text: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.said.insert(text.clone()) {
            warnings.fresh.push(text);
            self.news.notify_one();
        }
    }

    /// Until there is something to say.
    pub(crate) async fn warned(&self) {
        self.news.notified().await;
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut warnings.fresh)
    }

    pub(crate) fn list(&self) -> Vec<(&'static str, u64)> {
        let counters = [
            ("garbage", &self.frames),
            ("strangers", &self.strangers),
            ("handshakes", &self.handshakes),
            ("overflows", &self.overflows),
            ("outlived", &self.outlived),
            ("unsent", &self.unsent),
            ("unreadable", &self.unreadable),
        ];
        counters.map(|(name, counter)| (name, counter.load(Ordering::Relaxed))).to_vec()
    }
}
