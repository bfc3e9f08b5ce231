//! Ricart and Agrawala's algorithm as other tools model it, for comparison with their counts.

use std::mem;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, Never, NodeId, NodeSet, Promise, Protocol, Stamp,
    Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Agrawala {
    /// The highest logical time seen.
    clock: u64,
    state: State,
    /// Who waits for our agreement.
    deferred: NodeSet,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Released,
    Wanted { stamp: Stamp, awaiting: NodeSet },
    Held { stamp: Stamp },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Request(Stamp),
    Agree,
}

/// What is wrong with it, if anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flaw {
    #[default]
    None,
    /// Compares times only: of two at the same time, neither gives way.
    NoTieBreak,
    /// Compares times only: of two at the same time, both give way.
    BothGiveWay,
    /// Agrees even while inside.
    NeverDefersInside,
    /// Does not learn the time from others.
    DeafClock,
    /// Forgets to agree on leaving.
    NeverCatchesUp,
    /// Enters when all but one have agreed.
    Impatient,
}

impl Protocol for Agrawala {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Flaw;

    const META: Meta = Meta {
        name: "agrawala",
        title: "Ricart–Agrawala",
        source: "CACM 24(1), 1981",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::MUTEX,
        rules: "",
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { clock: 0, state: State::Released, deferred: NodeSet::new() }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match request {
            MutexRequest::Acquire => {
                self.clock += 1;
                let stamp = Stamp { time: self.clock, node: ctx.me() };
                self.state = State::Wanted { stamp, awaiting: ctx.peers().collect() };
                ctx.broadcast(&Message::Request(stamp));
                self.enter_if_agreed(ctx);
            }
            MutexRequest::Release => {
                self.state = State::Released;
                for peer in mem::take(&mut self.deferred) {
                    if *ctx.config() != Flaw::NeverCatchesUp {
                        ctx.send(peer, Message::Agree);
                    }
                }
            }
            MutexRequest::Withdraw => unreachable!("nobody is asked to"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Request(theirs) => {
                let flaw = *ctx.config();
                if flaw != Flaw::DeafClock {
                    self.clock = self.clock.max(theirs.time);
                }
                let defer = match &self.state {
                    State::Released => false,
                    State::Wanted { stamp: ours, .. } => match flaw {
                        Flaw::NoTieBreak => ours.time <= theirs.time,
                        Flaw::BothGiveWay => ours.time < theirs.time,
                        _ => *ours < theirs,
                    },
                    State::Held { .. } => flaw != Flaw::NeverDefersInside,
                };
                if defer {
                    self.deferred.insert(from);
                } else {
                    ctx.send(from, Message::Agree);
                }
            }
            Message::Agree => match &mut self.state {
                State::Wanted { awaiting, .. } => {
                    awaiting.remove(&from);
                    self.enter_if_agreed(ctx);
                }
                _ => ctx.unexpected("agreement to what was not asked"),
            },
        }
    }
}

impl Agrawala {
    fn enter_if_agreed(&mut self, ctx: &mut Ctx<'_, Self>) {
        let missing = usize::from(*ctx.config() == Flaw::Impatient);
        if let State::Wanted { stamp, awaiting } = &self.state
            && awaiting.len() <= missing
        {
            self.state = State::Held { stamp: *stamp };
            ctx.notify(MutexNotice::Entered { fence: None });
        }
    }
}
