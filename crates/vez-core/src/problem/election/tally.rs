//! Who declared itself leader when, and whom each process follows.

use super::{Election, ElectionNotice, ElectionRequest, NodeId, Term};
use crate::problem::{Account, Tally};
use crate::{Time, Topology};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElectionTally {
    /// In the order they were made.
    pub declarations: Vec<Declaration>,
    /// What each process believes, by address.
    pub views: Vec<View>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub node: NodeId,
    pub at: Time,
    pub term: Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Unknown,
    Follows(NodeId),
    Down,
}

impl From<ElectionTally> for Account {
    fn from(tally: ElectionTally) -> Self {
        Self::Election(tally)
    }
}

impl Tally<Election> for ElectionTally {
    fn new(topology: &Topology) -> Self {
        let views = vec![View::Unknown; topology.n() as usize];
        Self { declarations: Vec::new(), views }
    }

    fn on_request(&mut self, _at: Time, _node: NodeId, _request: &ElectionRequest) {}

    fn on_notice(&mut self, at: Time, node: NodeId, notice: &ElectionNotice) {
        match *notice {
            ElectionNotice::Leader { id, term } => {
                self.views[node.index()] = View::Follows(id);
                if id == node {
                    self.declarations.push(Declaration { node, at, term });
                }
            }
            ElectionNotice::NoLeader { .. } => self.views[node.index()] = View::Unknown,
        }
    }

    fn on_crash(&mut self, _at: Time, node: NodeId) {
        self.views[node.index()] = View::Down;
    }

    fn on_restart(&mut self, node: NodeId) {
        self.views[node.index()] = View::Unknown;
    }
}

impl ElectionTally {
    /// The one every live process follows; `None` where they disagree or know of nobody.
    pub fn leader(&self) -> Option<NodeId> {
        let mut live = self.views.iter().filter(|&&view| view != View::Down);
        let View::Follows(leader) = *live.next()? else { return None };
        live.all(|&view| view == View::Follows(leader)).then_some(leader)
    }

    /// How often another process than before came to lead.
    pub fn changes(&self) -> usize {
        self.declarations.windows(2).filter(|pair| pair[0].node != pair[1].node).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Declaration, ElectionTally, NodeId, Time, View};

    #[test]
    fn the_leader_is_whom_every_live_process_follows() {
        let follows = |i| View::Follows(NodeId(i));
        let of = |views: &[View]| {
            ElectionTally { views: views.to_vec(), ..ElectionTally::default() }.leader()
        };
        assert_eq!(of(&[follows(1), View::Down, follows(1)]), Some(NodeId(1)));
        assert_eq!(of(&[follows(1), follows(2)]), None);
        assert_eq!(of(&[follows(1), View::Unknown]), None);
        assert_eq!(of(&[View::Down, View::Down]), None);
    }

    #[test]
    fn only_a_different_leader_is_a_change() {
        let declared = |node| Declaration { node: NodeId(node), at: Time::ZERO, term: 0 };
        let declarations = [4, 5, 5, 4].map(declared).to_vec();
        assert_eq!(ElectionTally { declarations, views: Vec::new() }.changes(), 2);
    }
}
