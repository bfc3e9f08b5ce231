//! Elections, candidates, and a process's place in the tree an election grows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vez_core::{NodeId, NodeSet, Topology};

/// Elections are ordered: by number, then by initiator.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Index {
    pub number: u64,
    pub initiator: u64,
}

/// A candidate and what it is worth; ties go to the larger uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Champion {
    pub merit: u64,
    pub uid: u64,
    pub node: NodeId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Part {
    pub(super) parent: Option<NodeId>,
    pub(super) children: NodeSet,
    /// The best in the subtree so far.
    pub(super) best: Champion,
    /// Whether the parent has been told, and owes us the result.
    pub(super) reported: bool,
    /// Who owes us a word, and how many probes it left unanswered.
    pub(super) waiting: BTreeMap<NodeId, u32>,
}

/// What a process that comes back must not use again.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Used {
    pub number: u64,
    pub beats: u64,
}

impl Champion {
    pub(super) fn of(node: NodeId, topology: &Topology) -> Self {
        let (merit, uid) = topology.rank(node);
        Self { merit, uid, node }
    }
}
