//! What one may tune in an election without wires.

use serde::{Deserialize, Serialize};
use vez_core::Time;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub announce: Announce,
    /// Set, processes may move: everything below counts. Not set, nothing is ever lost.
    pub heartbeat_every: Option<Time>,
    /// A leader silent for between this long and twice this long is lost.
    pub lost_after: Time,
    pub probe_every: Time,
    /// A neighbour that leaves this many probes unanswered has gone.
    pub probes_max: u32,
}

/// How the result goes out: down the tree the election grew, or over every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Announce {
    Tree,
    Flood,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            announce: Announce::Tree,
            heartbeat_every: None,
            lost_after: Time::from_millis(60),
            probe_every: Time::from_millis(5),
            probes_max: 3,
        }
    }
}

impl Config {
    pub(super) fn is_mobile(&self) -> bool {
        self.heartbeat_every.is_some()
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        let Some(beat) = self.heartbeat_every else { return Ok(()) };
        if beat == Time::ZERO || self.probe_every == Time::ZERO {
            return Err("heartbeat_every, probe_every: expected more than 0".to_owned());
        }
        if self.lost_after <= beat {
            let lost = self.lost_after;
            return Err(format!(
                "lost_after: expected more than heartbeat_every, {beat}, found {lost}"
            ));
        }
        Ok(())
    }
}
