//! What may be set of a quorum, and what it is if it is not.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use vez_core::{Time, Topology};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub coordinators: Option<u32>,
    pub quorum: Option<u32>,
    pub retry_after: Option<Time>,
    pub order: Order,
    pub answer_late: bool,
    pub durable: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    #[default]
    Arrival,
    Timestamp,
}

/// The wait between attempts is not doubled more often than this.
const DOUBLINGS_MAX: u32 = 8;

impl Config {
    /// The first so many processes coordinate; all of them, if nobody says otherwise.
    pub(super) fn coordinators(&self, topology: &Topology) -> u32 {
        self.coordinators.unwrap_or(topology.n())
    }

    /// How many permissions it takes; if nobody says otherwise, the smallest majority.
    pub(super) fn quorum(&self, topology: &Topology) -> u32 {
        self.quorum.unwrap_or(self.coordinators(topology) / 2 + 1)
    }

    /// A coordinator that remembers may remember a release that it was down for.
    pub(super) fn answers_late(&self) -> bool {
        self.answer_late || self.durable
    }

    /// How long to wait after so many attempts: from nothing to less than twice as long each time.
    pub(super) fn back_off(&self, failed: u32) -> RangeInclusive<Time> {
        let base = self.retry_after.expect("only who retries backs off");
        let end = base * (1 << failed.min(DOUBLINGS_MAX));
        Time::ZERO..=end - Time::from_micros(1)
    }

    pub(super) fn validate(&self, topology: &Topology) -> Result<(), String> {
        let (n, coordinators) = (topology.n(), self.coordinators(topology));
        if coordinators == 0 || n < coordinators {
            return Err(format!("coordinators: expected 1 to {n} processes, found {coordinators}"));
        }
        let quorum = self.quorum(topology);
        if quorum <= coordinators / 2 {
            let expected = format!("expected more than half of {coordinators} coordinators");
            return Err(format!("quorum: {expected}, found {quorum}"));
        }
        if coordinators < quorum {
            return Err(format!(
                "quorum: expected at most {coordinators} coordinators, found {quorum}"
            ));
        }
        if self.retry_after == Some(Time::ZERO) {
            return Err("retry_after: expected more than 0".to_owned());
        }
        Ok(())
    }
}
