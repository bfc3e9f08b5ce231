use std::fmt::Debug;
use std::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Ctx, Meta, NodeId, Problem, Topology, Winner};

/// A distributed algorithm: one process, reacting to one event at a time.
///
/// The value is the whole state of the process. It must be `Eq + Hash`, which keeps `HashMap`s,
/// floats, cells and sockets out of it: if it compiles, the model checker can explore it. It must
/// be `Serialize` so that people can be shown it, with processes by name.
///
/// The `on_*` handlers are the *upon event* clauses of the textbook. They run to completion, never
/// block and never fail. A message that comes too late is ignored, one that cannot be is
/// [`Ctx::unexpected`], and a broken invariant of our own is an `assert!`.
pub trait Protocol: Clone + Debug + Eq + Hash + Serialize + Send + 'static {
    /// What the algorithm solves. Fixes its requests, its notices and its spec.
    type Problem: Problem;
    /// What processes say to each other.
    type Message: Data;
    /// Names of the timers a process may arm; [`Never`] if it arms none.
    type Timer: TimerKey;
    /// What survives a crash; `()` if nothing does.
    type Durable: Data + Default;
    /// What an operator may tune.
    type Config: Clone + Debug + Default + Serialize + DeserializeOwned + Send + Sync;

    const META: Meta;

    /// Boots a process. `saved` is its durable state if it ran before.
    fn start(saved: Option<Self::Durable>, ctx: &mut Ctx<'_, Self>) -> Self;

    /// Upon a request from the local user.
    fn on_request(&mut self, request: Request<Self>, ctx: &mut Ctx<'_, Self>);

    /// Upon a message from `from`.
    fn on_message(&mut self, from: NodeId, message: Self::Message, ctx: &mut Ctx<'_, Self>);

    /// Upon an armed timer running out.
    fn on_timer(&mut self, timer: Self::Timer, ctx: &mut Ctx<'_, Self>) {
        let _ = ctx;
        unreachable!("{} arms no timers, yet {timer:?} fired", Self::META.name);
    }

    /// The part of the state that must survive a crash.
    ///
    /// To drivers it is written down after every step, before any effect of that step leaves the
    /// process. There is no `save` to forget.
    fn durable(&self) -> Self::Durable {
        Self::Durable::default()
    }

    /// What grows without end as the process runs: a term, a round. The model checker explores up
    /// to a bound on it; results report the largest.
    fn epoch(&self) -> u64 {
        0
    }

    /// What the model checker bounds, where that is not the epoch alone: rounds by any other count
    /// that grows without end.
    fn age(&self, topology: &Topology) -> u64 {
        let _ = topology;
        self.epoch()
    }

    /// Refuses settings that make no sense, alone or for this system: one sentence that says what
    /// was expected.
    fn validate(config: &Self::Config, topology: &Topology) -> Result<(), String> {
        let _ = (config, topology);
        Ok(())
    }

    /// Whom an election with these settings must choose.
    fn winner(config: &Self::Config) -> Winner {
        let _ = config;
        Winner::Largest
    }

    /// The most entries of others between a request and its grant, if the algorithm bounds it.
    fn wait_bound(config: &Self::Config, topology: &Topology) -> Option<u64> {
        let _ = (config, topology);
        None
    }

    /// Feeds one event to its handler. Drivers call this; algorithms do not.
    fn step(&mut self, event: Event<Self>, ctx: &mut Ctx<'_, Self>) {
        match event {
            Event::Request(request) => self.on_request(request, ctx),
            Event::Message { from, message } => self.on_message(from, message, ctx),
            Event::Timer(timer) => self.on_timer(timer, ctx),
        }
    }
}

pub type Request<P> = <<P as Protocol>::Problem as Problem>::Request;
pub type Notice<P> = <<P as Protocol>::Problem as Problem>::Notice;

/// Everything that can happen to a process that is up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event<P: Protocol> {
    Request(Request<P>),
    Message { from: NodeId, message: P::Message },
    Timer(P::Timer),
}

/// Plain data: can be compared, hashed, stored and sent.
pub trait Data:
    Clone + Debug + Eq + Ord + Hash + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Data for T where
    T: Clone + Debug + Eq + Ord + Hash + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// The name of a timer. Arming a name again replaces its deadline.
pub trait TimerKey: Data + Copy {}

impl<T: Data + Copy> TimerKey for T {}

/// The timer type of algorithms without timers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
pub enum Never {}
