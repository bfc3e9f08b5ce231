//! Vector clocks: what a process knows to have happened, everywhere.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use vez_core::NodeId;

/// For each process, the number of its last step that this one can have heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VectorClock(Vec<u64>);

impl VectorClock {
    /// Before anything is known. A process that comes back goes on counting where it cannot have
    /// been before.
    pub(crate) fn new(n: u32, me: NodeId, first: u64) -> Self {
        let mut clock = vec![0; n as usize];
        clock[me.index()] = first;
        Self(clock)
    }

    pub(crate) fn tick(&mut self, me: NodeId) {
        self.0[me.index()] += 1;
    }

    /// Takes in what a message's sender knew; what it knows of more processes than there are is
    /// not believed.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    pub(crate) fn parts(&self) -> &[u64] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn from_parts(parts: Vec<u64>) -> Self {
        Self(parts)
    }
}

/// The one reader of the wall clock. Timers go by the monotonic one.
#[expect(clippy::disallowed_methods, reason = "a driver of real processes")]
pub(crate) fn now() -> Duration {
    // A clock set before 1970 counts from there.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Where a life starts counting its steps and messages: at a number that no earlier life has
/// reached, as long as it made fewer than a million a second. Lives are moments in microseconds.
pub(crate) fn first_count(life: u64) -> u64 {
    const START_OF_2025: u64 = 1_735_689_600_000_000;
    life.saturating_sub(START_OF_2025)
}
