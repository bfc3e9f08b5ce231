use serde::Serialize;

use crate::Time;

/// What an algorithm is called, what it assumes of the world and what it promises in return.
///
/// The assumptions are the weakest under which the promises hold; drivers use them as defaults,
/// and the conformance tests hold the algorithm to them.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// Name on the command line, kebab-case.
    pub name: &'static str,
    /// Name in prose.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    pub layout: Layout,
    pub channel: Channel,
    pub timing: Timing,
    pub crashes: Crashes,
    /// For an algorithm that never rests, such as a circulating token or heartbeats: when a run
    /// ends if the scenario does not say. Mutual exclusion ends earlier, when every wish is met.
    pub restless: Option<Time>,
    /// What holds in every run that grants the assumptions.
    pub promises: &'static [Promise],
    /// The algorithm in words: a TOML text beside its source, English and Brazilian Portuguese.
    pub rules: &'static str,
}

/// The wiring an algorithm needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Everyone can talk to everyone.
    Complete,
    /// Everyone can talk to the first process.
    Star,
    /// Messages travel one way round, `i` to `i + 1`.
    Ring,
    /// Messages travel both ways round.
    RingBoth,
    /// No cycles, all connected.
    Tree,
    /// Any graph in one piece.
    Connected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// Messages may be lost, repeated and reordered.
    Lossy,
    /// Every message arrives once, in any order.
    Reliable,
    /// Every message arrives once, in the order sent.
    Fifo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// A timer may run out at any moment: timeouts prove nothing.
    Asynchronous,
    /// A timer runs out, or a process comes back, only after all that was said has been heard.
    Synchronous,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crashes {
    /// Correct only while nobody crashes.
    None,
    /// A process may stop for good.
    Stop,
    /// A process may stop, and may come back with its durable state.
    Recover,
}

/// What a run is judged by. Each has a file of its own in [`problem`](crate::problem).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    MutualExclusion,
    NoDeadlock,
    NoStarvation,
    BoundedWait,
    Fencing,
    Termination,
    Uniqueness,
    Agreement,
    Validity,
    Stability,
}

impl Promise {
    /// What every mutual exclusion promises, alone and with fences.
    pub const MUTEX: &'static [Self] =
        &[Self::MutualExclusion, Self::NoDeadlock, Self::NoStarvation];
    pub const FENCED_MUTEX: &'static [Self] =
        &[Self::MutualExclusion, Self::NoDeadlock, Self::NoStarvation, Self::Fencing];
    /// With a bound on how often others enter before one who waits.
    pub const BOUNDED_MUTEX: &'static [Self] =
        &[Self::MutualExclusion, Self::NoDeadlock, Self::NoStarvation, Self::BoundedWait];
    /// What every election promises, and what a stable one does.
    pub const ELECTION: &'static [Self] =
        &[Self::Termination, Self::Uniqueness, Self::Agreement, Self::Validity];
    pub const STABLE_ELECTION: &'static [Self] =
        &[Self::Termination, Self::Uniqueness, Self::Agreement, Self::Validity, Self::Stability];

    pub const fn name(self) -> &'static str {
        match self {
            Self::MutualExclusion => "mutual-exclusion",
            Self::NoDeadlock => "no-deadlock",
            Self::NoStarvation => "no-starvation",
            Self::BoundedWait => "bounded-wait",
            Self::Fencing => "fencing",
            Self::Termination => "termination",
            Self::Uniqueness => "uniqueness",
            Self::Agreement => "agreement",
            Self::Validity => "validity",
            Self::Stability => "stability",
        }
    }
}

/// Whom an election must choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Winner {
    /// The live process with the largest `(merit, uid)`.
    Largest,
    /// The live process with the smallest uid.
    Smallest,
    /// Any live process.
    Any,
}
