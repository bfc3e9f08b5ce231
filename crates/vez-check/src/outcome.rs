//! What an exploration found.

use serde::Serialize;
use vez_core::{NodeId, Promise, Time, Wish};

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Different states seen.
    pub states: u64,
    /// Steps from one state to another that were tried.
    pub transitions: u64,
    /// The most steps any state is away from the beginning.
    pub depth: u32,
    /// Whether every state that can be reached was seen.
    pub complete: bool,
    /// Why not, if not.
    pub stopped: Option<Stop>,
    /// One for each promise that was judged.
    pub promises: Vec<Verdict>,
    /// The first promise found broken, and how.
    pub counterexample: Option<Counterexample>,
    /// What an algorithm said cannot happen, and did: how many times it was found.
    pub unexpected: u64,
    /// The most entries of others anyone waited for, where that was measured.
    pub worst_wait: Option<u64>,
    pub statistics: Statistics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// A promise was broken.
    Broken,
    /// Some states lie beyond the largest epoch that was to be explored.
    Epoch,
    States,
    Memory,
    /// Somebody said so.
    Cancelled,
    /// Only some runs were tried.
    Walks,
    /// Some states may have been taken for others.
    Bitstate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub promise: Promise,
    pub judgement: Judgement,
    /// How it was broken, or what was measured.
    pub detail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// In every run there is.
    Kept,
    /// In every run that was seen; there are others.
    KeptSoFar,
    Broken,
    /// Nothing can be said: on a lossy channel everything may be lost for ever.
    Unjudged,
}

/// What the exploration was made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The different states of processes, messages and the spec that all states are made of.
    pub process_states: u64,
    pub messages: u64,
    pub spec_states: u64,
    /// Steps of processes that were really taken; all others were remembered.
    pub steps: u64,
    /// The most states waiting to be explored at once.
    pub frontier_max: u64,
    pub visited_bytes: u64,
    pub memory_bytes: u64,
    /// The chance that some state was taken for another.
    pub collision_probability: f64,
    /// With bits for states: the share of states that were probably seen.
    pub coverage: Option<f64>,
    /// States of which only one way on was explored.
    pub ample_states: u64,
    /// How many ways on were left out because of that.
    pub ample_saved: u64,
    /// In how many ways everyone could be renamed; `None` if that was not asked.
    pub renamings: Option<u64>,
    /// Whether a run can go on for ever; `None` if that was not looked into.
    pub endless: Option<bool>,
}

/// The shortest way to break a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    pub promise: Promise,
    pub detail: String,
    pub steps: Vec<Step>,
    /// Where the run goes round for ever: the steps from here on are repeated.
    pub cycle_from: Option<usize>,
    pub replay: Replay,
}

/// One step of a run, in words and for machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub text: String,
    pub deed: Deed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Ask {
        node: NodeId,
        wish: Wish,
    },
    /// Messages are numbered from 1 in the order sent.
    Hear {
        node: NodeId,
        from: NodeId,
        number: u64,
    },
    /// Armings are numbered from 1 in their order.
    Fire {
        node: NodeId,
        number: u64,
    },
    Crash {
        node: NodeId,
    },
    Restart {
        node: NodeId,
        forget: bool,
    },
    Lose {
        number: u64,
    },
    /// The processes on the far side, a bit each.
    Split {
        side: u64,
    },
    Heal,
}

/// The same run on a clock, one step a millisecond, for a simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    pub inputs: Vec<(Time, Act)>,
    /// How long each message takes, by its number: not at all if lost, several times if it is
    /// heard several times. What is not listed is still on its way in the end.
    pub messages: Vec<(u64, Vec<Time>)>,
    /// How long each timer runs, by the number of its arming. What is not listed never runs out.
    pub timers: Vec<(u64, Time)>,
    /// What each choice comes out as, in order.
    pub choices: Vec<u32>,
    /// When to stop; `None` if the run comes to rest by itself.
    pub until: Option<Time>,
}

/// What is done to the system from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Start(NodeId),
    Suspect(NodeId, NodeId),
    /// Ask, and stay inside this long.
    Acquire(NodeId, Time),
    /// Stop waiting.
    Withdraw(NodeId),
    Crash(NodeId),
    /// Crash in the next step, between saving and sending.
    CrashUnsent(NodeId),
    Restart {
        node: NodeId,
        forget: bool,
    },
    Split {
        side: u64,
    },
    Heal,
}

impl Outcome {
    /// Whether no promise that was judged is broken.
    pub fn kept(&self) -> bool {
        self.counterexample.is_none()
    }

    pub fn verdict(&self, promise: Promise) -> Option<&Verdict> {
        self.promises.iter().find(|verdict| verdict.promise == promise)
    }
}
