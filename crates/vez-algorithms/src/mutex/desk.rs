//! A coordinator's desk: who holds the permission, who waits for it, and how often it was given.
//! A data structure that every algorithm with coordinators shares.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vez_core::{Fence, NodeId};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Desk {
    holder: Option<Grant>,
    /// In the order of arrival.
    queue: VecDeque<Claim>,
    grants: u64,
}

/// Whose which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    pub node: NodeId,
    pub request: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Grant {
    pub claim: Claim,
    pub fence: Fence,
}

/// What a release turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    OfHolder,
    /// Of one who was still waiting, and now is not.
    OfWaiting,
    /// Of a grant that was revoked, or said twice. Nothing changed.
    Stale,
}

impl Desk {
    pub fn holder(&self) -> Option<Grant> {
        self.holder
    }

    /// Queues a claim, unless it was made before.
    pub fn enqueue(&mut self, claim: Claim) {
        let held = self.holder.is_some_and(|grant| grant.claim == claim);
        if !held && !self.queue.contains(&claim) {
            self.queue.push_back(claim);
        }
    }

    /// Takes a claim off the desk. To free the permission it must carry the fence it was given.
    pub fn release(&mut self, claim: Claim, fence: Option<Fence>) -> Release {
        if self.holder.is_some_and(|grant| grant.claim == claim && Some(grant.fence) == fence) {
            self.holder = None;
            return Release::OfHolder;
        }
        match self.queue.iter().position(|&other| other == claim) {
            Some(index) => {
                self.queue.remove(index);
                Release::OfWaiting
            }
            None => Release::Stale,
        }
    }

    /// Stops waiting for the holder, who may merely be slow.
    pub fn revoke(&mut self) {
        self.holder = None;
    }

    /// Gives the permission to the first in line, if nobody has it.
    pub fn grant(&mut self) -> Option<Grant> {
        if self.holder.is_some() {
            return None;
        }
        let claim = self.queue.pop_front()?;
        self.grants += 1;
        self.holder = Some(Grant { claim, fence: Fence::plain(self.grants) });
        self.holder
    }
}
