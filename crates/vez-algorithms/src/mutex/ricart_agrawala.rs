//! Ricart and Agrawala, *An Optimal Algorithm for Mutual Exclusion in Computer Networks*, CACM
//! 24(1), 1981; with the change of Carvalho and Roucairol, CACM 26(2), 1983.
//!
//! Ask everyone and enter when all have replied. Who is inside, or wants in with an earlier
//! request, replies on leaving; who is not, at once. Exactly 2(n − 1) messages an entry. The change
//! keeps a permission until its giver asks for it back: from 0 to 2(n − 1).
//!
//! Why it is safe: of two who both want in, the one with the earlier request does not reply to the
//! other. A request keeps its logical time while it waits; the clock runs on.

use std::collections::BTreeSet;
use std::mem;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, Never, NodeId, NodeSet, Promise, Protocol, Stamp,
    Timing, Topology,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct RicartAgrawala {
    state: State,
    clock: u64,
    /// Whose permission we have.
    allowed: NodeSet,
    /// The requests to reply to on leaving.
    deferred: BTreeSet<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting { request: Stamp },
    Inside,
}

/// A reply names the request it answers: one that was withdrawn may still be replied to. It also
/// carries the clock, so that who is replied to cannot overtake for long a request on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { time: u64 },
    Reply { request: u64, time: u64 },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub variant: Variant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    #[default]
    Classic,
    /// Permissions last until they are asked for.
    RoucairolCarvalho,
}

impl Protocol for RicartAgrawala {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    /// The clock: a request of an earlier life must not have the same time as one of this.
    type Durable = u64;
    type Config = Config;

    const META: Meta = Meta {
        name: "ricart-agrawala",
        title: "Ricart–Agrawala",
        source: "Ricart & Agrawala, CACM 24(1), 1981",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::BOUNDED_MUTEX,
        rules: include_str!("ricart_agrawala.toml"),
    };

    fn start(saved: Option<u64>, _ctx: &mut Ctx<'_, Self>) -> Self {
        let (allowed, deferred) = (NodeSet::new(), BTreeSet::new());
        Self { state: State::Idle, clock: saved.unwrap_or_default(), allowed, deferred }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.clock += 1;
                let time = self.clock;
                self.state = State::Waiting { request: Stamp { time, node: ctx.me() } };
                for peer in ctx.peers().filter(|peer| !self.allowed.contains(peer)) {
                    ctx.send(peer, Message::Request { time });
                }
                self.enter_if_allowed(ctx);
            }
            (MutexRequest::Release, State::Inside)
            | (MutexRequest::Withdraw, State::Waiting { .. }) => self.leave(ctx),
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let (Message::Request { time } | Message::Reply { time, .. }) = message;
        self.clock = self.clock.max(time) + 1;
        match message {
            Message::Request { time } => {
                let theirs = Stamp { time, node: from };
                let ours_is_first = match self.state {
                    State::Idle => false,
                    State::Waiting { request } => request < theirs,
                    State::Inside => true,
                };
                if ours_is_first {
                    self.deferred.insert(theirs);
                } else {
                    self.reply(theirs, ctx);
                }
            }
            Message::Reply { request: answered, .. } => match self.state {
                State::Waiting { request } if request.time == answered => {
                    self.allowed.insert(from);
                    self.enter_if_allowed(ctx);
                }
                // Of a withdrawn request. Its giver may have asked for it back before it came:
                // kept, both could use it.
                _ => (),
            },
        }
    }

    fn durable(&self) -> u64 {
        self.clock
    }

    /// While a request is on its way to another process, that one can enter with a permission it
    /// got before the request was made, and once more with the one it gets next; from then on its
    /// clock is ahead. Kept permissions need no reply, and bound nothing.
    fn wait_bound(config: &Config, topology: &Topology) -> Option<u64> {
        (config.variant == Variant::Classic).then(|| 2 * (u64::from(topology.n()) - 1))
    }
}

impl RicartAgrawala {
    fn reply(&mut self, theirs: Stamp, ctx: &mut Ctx<'_, Self>) {
        self.clock += 1;
        ctx.send(theirs.node, Message::Reply { request: theirs.time, time: self.clock });
        if ctx.config().variant == Variant::RoucairolCarvalho
            && self.allowed.remove(&theirs.node)
            && let State::Waiting { request } = self.state
        {
            // What we had counted on is theirs now: ask for it after all.
            ctx.send(theirs.node, Message::Request { time: request.time });
        }
    }

    fn enter_if_allowed(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.allowed.len() + 1 == ctx.topology().n() as usize {
            self.state = State::Inside;
            ctx.notify(MutexNotice::Entered { fence: None });
        }
    }

    fn leave(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Idle;
        if ctx.config().variant == Variant::Classic {
            self.allowed.clear();
        }
        for theirs in mem::take(&mut self.deferred) {
            self.reply(theirs, ctx);
        }
    }
}
