//! What one may tune in a probabilistic election.

use serde::{Deserialize, Serialize};
use vez_core::{NodeId, Time, Topology};

use super::draw::{Tag, lot, passes};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many should pass the filter, on average.
    pub k: u32,
    /// What processes take the size of the group for; not set, they know it.
    pub n: Option<u64>,
    /// How often an initiator tries.
    pub rounds: u32,
    /// About how many others each process knows; not set, all of them.
    pub view: Option<u32>,
    /// How often one that passed tells the others of a better one it heard of.
    pub relays: u32,
    pub relay_within: Time,
    pub check_within: Time,
    pub round_within: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            k: 8,
            n: None,
            rounds: 5,
            view: None,
            relays: 2,
            relay_within: Time::from_millis(2),
            check_within: Time::from_millis(2),
            round_within: Time::from_millis(20),
        }
    }
}

impl Config {
    pub(super) fn size(&self, topology: &Topology) -> u64 {
        self.n.unwrap_or(u64::from(topology.n()))
    }

    /// Whether `me` knows `peer`: the same few for good, drawn when the group was made.
    pub(super) fn sees(&self, me: NodeId, peer: NodeId, topology: &Topology) -> bool {
        let of = Tag { number: 0, initiator: topology.uid(me) };
        let lot = lot(topology.uid(peer), of);
        self.view.is_none_or(|view| passes(lot, view, u64::from(topology.n() - 1)))
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        match self {
            Self { k: 0, .. } => Err("k: expected 1 or more, found 0".to_owned()),
            Self { n: Some(0), .. } => Err("n: expected 1 or more, found 0".to_owned()),
            Self { rounds: 0, .. } => Err("rounds: expected 1 or more, found 0".to_owned()),
            _ => Ok(()),
        }
    }
}
