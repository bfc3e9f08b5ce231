//! What one may tune in an election by uptime.

use serde::{Deserialize, Serialize};
use vez_core::{Protocol, Time, Topology};

use crate::election::weighted_majority::{self, WeightedMajority};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub tick: Time,
    pub canvass_within: Time,
    pub heartbeat_every: Time,
    pub election_after: Time,
}

impl Default for Config {
    fn default() -> Self {
        let votes = weighted_majority::Config::default();
        let (heartbeat_every, election_after) = (votes.heartbeat_every, votes.election_after);
        let (tick, canvass_within) = (Time::from_millis(10), Time::from_millis(2));
        Self { tick, canvass_within, heartbeat_every, election_after }
    }
}

impl Config {
    /// Asking around makes a pre-vote needless.
    pub(super) fn votes(&self) -> weighted_majority::Config {
        let &Self { heartbeat_every, election_after, .. } = self;
        weighted_majority::Config {
            heartbeat_every,
            election_after,
            ..weighted_majority::Config::default()
        }
    }

    pub(super) fn validate(&self, topology: &Topology) -> Result<(), String> {
        if self.tick == Time::ZERO {
            return Err("tick: expected more than 0".to_owned());
        }
        if self.election_after <= self.canvass_within {
            let (within, after) = (self.canvass_within, self.election_after);
            return Err(format!(
                "election_after: expected more than canvass_within, {within}, found {after}"
            ));
        }
        WeightedMajority::validate(&self.votes(), topology)
    }
}
