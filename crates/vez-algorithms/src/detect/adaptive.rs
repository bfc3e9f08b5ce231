//! The adaptive detector: every false suspicion makes it more patient with that peer. Chandra and
//! Toueg, *Unreliable Failure Detectors for Reliable Distributed Systems*, JACM 43(2), 1996.
//!
//! Where delays have a bound that nobody knows, it is wrong only finitely often: each mistake
//! brings its patience nearer to the bound. That is what ◊P, eventually perfect, means.

use serde::Serialize;

use super::{Detector, DetectorConfig};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Adaptive {
    /// How often this peer was suspected and then heard.
    mistakes: u64,
}

impl Detector for Adaptive {
    fn patience(&self, config: &DetectorConfig) -> u64 {
        config.ticks(config.timeout + config.increase * self.mistakes)
    }

    fn on_heartbeat(&mut self, _silent: u64, suspected: bool) {
        self.mistakes += u64::from(suspected);
    }
}
