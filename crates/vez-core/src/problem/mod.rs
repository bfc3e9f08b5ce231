//! The problems the algorithms solve, each as an executable specification, one promise a file.

pub mod election;
pub mod mutex;

use std::fmt::Debug;
use std::hash::Hash;

use serde::Serialize;

use crate::protocol::Data;
use crate::{NodeId, Promise, Protocol, Time, Topology, Winner};

pub use election::{Election, ElectionNotice, ElectionRequest};
pub use mutex::{Mutex, MutexNotice, MutexRequest};

/// A problem and its specification.
///
/// The value watches a whole system from outside: it hears every request, notice, crash and
/// restart, in order, and says when a promise is broken. The same spec judges simulations, model
/// checks and logs of real processes. It knows no time: what took how long is the
/// [`Tally`](Problem::Tally)'s business.
pub trait Problem: Clone + Debug + Eq + Hash + Send + 'static {
    type Request: Data;
    type Notice: Data;
    /// What happened when, for results. Not part of the spec.
    type Tally: Tally<Self>;

    const NAME: &'static str;
    /// Every promise a run is judged by, in the order people read them.
    const PROMISES: &'static [Promise];

    fn new(topology: &Topology, terms: Terms) -> Self;

    /// What a scenario's wish is called here; `None` if it makes no sense for this problem.
    fn request(wish: Wish) -> Option<Self::Request>;

    /// Whether a well-behaved user of `node` may ask this now.
    fn may(&self, node: NodeId, request: &Self::Request) -> bool;

    /// What a well-behaved user of `node` may ask now, if anything.
    fn next_request(&self, node: NodeId) -> Option<Self::Request>;

    /// What a user does about a notice.
    fn reaction(notice: &Self::Notice) -> Reaction;

    fn on_request(&mut self, node: NodeId, request: &Self::Request, court: &mut Court<'_>);

    /// Safety: judges a notice the moment it is given.
    fn on_notice(&mut self, node: NodeId, notice: &Self::Notice, court: &mut Court<'_>);

    fn on_crash(&mut self, node: NodeId);

    fn on_restart(&mut self, node: NodeId);

    /// Liveness: judges the end of a run.
    fn at_rest(&self, ending: Ending, court: &mut Court<'_>);

    /// What is owed at this moment. A run that goes on for ever while it stands breaks a promise.
    fn debts(&self) -> Vec<Debt>;

    /// Whether every wish ever made has been met.
    fn is_settled(&self) -> bool;

    /// The most entries of others that anyone has had to wait for, where that is counted.
    fn worst_wait(&self) -> Option<u64> {
        None
    }

    /// A remark on a promise that is kept: what was measured.
    fn remark(&self, promise: Promise) -> Option<String> {
        let _ = promise;
        None
    }
}

/// What the particular algorithm is held to, where algorithms differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    pub winner: Winner,
    pub wait_bound: Option<u64>,
    /// Whether every grant carries a fence.
    pub fenced: bool,
    /// Whether to count how long each waits. Counters tell states apart that are otherwise the
    /// same, which who explores states by the million may not want.
    pub counted: bool,
}

impl Terms {
    pub fn of<P: Protocol>(config: &P::Config, topology: &Topology) -> Self {
        Self {
            winner: P::winner(config),
            wait_bound: P::wait_bound(config, topology),
            fenced: P::META.promises.contains(&Promise::Fencing),
            counted: true,
        }
    }
}

/// What the people of a scenario want of a process, whatever the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Start an election.
    Start,
    /// Report that a process seems to have failed.
    Suspect(NodeId),
    /// Ask to enter.
    Acquire,
    /// Leave.
    Release,
    /// Stop waiting.
    Withdraw,
}

/// What a user does about a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Takes note.
    None,
    /// Is inside: holds for as long as the scenario says, then leaves.
    Hold,
    /// Is outside again without having asked to leave.
    Outside,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Nothing more can happen.
    Quiescent,
    /// The scenario's last moment came.
    Deadline,
    /// It took more steps than allowed.
    Limit,
}

/// What is owed, and by which promise.
///
/// What is owed to one process must be paid again and again: one and the same debt may not stand
/// for ever. What is owed to all must in the end be paid for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Debt {
    pub promise: Promise,
    pub node: Option<NodeId>,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub promise: Promise,
    /// One sentence, with processes by name.
    pub detail: String,
}

/// Where a spec pleads: it can name processes, and what it finds broken is noted.
#[derive(Debug)]
pub struct Court<'a> {
    pub topology: &'a Topology,
    pub breaches: &'a mut Vec<Breach>,
}

impl Court<'_> {
    pub fn name(&self, node: NodeId) -> String {
        self.topology.name(node)
    }

    pub fn breach(&mut self, promise: Promise, detail: String) {
        self.breaches.push(Breach { promise, detail });
    }
}

/// What happened when.
pub trait Tally<Q: Problem>: Clone + Debug + Into<Account> + Send {
    fn new(topology: &Topology) -> Self;
    fn on_request(&mut self, at: Time, node: NodeId, request: &Q::Request);
    fn on_notice(&mut self, at: Time, node: NodeId, notice: &Q::Notice);
    fn on_crash(&mut self, at: Time, node: NodeId);
    fn on_restart(&mut self, node: NodeId) {
        let _ = node;
    }
}

/// The account of a run, whatever its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    Mutex(mutex::MutexTally),
    Election(election::ElectionTally),
}

/// Lists at most a few names, so that a sentence about a million processes stays a sentence.
pub(crate) fn some_names(topology: &Topology, nodes: &[NodeId]) -> String {
    const SHOWN: usize = 8;
    let names = topology.names(nodes.iter().copied().take(SHOWN));
    match nodes.len().saturating_sub(SHOWN) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
