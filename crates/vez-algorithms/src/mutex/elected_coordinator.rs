//! A central coordinator that is itself elected, by any election algorithm, and replaced when it
//! seems to have crashed. A composition.
//!
//! The coordinator and the others hear each other's heartbeats. Who misses the coordinator's holds
//! an election. The winner begins a new term and first asks everyone how things stand; it lets
//! nobody in before all have answered, or have been silent for so long that they cannot be inside.
//!
//! Why it is safe: whoever has answered for a term takes no permission of an older one, so that
//! the permissions the winner has not been told of are void. Terms are part of the fences. Where
//! silence proves nothing, two may be inside; then the fences tell who was overtaken.

mod office;
mod participant;

use serde::{Deserialize, Serialize};
use vez_core::problem::MutexRequest;
use vez_core::{
    Channel, Crashes, Ctx, Election, Fence, Meta, Mutex, NodeId, Promise, Protocol, Term, Time,
    Timing, Topology,
};

use crate::detect::{DetectorConfig, Watch};
use office::Office;
use participant::embed;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ElectedCoordinator<E> {
    election: E,
    state: State,
    /// The number of the current or last request: the logical time at which it was made.
    request: u64,
    /// The largest request number heard of.
    clock: u64,
    /// The newest term heard of; older ones are over.
    term: Term,
    /// Who coordinates this term, unless that is unknown or suspected.
    coordinator: Option<NodeId>,
    /// The coordinator watches everyone, everyone else the coordinator.
    watch: Watch,
    /// Only while coordinating.
    office: Option<Office>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    Idle,
    Waiting,
    Inside { fence: Fence },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<M> {
    Election(M),
    Heartbeat { term: Term, clock: u64 },
    Hello,
    Recover { term: Term },
    State { term: Term, request: u64, state: State },
    Refuse { term: Term },
    Request { request: u64 },
    Grant { request: u64, fence: Fence },
    Release { request: u64, fence: Option<Fence> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer<T> {
    Election(T),
    Tick,
    /// Who has not answered by now is not inside.
    Recover,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config<C: Default> {
    pub election: C,
    pub detector: DetectorConfig,
    pub recover_within: Time,
}

impl<C: Default> Default for Config<C> {
    fn default() -> Self {
        let tick = Time::from_millis(5); // As often as heartbeats are sent; no finer is needed.
        Self {
            election: C::default(),
            detector: DetectorConfig { tick, ..DetectorConfig::default() },
            recover_within: Time::from_millis(20),
        }
    }
}

/// The numbers that must never be given out twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Saved<D> {
    election: D,
    request: u64,
    term: Term,
}

impl<E: Protocol<Problem = Election>> Protocol for ElectedCoordinator<E> {
    type Problem = Mutex;
    type Message = Message<E::Message>;
    type Timer = Timer<E::Timer>;
    type Durable = Saved<E::Durable>;
    type Config = Config<E::Config>;

    const META: Meta = Meta {
        name: "elected-coordinator",
        title: "Elected coordinator",
        source: "a composition; the notes, on the crash of the coordinator",
        layout: E::META.layout,
        channel: Channel::Fifo,
        timing: Timing::Synchronous,
        crashes: Crashes::Recover,
        restless: Some(Time::from_secs(5)),
        promises: Promise::FENCED_MUTEX,
        rules: include_str!("elected_coordinator.toml"),
    };

    fn start(saved: Option<Self::Durable>, ctx: &mut Ctx<'_, Self>) -> Self {
        let (durable, request, term) = match saved {
            Some(saved) => (Some(saved.election), saved.request, saved.term),
            None => (None, 0, 0),
        };
        let (election, notices) = embed(ctx, |ctx| E::start(durable, ctx));
        let mut this = Self {
            election,
            state: State::Idle,
            request,
            clock: request,
            term,
            coordinator: None,
            watch: Watch::new([], &ctx.config().detector),
            office: None,
        };
        ctx.arm(Timer::Tick, ctx.config().detector.tick);
        this.on_notices(notices, ctx);
        this
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => self.request(ctx),
            (MutexRequest::Release, State::Inside { fence }) => self.leave(Some(fence), ctx),
            (MutexRequest::Withdraw, State::Waiting) => self.leave(None, ctx),
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Self::Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election(message) => {
                self.elect(ctx, |election, ctx| election.on_message(from, message, ctx));
            }
            Message::Heartbeat { term, clock } => self.on_heartbeat(from, term, clock, ctx),
            Message::Recover { term } => self.follow(from, term, ctx),
            Message::Grant { request, fence } => self.enter_if_wanted(from, request, fence, ctx),
            for_coordinator => self.on_office_message(from, &for_coordinator, ctx),
        }
    }

    fn on_timer(&mut self, timer: Self::Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Election(timer) => {
                self.elect(ctx, |election, ctx| election.on_timer(timer, ctx));
            }
            Timer::Tick => self.on_tick(ctx),
            Timer::Recover => self.stop_asking(ctx),
        }
    }

    fn durable(&self) -> Self::Durable {
        let Self { request, term, .. } = *self;
        Saved { election: self.election.durable(), request, term }
    }

    fn epoch(&self) -> u64 {
        self.term
    }

    fn validate(config: &Self::Config, topology: &Topology) -> Result<(), String> {
        E::validate(&config.election, topology)?;
        config.detector.validate()?;
        match config.recover_within {
            Time::ZERO => Err("recover_within: expected more than 0".to_owned()),
            _ => Ok(()),
        }
    }
}
