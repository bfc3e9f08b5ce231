//! Two want the same two locks, each takes them one by one and gives up what it has when the
//! other is taken. Safe, never stuck, and both may try for ever. Patience cures it.

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, NodeId, Promise, Protocol, Time, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Tries {
    state: State,
    /// Whom our own lock was given to.
    holder: Option<NodeId>,
    /// Who waits for it, where there is patience.
    queue: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    /// Has so many of the locks asked for, was refused so many.
    Trying {
        locked: u32,
        refused: u32,
    },
    Pausing,
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Lock,
    Locked,
    Refused,
    Unlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Timer {
    Again,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Config {
    /// Ask the first lock first, and the second only then.
    pub(crate) in_order: bool,
}

impl Protocol for Tries {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "tries",
        title: "Try and try again",
        source: "for tests",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::MUTEX,
        rules: "",
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { state: State::Idle, holder: None, queue: Vec::new() }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match request {
            MutexRequest::Acquire => self.try_to_lock(ctx),
            MutexRequest::Release => {
                self.state = State::Idle;
                for node in ctx.topology().ids() {
                    ctx.send(node, Message::Unlock);
                }
            }
            MutexRequest::Withdraw => unreachable!("nobody is asked to"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Lock => match self.holder {
                None => {
                    self.holder = Some(from);
                    ctx.send(from, Message::Locked);
                }
                Some(_) if ctx.config().in_order => self.queue.push(from),
                Some(_) => ctx.send(from, Message::Refused),
            },
            Message::Unlock => {
                self.holder = None;
                if !self.queue.is_empty() {
                    let next = self.queue.remove(0);
                    self.holder = Some(next);
                    ctx.send(next, Message::Locked);
                }
            }
            Message::Locked => self.answered(1, 0, from, ctx),
            Message::Refused => self.answered(0, 1, from, ctx),
        }
    }

    fn on_timer(&mut self, _timer: Timer, ctx: &mut Ctx<'_, Self>) {
        self.try_to_lock(ctx);
    }
}

impl Tries {
    fn try_to_lock(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Trying { locked: 0, refused: 0 };
        if ctx.config().in_order {
            return ctx.send(NodeId(0), Message::Lock);
        }
        for node in ctx.topology().ids() {
            ctx.send(node, Message::Lock);
        }
    }

    fn answered(&mut self, more: u32, fewer: u32, from: NodeId, ctx: &mut Ctx<'_, Self>) {
        let State::Trying { locked, refused } = self.state else { return };
        let (locked, refused, n) = (locked + more, refused + fewer, ctx.topology().n());
        self.state = State::Trying { locked, refused };
        if locked == n {
            self.state = State::Inside;
            ctx.notify(MutexNotice::Entered { fence: None });
        } else if ctx.config().in_order {
            ctx.send(NodeId(locked), Message::Lock);
        } else if locked + refused == n {
            self.state = State::Pausing;
            // Two processes: whoever got one lock got its own or the other's.
            let got = if fewer == 1 { NodeId(1 - from.0) } else { from };
            if 0 < locked {
                ctx.send(got, Message::Unlock);
            }
            ctx.arm(Timer::Again, Time::from_millis(1));
        }
    }
}
