//! What happens in a run besides the algorithm.

use std::collections::BTreeMap;

use vez_core::{NodeId, Time};

use crate::Network;

/// A scenario, with every name resolved to an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub seed: u64,
    pub network: Network,
    /// What the users and the world do. Those of one moment happen in the order listed.
    pub inputs: Vec<(Time, Input)>,
    /// How fast each process's clock runs; 1 if not listed. A fast clock's timers run out early.
    pub clocks: BTreeMap<NodeId, f64>,
    /// Clocks not listed run up to this much too fast or too slow.
    pub drift: f64,
    /// Whether a restart loses what should have survived.
    pub amnesia: bool,
    /// Messages, counted from 1 in the order sent, that take so long instead: lost if there is no
    /// time, arriving again for every further one.
    pub messages: BTreeMap<u64, Vec<Time>>,
    /// Timers, counted from 1 in the order armed, that run so long instead.
    pub timers: BTreeMap<u64, Time>,
    /// What the first choices come out as. Those after them are drawn.
    pub choices: Vec<u32>,
    pub until: Option<Time>,
    /// Stop after this many steps, in case it never ends.
    pub steps_max: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 0,
            network: Network::default(),
            inputs: Vec::new(),
            clocks: BTreeMap::new(),
            drift: 0.0,
            amnesia: false,
            messages: BTreeMap::new(),
            timers: BTreeMap::new(),
            choices: Vec::new(),
            until: None,
            steps_max: 200_000_000,
        }
    }
}

/// One or all, in the order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    All,
    One(NodeId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Start an election.
    Start(Who),
    /// The first suspects the second.
    Suspect(NodeId, NodeId),
    /// Ask to enter; once inside, stay this long. A user that still waits or holds asks again
    /// after it has left.
    Acquire(Who, Time),
    /// Stop waiting.
    Withdraw(NodeId),
    Crash(NodeId),
    /// In its next step it saves what must survive, and crashes before anything leaves it.
    CrashUnsent(NodeId),
    /// Brings a process back, or takes it down and back at once; forgetting everything if so told.
    Restart(NodeId, Forget),
    /// Alive but slow: everything that reaches it in this time is handled at its end.
    Pause(NodeId, Time),
    Partition(Vec<Vec<NodeId>>),
    /// From, to, and whether also back.
    Cut(NodeId, NodeId, Directions),
    Heal(NodeId, NodeId, Directions),
    HealAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// As the plan says of all restarts.
    AsPlanned,
    Everything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    Both,
    One,
}
