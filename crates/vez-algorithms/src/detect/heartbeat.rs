//! The plain detector: suspects whoever has been silent for a fixed time.
//!
//! Right for ever where delays have a known bound and the timeout covers it; wrong now and then
//! everywhere else.

use serde::Serialize;

use super::{Detector, DetectorConfig};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Heartbeat;

impl Detector for Heartbeat {
    fn patience(&self, config: &DetectorConfig) -> u64 {
        config.ticks(config.timeout)
    }

    fn on_heartbeat(&mut self, _silent: u64, _suspected: bool) {}
}
