//! The token ring: Le Lann, *Distributed Systems – Towards a Formal Approach*, IFIP Congress 1977.
//!
//! One token travels round the ring. Whoever has it may enter, once a visit, and passes it on. No
//! message if the token is here, up to n if it has just left; and it travels even if nobody asks.
//!
//! Why it is safe: there is one token, and only who has it is inside. Why nobody starves: everyone
//! else enters at most once before the token is here again. A lost token stops everything, unless
//! the ring mends itself (see `repair`): then epochs tell a new token from an old one.

mod repair;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, NodeId, Promise, Protocol, Time, Timing, Topology,
};

pub use repair::{Ballot, Parcel, Token};
use repair::{acknowledge, arm_lap};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TokenRing {
    state: State,
    /// Where the newest token is, as far as this process answers for it.
    custody: Custody,
    /// The newest token seen, as it was when it left here if it has.
    newest: Token,
    /// The epoch and uid of the best ballot seen, and whether it is ours and still out.
    best: Option<(u64, u64)>,
    candidate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Outside,
    Waiting,
    Inside,
}

/// Until what was handed on is acknowledged, it may yet have to go to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum Custody {
    Gone,
    Handed,
    Here,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Token(Token),
    Election(Ballot),
    Ack { of: Parcel },
}

/// Nobody here wanted the token; this was not acknowledged; no token came for a long time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Hold,
    Hop { to: NodeId, parcel: Parcel },
    Lap,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub hold: Time,
    pub hop_within: Option<Time>,
    pub lap_within: Option<Time>,
    pub unilateral: bool,
}

impl Protocol for TokenRing {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Timer;
    type Durable = Token; // Who comes back must still know an old one.
    type Config = Config;

    const META: Meta = Meta {
        name: "token-ring",
        title: "Token ring",
        source: "Le Lann, IFIP Congress 1977",
        layout: Layout::Ring,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: Some(Time::from_secs(10)),
        promises: &[
            Promise::MutualExclusion,
            Promise::NoDeadlock,
            Promise::NoStarvation,
            Promise::BoundedWait,
            Promise::Fencing,
        ],
        rules: include_str!("token_ring.toml"),
    };

    fn start(saved: Option<Token>, ctx: &mut Ctx<'_, Self>) -> Self {
        // The first process has the token, but not when it comes back: it may be anywhere by then.
        let first = saved.is_none() && ctx.me() == NodeId(0);
        let newest = saved.unwrap_or_default();
        let (state, custody) = (State::Outside, Custody::Gone);
        let mut this = Self { state, custody, newest, best: None, candidate: false };
        if first {
            this.take(newest, ctx);
        } else {
            arm_lap(ctx);
        }
        this
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Outside) => {
                self.state = State::Waiting;
                self.enter_if_here(ctx);
            }
            (MutexRequest::Release, State::Inside) => {
                self.state = State::Outside;
                self.pass(ctx);
            }
            (MutexRequest::Withdraw, State::Waiting) => self.state = State::Outside,
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Token(token) => {
                acknowledge(from, Parcel::Token(token), ctx);
                if self.newest < token {
                    self.take(token, ctx);
                }
            }
            Message::Election(ballot) => {
                acknowledge(from, Parcel::Election(ballot), ctx);
                self.vote(ballot, ctx);
            }
            Message::Ack { of } => self.settle(from, of, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Hold => self.pass(ctx),
            Timer::Hop { to, parcel } => self.skip(to, parcel, ctx),
            Timer::Lap => self.miss(ctx),
        }
    }

    fn durable(&self) -> Token {
        self.newest
    }

    fn epoch(&self) -> u64 {
        self.newest.epoch
    }

    fn age(&self, topology: &Topology) -> u64 {
        let laps = self.newest.hop / u64::from(topology.n());
        laps.max(self.newest.epoch).max(self.best.map_or(0, |(epoch, _)| epoch))
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        repair::validate(config)
    }

    fn wait_bound(_config: &Config, topology: &Topology) -> Option<u64> {
        Some(u64::from(topology.n()) - 1)
    }
}

impl TokenRing {
    fn take(&mut self, token: Token, ctx: &mut Ctx<'_, Self>) {
        (self.newest, self.custody, self.candidate) = (token, Custody::Here, false);
        ctx.disarm(Timer::Lap);
        self.enter_if_here(ctx);
        // Whoever asks at this very moment still gets it. Alone there is nobody to pass it to.
        if self.state == State::Outside && ctx.next() != ctx.me() {
            ctx.arm(Timer::Hold, ctx.config().hold);
        }
    }

    fn enter_if_here(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.custody == Custody::Here && self.state == State::Waiting {
            self.state = State::Inside;
            ctx.disarm(Timer::Hold);
            ctx.notify(MutexNotice::Entered { fence: Some(self.newest.fence()) });
        }
    }

    /// On leaving the token goes at once, wanted again or not: that is why nobody starves.
    fn pass(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.newest.hop += 1;
        if ctx.next() != ctx.me() {
            arm_lap(ctx);
            self.hand_token(ctx.next(), ctx);
        }
    }
}
