//! Mutual exclusion: at most one process inside, and whoever asks gets in.

mod bounded_wait;
mod fencing;
mod mutual_exclusion;
mod no_deadlock;
mod no_starvation;
mod tally;

use serde::{Deserialize, Serialize};

use super::{Court, Debt, Ending, Problem, Reaction, Terms, Wish};
use crate::{Fence, NodeId, Promise, Topology};

use bounded_wait::BoundedWait;
use fencing::Fencing;
pub use tally::{Entry, MutexTally};

/// What the outside world knows of the critical section.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mutex {
    users: Vec<User>,
    /// Who is inside. One at most, unless the promise is broken.
    inside: Vec<NodeId>,
    bounded_wait: Option<BoundedWait>,
    fencing: Option<Fencing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MutexRequest {
    Acquire,
    Release,
    /// The user no longer wants in.
    Withdraw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MutexNotice {
    Entered {
        fence: Option<Fence>,
    },
    /// The process took its user out again: its lease ran out on its own clock.
    Expelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum User {
    Outside,
    Waiting,
    Inside,
    Down,
}

impl Problem for Mutex {
    type Request = MutexRequest;
    type Notice = MutexNotice;
    type Tally = MutexTally;

    const NAME: &'static str = "mutex";
    const PROMISES: &'static [Promise] = &[
        Promise::MutualExclusion,
        Promise::NoDeadlock,
        Promise::NoStarvation,
        Promise::BoundedWait,
        Promise::Fencing,
    ];

    fn new(topology: &Topology, terms: Terms) -> Self {
        Self {
            users: vec![User::Outside; topology.n() as usize],
            inside: Vec::new(),
            bounded_wait: terms.counted.then(|| BoundedWait::new(terms.wait_bound)),
            fencing: terms.fenced.then(Fencing::default),
        }
    }

    fn request(wish: Wish) -> Option<MutexRequest> {
        match wish {
            Wish::Acquire => Some(MutexRequest::Acquire),
            Wish::Release => Some(MutexRequest::Release),
            Wish::Withdraw => Some(MutexRequest::Withdraw),
            Wish::Start | Wish::Suspect(_) => None,
        }
    }

    fn may(&self, node: NodeId, request: &MutexRequest) -> bool {
        let needed = match request {
            MutexRequest::Acquire => User::Outside,
            MutexRequest::Release => User::Inside,
            MutexRequest::Withdraw => User::Waiting,
        };
        self.users[node.index()] == needed
    }

    fn next_request(&self, node: NodeId) -> Option<MutexRequest> {
        match self.users[node.index()] {
            User::Outside => Some(MutexRequest::Acquire),
            User::Inside => Some(MutexRequest::Release),
            User::Waiting | User::Down => None,
        }
    }

    fn reaction(notice: &MutexNotice) -> Reaction {
        match notice {
            MutexNotice::Entered { .. } => Reaction::Hold,
            MutexNotice::Expelled => Reaction::Outside,
        }
    }

    fn on_request(&mut self, node: NodeId, request: &MutexRequest, _court: &mut Court<'_>) {
        assert!(self.may(node, request), "{node:?} may not {request:?} now");
        match request {
            MutexRequest::Acquire => {
                self.users[node.index()] = User::Waiting;
                self.bounded_wait.iter_mut().for_each(|wait| wait.on_asked(node));
                self.fencing.iter_mut().for_each(|fencing| fencing.on_asked(node));
            }
            MutexRequest::Release => self.leave(node),
            MutexRequest::Withdraw => {
                self.users[node.index()] = User::Outside;
                self.stop_waiting(node);
            }
        }
    }

    fn on_notice(&mut self, node: NodeId, notice: &MutexNotice, court: &mut Court<'_>) {
        match notice {
            MutexNotice::Entered { fence } => {
                mutual_exclusion::on_entered(self, node, court);
                if let Some(wait) = &mut self.bounded_wait {
                    wait.on_entered(node, court);
                }
                if let Some(fencing) = &mut self.fencing {
                    fencing.on_entered(node, *fence, court);
                }
                self.users[node.index()] = User::Inside;
                self.inside.push(node);
            }
            MutexNotice::Expelled => self.leave(node),
        }
    }

    fn on_crash(&mut self, node: NodeId) {
        self.leave(node);
        self.stop_waiting(node);
        self.users[node.index()] = User::Down;
    }

    fn on_restart(&mut self, node: NodeId) {
        self.users[node.index()] = User::Outside;
    }

    fn at_rest(&self, ending: Ending, court: &mut Court<'_>) {
        no_deadlock::at_rest(self, ending, court);
        no_starvation::at_rest(self, ending, court);
        self.bounded_wait.iter().for_each(|wait| wait.at_rest(court));
    }

    fn debts(&self) -> Vec<Debt> {
        let owed = |node| Debt { promise: Promise::NoStarvation, node: Some(node) };
        self.waiting().into_iter().map(owed).collect()
    }

    fn worst_wait(&self) -> Option<u64> {
        self.bounded_wait.as_ref().map(BoundedWait::worst)
    }

    fn is_settled(&self) -> bool {
        self.users.iter().all(|&user| matches!(user, User::Outside | User::Down))
    }

    fn remark(&self, promise: Promise) -> Option<String> {
        let wait = self.bounded_wait.as_ref().filter(|_| promise == Promise::BoundedWait);
        wait.map(BoundedWait::remark)
    }
}

impl Mutex {
    fn leave(&mut self, node: NodeId) {
        self.users[node.index()] = User::Outside;
        self.inside.retain(|&inside| inside != node);
    }

    fn stop_waiting(&mut self, node: NodeId) {
        self.bounded_wait.iter_mut().for_each(|wait| wait.on_gone(node));
        self.fencing.iter_mut().for_each(|fencing| fencing.on_gone(node));
    }

    fn waiting(&self) -> Vec<NodeId> {
        let waits = |&(_, &user): &(usize, &User)| user == User::Waiting;
        self.users.iter().enumerate().filter(waits).map(|(i, _)| NodeId(i as u32)).collect()
    }
}

/// Plays a history against the spec: what each promise's tests are written with.
#[cfg(test)]
pub(crate) mod history {
    use super::{Mutex, MutexNotice, MutexRequest};
    use crate::problem::{Breach, Court, Ending, Problem, Terms};
    use crate::{Fence, Layout, NodeId, Promise, Topology, Winner};

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Fact {
        Asks(u32),
        Withdraws(u32),
        Enters(u32),
        EntersWith(u32, u64),
        Leaves(u32),
        Expelled(u32),
        Crashes(u32),
        Restarts(u32),
    }

    /// The promises of three processes (`P1`, `P2`, `P3` at 0, 1, 2) that this history breaks.
    pub(crate) fn broken(history: &[Fact]) -> Vec<Breach> {
        judged(history, Ending::Quiescent, None, false)
    }

    pub(crate) fn names(breaches: &[Breach]) -> Vec<Promise> {
        breaches.iter().map(|breach| breach.promise).collect()
    }

    pub(crate) fn judged(
        history: &[Fact],
        ending: Ending,
        wait_bound: Option<u64>,
        fenced: bool,
    ) -> Vec<Breach> {
        let topology = Topology::of(Layout::Complete, 3).unwrap();
        let terms = Terms { winner: Winner::Any, wait_bound, fenced, counted: true };
        let mut spec = Mutex::new(&topology, terms);
        let mut breaches = Vec::new();
        let mut court = Court { topology: &topology, breaches: &mut breaches };
        for &fact in history {
            let mut ask = |node, request| spec.on_request(NodeId(node), &request, &mut court);
            match fact {
                Fact::Asks(node) => ask(node, MutexRequest::Acquire),
                Fact::Leaves(node) => ask(node, MutexRequest::Release),
                Fact::Withdraws(node) => ask(node, MutexRequest::Withdraw),
                Fact::Enters(node) => {
                    spec.on_notice(NodeId(node), &MutexNotice::Entered { fence: None }, &mut court);
                }
                Fact::EntersWith(node, grant) => {
                    let notice = MutexNotice::Entered { fence: Some(Fence::plain(grant)) };
                    spec.on_notice(NodeId(node), &notice, &mut court);
                }
                Fact::Expelled(node) => {
                    spec.on_notice(NodeId(node), &MutexNotice::Expelled, &mut court);
                }
                Fact::Crashes(node) => spec.on_crash(NodeId(node)),
                Fact::Restarts(node) => spec.on_restart(NodeId(node)),
            }
        }
        spec.at_rest(ending, &mut court);
        breaches
    }
}
