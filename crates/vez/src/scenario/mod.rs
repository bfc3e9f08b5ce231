//! Scenarios: what people write to have a run, as a file or as flags.
//!
//! A [`Scenario`] names processes by uid and remembers where everything was said. [`resolve()`]
//! checks it against its algorithm and turns it into a topology and a plan for the simulator.

mod doc;
mod expect;
mod fault;
mod flags;
mod read;
mod resolve;
mod write;

use std::collections::BTreeMap;

use vez_core::Time;
use vez_sim::{Delay, Plan};

pub use expect::Expectation;
pub(crate) use expect::outcome_word;
pub use fault::{Fault, Place, alternatives, suggestion};
pub use flags::EventFlags;
pub(crate) use flags::parse_uid;
pub use read::read;
pub use resolve::{Resolved, resolve};

/// A run as people describe it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub about: About,
    pub algorithm: Placed<String>,
    pub seed: u64,
    pub members: Members,
    pub wiring: Option<Placed<Wiring>>,
    pub merits: Vec<Placed<(u64, u64)>>,
    pub weights: Vec<Placed<(u64, u32)>>,
    pub until: Option<Time>,
    pub network: Weather,
    pub links: Vec<Placed<Link>>,
    pub clocks: Vec<Placed<(u64, f64)>>,
    pub drift: Placed<f64>,
    pub amnesia: bool,
    /// The algorithm's own settings, by name.
    pub config: BTreeMap<String, Placed<toml::Value>>,
    pub events: Vec<Event>,
    /// What becomes of single messages and timers, and what the run's choices come out as.
    pub messages: Vec<Placed<Flight>>,
    pub timers: Vec<Placed<Arming>>,
    pub choices: Vec<u32>,
    pub expect: Option<Expectation>,
}

/// A value and where it was said.
#[derive(Clone, Debug, Default)]
pub struct Placed<T> {
    pub value: T,
    pub place: Place,
}

/// What was said, not where.
impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Placed<T> {
    pub fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }

    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(&self.place, message)
    }
}

/// What the story is, and what to look for in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub name: String,
    pub title: Words,
    pub look: Words,
}

/// The same in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    pub en: String,
    pub pt: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    /// Uids `1..=n`.
    Count(Placed<u64>),
    /// Exactly these, in index (ring) order.
    Ids(Placed<Vec<u64>>),
}

impl Default for Members {
    fn default() -> Self {
        Self::Count(Placed::new(5, Place::Whole))
    }
}

/// The topology, by uid.
#[derive(Clone, Debug, PartialEq)]
pub enum Wiring {
    Complete,
    Ring,
    Star,
    Line,
    Grid,
    Random(f64),
    Edges(Vec<(u64, u64)>),
}

/// The network's rules, where they differ from the reference schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Weather {
    pub delay: Delay,
    pub loss: Placed<f64>,
    pub duplicate: Placed<f64>,
    pub fifo: bool,
}

impl Default for Weather {
    fn default() -> Self {
        let network = Plan::default().network;
        Self {
            delay: network.delay,
            loss: Placed::default(),
            duplicate: Placed::default(),
            fifo: network.fifo,
        }
    }
}

/// Rules for one direction of one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    pub from: u64,
    pub to: u64,
    pub delay: Option<Delay>,
    pub loss: Option<f64>,
    pub duplicate: Option<f64>,
}

/// What becomes of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Counted from 1 in the order sent.
    pub number: u64,
    /// After how long it is heard: never if empty, again for every further time.
    pub arrives: Vec<Time>,
}

/// What becomes of one timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arming {
    /// Counted from 1 in the order armed.
    pub number: u64,
    pub after: Time,
}

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Time,
    pub act: Act,
    pub place: Place,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, &self.act) == (other.at, &other.act)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    All,
    One(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Start(Whom),
    Suspect { node: u64, of: u64 },
    Acquire { who: Whom, hold: Time },
    Withdraw(u64),
    Crash { node: u64, unsent: bool },
    Restart { node: u64, amnesia: bool },
    Pause { node: u64, span: Time },
    Partition(Vec<Vec<u64>>),
    Cut { from: u64, to: u64, both: bool },
    Heal(Option<(u64, u64, bool)>),
}

impl Act {
    /// The word for it in files and flags.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Suspect { .. } => "suspect",
            Self::Acquire { .. } => "acquire",
            Self::Withdraw(_) => "withdraw",
            Self::Crash { .. } => "crash",
            Self::Restart { .. } => "restart",
            Self::Pause { .. } => "pause",
            Self::Partition(_) => "partition",
            Self::Cut { .. } => "cut",
            Self::Heal(_) => "heal",
        }
    }

    /// Whether it asks something of an algorithm.
    pub fn is_wish(&self) -> bool {
        matches!(self, Self::Start(_) | Self::Suspect { .. } | Self::Acquire { .. })
    }
}
