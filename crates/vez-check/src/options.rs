//! What is explored, and how.

use vez_core::{Channel, Crashes, Meta, NodeSet, Promise, Timing, Topology};

/// What may happen in the runs that are explored, and how they are explored.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Options {
    /// How often each user may ask: entries wished for, elections started.
    pub entries: u32,
    /// How often each user may change its mind while it waits.
    pub withdrawals: u32,
    /// Whose users ask at all; everyone's if `None`.
    pub askers: Option<NodeSet>,
    pub channel: Channel,
    /// Where it is synchronous, what is said is heard at once, and timers run out in the order in
    /// which they should.
    pub timing: Timing,
    /// How many crashes there may be in a run.
    pub crashes: u32,
    /// Whether who has crashed may come back. It need not.
    pub restarts: bool,
    /// Whether a crash may also fall between saving and sending.
    pub unsent: bool,
    /// Whether who comes back may have forgotten even what it saved.
    pub amnesia: bool,
    /// How many messages may be lost, and how often one may be heard without being used up. On a
    /// lossy channel there is no limit to either.
    pub losses: u32,
    pub duplicates: u32,
    /// How often the system may fall into two parts. It always heals.
    pub partitions: u32,
    /// States with a larger [`epoch`](vez_core::Protocol::epoch) are seen, but not explored.
    pub epoch_max: u64,
    /// The promises that are judged; others may be broken unnoticed.
    pub promises: Vec<Promise>,
    /// Whether runs that go on for ever are judged too.
    pub liveness: bool,
    /// Whether to measure the longest wait. It takes counters, and so more states.
    pub bounded_wait: bool,
    /// Whether to go on after the first broken promise, for the others.
    pub keep_going: bool,
    pub search: Search,
    pub threads: usize,
    pub states_max: u64,
    /// In bytes.
    pub memory_max: u64,
    pub reductions: Reductions,
    /// Another salt gives other fingerprints: two searches that agree hardly ever both overlooked
    /// a state.
    pub salt: u64,
    /// Whether fingerprints have 128 bits, not 64: no state is overlooked, at twice the memory
    /// and some of the speed.
    pub wide: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Every state, nearest first: what is found broken is broken the shortest way.
    BreadthFirst,
    /// Every state, deepest first.
    DepthFirst,
    /// This many random runs, each of at most so many steps.
    Walks { count: u64, steps_max: u32, seed: u64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reductions {
    /// Where a message's arrival can wait for nothing and disturb nobody, only it is explored.
    pub ample: bool,
    /// Remember three bits of this many bytes for each state instead of its fingerprint. States
    /// are overlooked.
    pub bitstate: Option<u64>,
    /// States that differ only by who is who are taken for one, where it turns out that who is who
    /// does not matter. Breadth first only.
    pub symmetry: bool,
}

/// Why nothing was explored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("{0}")]
    Config(String),
    #[error("partitions: expected at most {PARTITIONED_MAX} processes, found {0}")]
    TooManyToSplit(u32),
}

/// Every way to split the processes in two is tried.
const PARTITIONED_MAX: u32 = 16;

impl Options {
    pub(crate) fn validate(&self, topology: &Topology) -> Result<(), CheckError> {
        if 0 < self.partitions && PARTITIONED_MAX < topology.n() {
            return Err(CheckError::TooManyToSplit(topology.n()));
        }
        Ok(())
    }

    /// Grants an algorithm exactly what it assumes.
    pub fn new(meta: &Meta) -> Self {
        Self {
            entries: 1,
            withdrawals: 0,
            askers: None,
            channel: meta.channel,
            timing: meta.timing,
            crashes: u32::from(meta.crashes != Crashes::None),
            restarts: meta.crashes == Crashes::Recover,
            unsent: meta.crashes == Crashes::Recover,
            amnesia: false,
            losses: 0,
            duplicates: 0,
            partitions: 0,
            epoch_max: 2,
            promises: meta.promises.to_vec(),
            liveness: true,
            bounded_wait: meta.promises.contains(&Promise::BoundedWait),
            keep_going: false,
            search: Search::BreadthFirst,
            threads: 1,
            states_max: u64::MAX,
            memory_max: 4 << 30,
            reductions: Reductions::default(),
            salt: 0,
            wide: false,
        }
    }
}
