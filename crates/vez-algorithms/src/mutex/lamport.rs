//! Lamport, *Time, Clocks, and the Ordering of Events in a Distributed System*, CACM 21(7), 1978.
//!
//! Everyone keeps the queue: requests are told to all, and every process sorts them by logical
//! time, ties by process. The first in the queue enters once it has heard something later from
//! everyone else. Exactly 3(n − 1) messages an entry; between 2(n − 1) and 3(n − 1) if replies that
//! would say nothing new are saved.
//!
//! Why it is safe: on channels that keep order, something later from a process means that none of
//! its earlier requests can still be on the way. So whoever finds itself first is first in
//! everyone's queue.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, Never, NodeId, Promise, Protocol, Stamp, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Lamport {
    state: State,
    clock: u64,
    /// The requests known and not yet released, ours among them.
    queue: BTreeSet<Stamp>,
    /// The latest logical time heard from each process.
    heard: BTreeMap<NodeId, u64>,
    /// The latest said to each; kept only where replies are saved.
    said: BTreeMap<NodeId, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting { request: Stamp },
    Inside { request: Stamp },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { time: u64 },
    Reply { time: u64 },
    Release { time: u64 },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub save_replies: bool,
}

impl Protocol for Lamport {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "lamport",
        title: "Lamport's mutual exclusion",
        source: "Lamport, CACM 21(7), 1978",
        layout: Layout::Complete,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::MUTEX,
        rules: include_str!("lamport.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        let (queue, heard, said) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Self { state: State::Idle, clock: 0, queue, heard, said }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        let time = self.tick();
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                let request = Stamp { time, node: ctx.me() };
                self.state = State::Waiting { request };
                self.queue.insert(request);
                self.tell_all(&Message::Request { time }, ctx);
                self.enter_if_first(ctx);
            }
            (MutexRequest::Release, State::Inside { request })
            | (MutexRequest::Withdraw, State::Waiting { request }) => {
                self.state = State::Idle;
                self.queue.remove(&request);
                self.tell_all(&Message::Release { time }, ctx);
            }
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let (Message::Request { time } | Message::Reply { time } | Message::Release { time }) =
            message;
        self.clock = self.clock.max(time) + 1;
        let heard = self.heard.entry(from).or_default();
        *heard = time.max(*heard);
        match message {
            Message::Request { time } => {
                let request = Stamp { time, node: from };
                self.queue.insert(request);
                if !self.has_said_something_later(request, ctx) {
                    let time = self.tick();
                    self.tell(from, Message::Reply { time }, ctx);
                }
            }
            Message::Reply { .. } => (),
            Message::Release { .. } => self.queue.retain(|request| request.node != from),
        }
        self.enter_if_first(ctx);
    }
}

impl Lamport {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn tell_all(&mut self, message: &Message, ctx: &mut Ctx<'_, Self>) {
        for peer in ctx.peers() {
            self.tell(peer, message.clone(), ctx);
        }
    }

    /// Says something; its logical time is always the clock's.
    fn tell(&mut self, peer: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        if ctx.config().save_replies {
            self.said.insert(peer, self.clock);
        }
        ctx.send(peer, message);
    }

    /// What was said before the request came arrives before any reply could: no need for one.
    fn has_said_something_later(&self, request: Stamp, ctx: &Ctx<'_, Self>) -> bool {
        let said = self.said.get(&request.node);
        said.is_some_and(|&time| request < Stamp { time, node: ctx.me() })
    }

    fn enter_if_first(&mut self, ctx: &mut Ctx<'_, Self>) {
        let State::Waiting { request } = self.state else { return };
        let later = |(&node, &time): (&NodeId, &u64)| request < Stamp { time, node };
        let everyone_else = ctx.topology().n() as usize - 1;
        if self.queue.first() == Some(&request)
            && self.heard.iter().filter(|&heard| later(heard)).count() == everyone_else
        {
            self.state = State::Inside { request };
            ctx.notify(MutexNotice::Entered { fence: None });
        }
    }
}
