//! A coordinator's desk: who holds the permission, who waits for it, and how often it was given.
//! A data structure that every algorithm with coordinators shares.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vez_core::{Fence, NodeId, Term};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Desk {
    holder: Option<Grant>,
    /// In the order of arrival, unless its owner wants it by age.
    queue: VecDeque<Claim>,
    /// The last grant's fence, or the largest heard of if that is larger.
    grants: Fence,
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

impl Claim {
    /// Older is smaller, where requests are numbered by a logical clock.
    pub fn age(self) -> (u64, NodeId) {
        (self.request, self.node)
    }
}

impl Desk {
    /// A desk of one of many who coordinate one after the other.
    pub fn of(term: Term) -> Self {
        Self { grants: Fence { term, count: 0 }, ..Self::default() }
    }

    pub fn holder(&self) -> Option<Grant> {
        self.holder
    }

    /// Who is next.
    pub fn first(&self) -> Option<Claim> {
        self.queue.front().copied()
    }

    /// Queues a claim, unless it was made before.
    pub fn enqueue(&mut self, claim: Claim) {
        let held = self.holder.is_some_and(|grant| grant.claim == claim);
        if !held && !self.queue.contains(&claim) {
            self.queue.push_back(claim);
        }
    }

    /// Queues a claim before all that are younger, unless it was made before.
    pub fn enqueue_by_age(&mut self, claim: Claim) {
        let held = self.holder.is_some_and(|grant| grant.claim == claim);
        if !held && !self.queue.contains(&claim) {
            let index = self.queue.partition_point(|other| other.age() < claim.age());
            self.queue.insert(index, claim);
        }
    }

    /// Puts the permission of a holder that yields back, and the holder in its place by age.
    pub fn relinquish(&mut self, claim: Claim) {
        if self.holder.is_some_and(|grant| grant.claim == claim) {
            self.holder = None;
            self.enqueue_by_age(claim);
        }
    }

    /// Takes a claim off the desk whatever fence it was given here: its holder may have entered
    /// with a larger one that another desk gave it. Later grants' fences are larger still.
    pub fn release_any(&mut self, claim: Claim, used: Option<Fence>) -> Release {
        self.grants = self.grants.max(used.unwrap_or_default());
        let given = self.holder.map(|grant| grant.fence);
        self.release(claim, given)
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

    /// Takes every claim of a process up to this request off the desk: it is done with them.
    pub fn forget(&mut self, node: NodeId, request: u64) {
        let done = |claim: Claim| claim.node == node && claim.request <= request;
        self.holder = self.holder.filter(|grant| !done(grant.claim));
        self.queue.retain(|&claim| !done(claim));
    }

    /// Learns of a permission that was given elsewhere.
    pub fn restore(&mut self, grant: Grant) {
        self.holder.get_or_insert(grant);
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
        self.grants.count += 1;
        self.holder = Some(Grant { claim, fence: self.grants });
        self.holder
    }
}
