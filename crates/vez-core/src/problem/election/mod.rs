//! Leader election: one leader, and in the end everyone knows who.

mod agreement;
mod stability;
mod tally;
mod termination;
mod uniqueness;
mod validity;

use serde::{Deserialize, Serialize};

use super::{Court, Debt, Ending, Problem, Reaction, Terms, Wish};
use crate::{NodeId, NodeSet, Promise, Term, Topology, Winner};

use stability::Stability;
pub use tally::{Declaration, ElectionTally, Failure, View};
use uniqueness::Uniqueness;

/// What the outside world knows of an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    seats: Vec<Seat>,
    down: NodeSet,
    uniqueness: Uniqueness,
    stability: Stability,
    winner: Winner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ElectionRequest {
    Start,
    /// This process seems to have failed. It may merely be slow.
    Suspect(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ElectionNotice {
    /// From now on this process follows `id`; it leads if that is itself.
    Leader { id: NodeId, term: Term },
    /// From now on this process knows of no leader.
    NoLeader { term: Term },
    /// Its failure detector has come to suspect `id`, rightly or wrongly.
    Suspects { id: NodeId },
    /// Its failure detector has heard `id` again.
    Trusts { id: NodeId },
}

/// What one process last said it believes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seat {
    /// Its user has asked for an election and been told no leader since.
    owed: bool,
    leader: Option<NodeId>,
}

impl Problem for Election {
    type Request = ElectionRequest;
    type Notice = ElectionNotice;
    type Tally = ElectionTally;

    const NAME: &'static str = "election";
    const PROMISES: &'static [Promise] = &[
        Promise::Termination,
        Promise::Uniqueness,
        Promise::Agreement,
        Promise::Validity,
        Promise::Stability,
    ];

    fn new(topology: &Topology, terms: Terms) -> Self {
        Self {
            seats: vec![Seat::default(); topology.n() as usize],
            down: NodeSet::new(),
            uniqueness: Uniqueness::default(),
            stability: Stability::default(),
            winner: terms.winner,
        }
    }

    fn request(wish: Wish) -> Option<ElectionRequest> {
        match wish {
            Wish::Start => Some(ElectionRequest::Start),
            Wish::Suspect(node) => Some(ElectionRequest::Suspect(node)),
            Wish::Acquire | Wish::Release | Wish::Withdraw => None,
        }
    }

    fn may(&self, node: NodeId, _request: &ElectionRequest) -> bool {
        self.is_up(node)
    }

    fn next_request(&self, node: NodeId) -> Option<ElectionRequest> {
        let seat = self.seats[node.index()];
        match seat.leader {
            _ if !self.is_up(node) || seat.owed => None,
            Some(leader) if !self.is_up(leader) => Some(ElectionRequest::Suspect(leader)),
            Some(_) => None,
            None => Some(ElectionRequest::Start),
        }
    }

    fn reaction(_notice: &ElectionNotice) -> Reaction {
        Reaction::None
    }

    fn on_request(&mut self, node: NodeId, _request: &ElectionRequest, _court: &mut Court<'_>) {
        self.seats[node.index()].owed = true;
    }

    fn on_notice(&mut self, node: NodeId, notice: &ElectionNotice, court: &mut Court<'_>) {
        match *notice {
            ElectionNotice::Leader { id, term } if id == node => {
                self.uniqueness.on_declared(node, term, &self.down, court);
                self.stability.on_declared(node, court);
                self.seats[node.index()] = Seat { owed: false, leader: Some(id) };
            }
            ElectionNotice::Leader { id, .. } => {
                self.uniqueness.on_stepped_down(node);
                self.seats[node.index()] = Seat { owed: false, leader: Some(id) };
            }
            ElectionNotice::NoLeader { .. } => {
                self.uniqueness.on_stepped_down(node);
                self.seats[node.index()].leader = None;
            }
            // Suspicions are means, not ends: no promise is about them.
            ElectionNotice::Suspects { .. } | ElectionNotice::Trusts { .. } => (),
        }
    }

    fn on_crash(&mut self, node: NodeId) {
        self.seats[node.index()] = Seat::default();
        self.down.insert(node);
        self.uniqueness.on_crash(node);
        self.stability.on_crash(node);
    }

    fn on_restart(&mut self, node: NodeId) {
        self.down.remove(&node);
    }

    fn at_rest(&self, _ending: Ending, court: &mut Court<'_>) {
        termination::at_rest(self, court);
        agreement::at_rest(self, court);
        validity::at_rest(self, court);
    }

    /// Each who asked is owed a leader; all are owed one whom they all follow.
    fn debts(&self) -> Vec<Debt> {
        let mut debts = Vec::new();
        match self.leaders().next() {
            None => {
                let owed = self.views().filter(|(_, seat)| seat.owed);
                let debt = |(node, _)| Debt { promise: Promise::Termination, node: Some(node) };
                debts.extend(owed.map(debt));
            }
            Some(leader) if self.views().all(|(_, seat)| seat.leader == Some(leader)) => (),
            Some(_) => debts.push(Debt { promise: Promise::Agreement, node: None }),
        }
        debts
    }

    /// An election is never over for good: leaders fail.
    fn is_settled(&self) -> bool {
        false
    }
}

impl Election {
    fn is_up(&self, node: NodeId) -> bool {
        self.down.is_empty() || !self.down.contains(&node)
    }

    /// What every live process believes.
    fn views(&self) -> impl Iterator<Item = (NodeId, Seat)> + '_ {
        let seats = self.seats.iter().enumerate().map(|(i, &seat)| (NodeId(i as u32), seat));
        seats.filter(|&(node, _)| self.is_up(node))
    }

    /// The live processes that believe they lead.
    fn leaders(&self) -> impl Iterator<Item = NodeId> + '_ {
        let lead = |&(node, seat): &(NodeId, Seat)| seat.leader == Some(node);
        self.views().filter(lead).map(|(node, _)| node)
    }
}

/// Plays a history against the spec: what each promise's tests are written with.
#[cfg(test)]
pub(crate) mod history {
    use super::{Election, ElectionNotice, ElectionRequest};
    use crate::problem::{Breach, Court, Ending, Problem, Terms};
    use crate::{Layout, NodeId, Promise, Term, Topology, Winner};

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Fact {
        Starts(u32),
        Suspects(u32, u32),
        /// Who, whom it now follows.
        Follows(u32, u32),
        FollowsIn(u32, u32, Term),
        Gives(u32),
        Crashes(u32),
        Restarts(u32),
    }

    /// The promises of three processes (`P1`, `P2`, `P3` at 0, 1, 2) that this history breaks.
    pub(crate) fn broken(history: &[Fact]) -> Vec<Breach> {
        judged(history, Winner::Any)
    }

    pub(crate) fn names(breaches: &[Breach]) -> Vec<Promise> {
        breaches.iter().map(|breach| breach.promise).collect()
    }

    pub(crate) fn judged(history: &[Fact], winner: Winner) -> Vec<Breach> {
        let topology = Topology::of(Layout::Complete, 3).unwrap();
        let terms = Terms { winner, wait_bound: None, fenced: false, counted: true };
        let mut spec = Election::new(&topology, terms);
        let mut breaches = Vec::new();
        let mut court = Court { topology: &topology, breaches: &mut breaches };
        for &fact in history {
            let tell = |spec: &mut Election, court: &mut Court<'_>, node, notice| {
                spec.on_notice(NodeId(node), &notice, court);
            };
            match fact {
                Fact::Starts(node) => {
                    spec.on_request(NodeId(node), &ElectionRequest::Start, &mut court);
                }
                Fact::Suspects(node, of) => {
                    let request = ElectionRequest::Suspect(NodeId(of));
                    spec.on_request(NodeId(node), &request, &mut court);
                }
                Fact::Follows(node, leader) => {
                    let notice = ElectionNotice::Leader { id: NodeId(leader), term: 0 };
                    tell(&mut spec, &mut court, node, notice);
                }
                Fact::FollowsIn(node, leader, term) => {
                    let notice = ElectionNotice::Leader { id: NodeId(leader), term };
                    tell(&mut spec, &mut court, node, notice);
                }
                Fact::Gives(node) => {
                    tell(&mut spec, &mut court, node, ElectionNotice::NoLeader { term: 0 });
                }
                Fact::Crashes(node) => spec.on_crash(NodeId(node)),
                Fact::Restarts(node) => spec.on_restart(NodeId(node)),
            }
        }
        spec.at_rest(Ending::Quiescent, &mut court);
        breaches
    }
}

#[cfg(test)]
mod tests {
    use super::{Election, ElectionNotice, ElectionRequest};
    use crate::problem::{Court, Debt, Problem, Terms};
    use crate::{Layout, NodeId, Promise, Topology, Winner};

    #[test]
    fn who_asked_is_owed_a_leader_and_then_all_are_owed_the_same() {
        let topology = Topology::of(Layout::Complete, 2).unwrap();
        let terms = Terms { winner: Winner::Any, wait_bound: None, fenced: false, counted: true };
        let mut spec = Election::new(&topology, terms);
        let court = &mut Court { topology: &topology, breaches: &mut Vec::new() };
        assert_eq!(spec.debts(), []);
        spec.on_request(NodeId(0), &ElectionRequest::Start, court);
        let termination = Debt { promise: Promise::Termination, node: Some(NodeId(0)) };
        assert_eq!(spec.debts(), [termination]);
        let notice = ElectionNotice::Leader { id: NodeId(1), term: 0 };
        spec.on_notice(NodeId(1), &notice, court);
        assert_eq!(spec.debts(), [Debt { promise: Promise::Agreement, node: None }]);
        spec.on_notice(NodeId(0), &notice, court);
        assert_eq!(spec.debts(), []);
    }
}
