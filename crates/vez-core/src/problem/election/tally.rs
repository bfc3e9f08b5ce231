//! Who declared itself leader when, whom each process follows, and how failures were met.

use super::{Election, ElectionNotice, ElectionRequest, NodeId, Term};
use crate::problem::{Account, Tally};
use crate::{Time, Topology};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElectionTally {
    /// In the order they were made.
    pub declarations: Vec<Declaration>,
    /// What each process believes, by address.
    pub views: Vec<View>,
    /// When one of them last changed its belief.
    pub changed: Option<Time>,
    /// Crashes, in order.
    pub failures: Vec<Failure>,
    /// How often a detector suspected a process, and how often that process was up.
    pub suspicions: u64,
    pub suspicions_false: u64,
}

/// A crash, and how long it took the others to deal with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub node: NodeId,
    pub at: Time,
    /// Whether it considered itself leader.
    pub led: bool,
    /// When a detector first suspected it, before it came back.
    pub detected: Option<Time>,
    /// If it led: when the next leader declared itself.
    pub replaced: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub node: NodeId,
    pub at: Time,
    pub term: Term,
    /// When it stopped considering itself leader; `None` if it never did.
    pub until: Option<Time>,
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
        Self { views: vec![View::Unknown; topology.n() as usize], ..Self::default() }
    }

    fn on_request(&mut self, _at: Time, _node: NodeId, _request: &ElectionRequest) {}

    fn on_notice(&mut self, at: Time, node: NodeId, notice: &ElectionNotice) {
        match *notice {
            ElectionNotice::Leader { id, term } => {
                self.end_reign(at, node);
                self.believe(at, node, View::Follows(id));
                if id == node {
                    self.declarations.push(Declaration { node, at, term, until: None });
                    let open = |failure: &&mut Failure| failure.led && failure.replaced.is_none();
                    self.failures.iter_mut().filter(open).for_each(|f| f.replaced = Some(at));
                }
            }
            ElectionNotice::NoLeader { .. } => {
                self.end_reign(at, node);
                self.believe(at, node, View::Unknown);
            }
            ElectionNotice::Suspects { id } => self.on_suspicion(at, id),
            ElectionNotice::Trusts { .. } => (),
        }
    }

    fn on_crash(&mut self, at: Time, node: NodeId) {
        let led = self.end_reign(at, node);
        self.views[node.index()] = View::Down;
        self.failures.push(Failure { node, at, led, detected: None, replaced: None });
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

    fn believe(&mut self, at: Time, node: NodeId, view: View) {
        if std::mem::replace(&mut self.views[node.index()], view) != view {
            self.changed = Some(at);
        }
    }

    /// Whether there was one to end.
    fn end_reign(&mut self, at: Time, node: NodeId) -> bool {
        if self.views[node.index()] != View::Follows(node) {
            return false;
        }
        let own = self.declarations.iter_mut().rfind(|declaration| declaration.node == node);
        own.expect("who leads has declared it").until = Some(at);
        true
    }

    fn on_suspicion(&mut self, at: Time, of: NodeId) {
        self.suspicions += 1;
        if self.views[of.index()] != View::Down {
            self.suspicions_false += 1;
            return;
        }
        let last = self.failures.iter_mut().rfind(|failure| failure.node == of);
        last.expect("who is down has crashed").detected.get_or_insert(at);
    }

    /// How often another process than before came to lead.
    pub fn changes(&self) -> usize {
        self.declarations.windows(2).filter(|pair| pair[0].node != pair[1].node).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Declaration, ElectionNotice, ElectionTally, Failure, NodeId, Time, View};
    use crate::problem::Tally;
    use crate::{Layout, Topology};

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
    fn the_last_to_change_its_belief_sets_the_time() {
        let mut tally = ElectionTally::new(&Topology::of(Layout::Complete, 2).unwrap());
        assert_eq!(tally.changed, None);
        let leads = ElectionNotice::Leader { id: NodeId(1), term: 0 };
        let ms = Time::from_millis;
        for (at, node, expected) in [(1, 1, 1), (3, 0, 3), (5, 0, 3)] {
            tally.on_notice(ms(at), NodeId(node), &leads);
            assert_eq!(tally.changed, Some(ms(expected)));
        }
        tally.on_notice(ms(7), NodeId(0), &ElectionNotice::NoLeader { term: 0 });
        assert_eq!(tally.changed, Some(ms(7)));
    }

    #[test]
    fn only_a_different_leader_is_a_change() {
        let declared =
            |node| Declaration { node: NodeId(node), at: Time::ZERO, term: 0, until: None };
        let declarations = [4, 5, 5, 4].map(declared).to_vec();
        assert_eq!(ElectionTally { declarations, ..ElectionTally::default() }.changes(), 2);
    }

    #[test]
    fn a_failure_is_followed_until_it_is_dealt_with() {
        let mut tally = ElectionTally::new(&Topology::of(Layout::Complete, 3).unwrap());
        let (first, last) = (NodeId(0), NodeId(2));
        let leads = |id| ElectionNotice::Leader { id, term: 0 };
        let suspects = |id| ElectionNotice::Suspects { id };
        let ms = Time::from_millis;
        tally.on_notice(ms(1), last, &leads(last));
        tally.on_notice(ms(2), first, &suspects(last)); // It is up.
        tally.on_notice(ms(3), first, &ElectionNotice::Trusts { id: last });
        tally.on_crash(ms(10), last);
        tally.on_notice(ms(14), first, &suspects(last));
        tally.on_notice(ms(15), NodeId(1), &suspects(last));
        tally.on_notice(ms(19), NodeId(1), &leads(NodeId(1)));
        tally.on_crash(ms(30), first);
        tally.on_restart(first);
        tally.on_notice(ms(31), NodeId(1), &suspects(first)); // It is up again.
        let met = Failure {
            node: last,
            at: ms(10),
            led: true,
            detected: Some(ms(14)),
            replaced: Some(ms(19)),
        };
        let missed =
            Failure { node: first, at: ms(30), led: false, detected: None, replaced: None };
        assert_eq!(tally.failures, [met, missed]);
        assert_eq!((tally.suspicions, tally.suspicions_false), (4, 2));
    }
}
