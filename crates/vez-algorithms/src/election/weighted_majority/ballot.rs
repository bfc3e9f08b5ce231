//! A process's promise to the others.

use serde::{Deserialize, Serialize};
use vez_core::{NodeId, Term};

/// The promise that must outlive a crash.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ballot {
    pub term: Term,
    pub voted_for: Option<NodeId>,
}

impl Ballot {
    /// The next term, with our own vote.
    pub(super) fn next(self, me: NodeId) -> Self {
        Self { term: self.term + 1, voted_for: Some(me) }
    }

    /// Gives our vote of this term to `candidate`, if nobody else has it.
    pub(super) fn vote(&mut self, candidate: NodeId) -> bool {
        *self.voted_for.get_or_insert(candidate) == candidate
    }
}
