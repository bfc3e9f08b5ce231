//! What one may tune in an election by majority.

use serde::{Deserialize, Serialize};
use vez_core::{Time, Topology};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub heartbeat_every: Time,
    /// An election waits between this long and twice this long.
    pub election_after: Time,
    pub pre_vote: bool,
    pub check_quorum: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_every: Time::from_millis(50),
            election_after: Time::from_millis(150),
            pre_vote: false,
            check_quorum: false,
        }
    }
}

impl Config {
    pub(super) fn validate(&self, topology: &Topology) -> Result<(), String> {
        let (beat, patience) = (self.heartbeat_every, self.election_after);
        if beat == Time::ZERO {
            return Err("heartbeat_every: expected more than 0".to_owned());
        }
        if patience <= beat {
            return Err(format!(
                "election_after: expected more than heartbeat_every, {beat}, found {patience}"
            ));
        }
        if topology.weight_total() == 0 {
            return Err("weight: expected at least one process with a vote".to_owned());
        }
        Ok(())
    }
}
