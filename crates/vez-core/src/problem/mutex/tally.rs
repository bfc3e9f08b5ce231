//! Who was inside when, and what a resource that checks fences would have refused.

use std::collections::BTreeMap;

use super::{Fence, Mutex, MutexNotice, MutexRequest, NodeId};
use crate::problem::{Account, Tally};
use crate::{Time, Topology};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutexTally {
    /// In the order of entering.
    pub entries: Vec<Entry>,
    /// Who waits, and since when.
    pub waiting: BTreeMap<NodeId, Time>,
    /// How many writes of overtaken holders the resource would have refused. Every holder is
    /// taken to write as it enters and once more as it leaves.
    pub refused_by_fence: u64,
    /// The largest fence the resource has seen.
    largest: Option<Fence>,
    /// The entry each process is inside of.
    open: BTreeMap<NodeId, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub node: NodeId,
    pub requested: Time,
    pub entered: Time,
    /// `None` while inside, and for good if it crashed there.
    pub left: Option<Time>,
    pub fence: Option<Fence>,
}

impl From<MutexTally> for Account {
    fn from(tally: MutexTally) -> Self {
        Self::Mutex(tally)
    }
}

impl Tally<Mutex> for MutexTally {
    fn new(_topology: &Topology) -> Self {
        Self::default()
    }

    fn on_request(&mut self, at: Time, node: NodeId, request: &MutexRequest) {
        match request {
            MutexRequest::Acquire => {
                self.waiting.insert(node, at);
            }
            MutexRequest::Release => self.leave(at, node),
            MutexRequest::Withdraw => {
                self.waiting.remove(&node);
            }
        }
    }

    fn on_notice(&mut self, at: Time, node: NodeId, notice: &MutexNotice) {
        match *notice {
            MutexNotice::Entered { fence } => {
                let requested = self.waiting.remove(&node).unwrap_or(at);
                self.open.insert(node, self.entries.len());
                self.entries.push(Entry { node, requested, entered: at, left: None, fence });
                self.write(fence);
            }
            MutexNotice::Expelled => self.leave(at, node),
        }
    }

    fn on_crash(&mut self, _at: Time, node: NodeId) {
        self.waiting.remove(&node);
        self.open.remove(&node);
    }
}

impl MutexTally {
    fn leave(&mut self, at: Time, node: NodeId) {
        if let Some(index) = self.open.remove(&node) {
            self.entries[index].left = Some(at);
            self.write(self.entries[index].fence);
        }
    }

    fn write(&mut self, fence: Option<Fence>) {
        if fence.is_some() && fence < self.largest {
            self.refused_by_fence += 1;
        } else {
            self.largest = self.largest.max(fence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fence, MutexNotice, MutexRequest, MutexTally, NodeId, Tally, Time};

    #[test]
    fn the_resource_refuses_who_was_overtaken() {
        let mut tally = MutexTally::default();
        let (slow, next) = (NodeId(0), NodeId(1));
        let ms = Time::from_millis;
        for (at, node, fence) in [(1, slow, 1), (5, next, 2)] {
            tally.on_request(ms(at), node, &MutexRequest::Acquire);
            let entered = MutexNotice::Entered { fence: Some(Fence::plain(fence)) };
            tally.on_notice(ms(at + 1), node, &entered);
        }
        assert_eq!(tally.refused_by_fence, 0);
        tally.on_request(ms(9), slow, &MutexRequest::Release);
        tally.on_request(ms(10), next, &MutexRequest::Release);
        assert_eq!(tally.refused_by_fence, 1);
        let times: Vec<_> =
            tally.entries.iter().map(|e| (e.requested, e.entered, e.left)).collect();
        assert_eq!(times, [(ms(1), ms(2), Some(ms(9))), (ms(5), ms(6), Some(ms(10)))]);
    }
}
