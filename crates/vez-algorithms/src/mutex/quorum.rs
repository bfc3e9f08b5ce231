//! Several coordinators, of which any majority will do. After Gifford, *Weighted Voting for
//! Replicated Data*, SOSP 1979.
//!
//! Ask all n coordinators, enter with the permission of m, tell all n when you are out. 3n messages
//! an entry if nobody else asks. Each coordinator serves by arrival, or by age.
//!
//! Why it is safe: m is more than half, so two sets of m share a coordinator, which permits one at
//! a time; unless it restarts and forgets. Why it may block: the permissions can be split so that
//! nobody has m. Then give up and try again after a random time, or have the younger yield.

mod config;
mod office;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Fence, Layout, Meta, Mutex, NodeId, Promise, Protocol, Timing, Topology,
};

use super::desk::Desk;
pub use config::{Config, Order};
use office::Office;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Quorum {
    state: State,
    /// The number of the current or last request.
    number: u64,
    /// The largest fence heard of. The next number is larger: a small number is an old request.
    latest: u64,
    /// Who gave permission to the current request, with which fence.
    oks: BTreeMap<NodeId, Fence>,
    /// Attempts at the current entry that were given up.
    failed: u32,
    /// Only coordinators have one.
    office: Option<Office>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting,
    BackingOff,
    Inside { fence: Fence },
}

/// All name the request they are about. A release tells which fence was used, if any was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { request: u64 },
    Ok { request: u64, fence: Fence },
    Release { request: u64, fence: Option<Fence> },
    Inquire { request: u64 },
    Relinquish { request: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// Too few permissions came.
    Retry,
    /// The next attempt is due.
    Again,
}

impl Protocol for Quorum {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Timer;
    /// The number, never to be used twice, and what a coordinator has promised.
    type Durable = (u64, Option<Desk>);
    type Config = Config;

    const META: Meta = Meta {
        name: "quorum",
        title: "Quorum of coordinators",
        source: "after Gifford, SOSP 1979",
        layout: Layout::Complete,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::Stop,
        restless: None,
        // Without retries or an order by age it may block, so that is all.
        promises: &[Promise::MutualExclusion, Promise::Fencing],
        rules: include_str!("quorum.toml"),
    };

    fn start(saved: Option<(u64, Option<Desk>)>, ctx: &mut Ctx<'_, Self>) -> Self {
        let (number, desk) = saved.unwrap_or_default();
        let coordinates = ctx.me().0 < ctx.config().coordinators(ctx.topology());
        Self {
            state: State::Idle,
            number,
            latest: 0,
            oks: BTreeMap::new(),
            failed: 0,
            office: coordinates.then(|| Office::open(desk, ctx)),
        }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => self.request(ctx),
            (MutexRequest::Release, State::Inside { fence }) => self.finish(Some(fence), ctx),
            (MutexRequest::Withdraw, State::Waiting) => self.finish(None, ctx),
            (MutexRequest::Withdraw, State::BackingOff) => {
                (self.state, self.failed) = (State::Idle, 0);
                ctx.disarm(Timer::Again);
            }
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Ok { request, fence } => {
                self.latest = self.latest.max(fence.count);
                let current = matches!(self.state, State::Waiting | State::Inside { .. });
                if current && request == self.number {
                    self.oks.insert(from, fence);
                    self.enter_if_enough(ctx);
                } else if ctx.config().answers_late() {
                    // Our release may have overtaken the request, or may be lost.
                    ctx.send(from, Message::Release { request, fence: None });
                }
            }
            Message::Inquire { request } => {
                // Who is inside will release; who has finished that request has nothing to yield.
                let waits = self.state == State::Waiting && request == self.number;
                if waits && self.oks.remove(&from).is_some() {
                    ctx.send(from, Message::Relinquish { request });
                }
            }
            message => match &mut self.office {
                Some(office) => office.serve(from, &message, ctx),
                None => ctx.unexpected("a message for a coordinator reached another process"),
            },
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Retry => self.back_off(ctx),
            Timer::Again => self.request(ctx),
        }
    }

    fn durable(&self) -> (u64, Option<Desk>) {
        (self.number, self.office.as_ref().map(|office| office.desk.clone()))
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        config.validate(topology)
    }
}

impl Quorum {
    fn request(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Waiting;
        self.number = self.number.max(self.latest) + 1;
        self.oks.clear();
        tell_all(&Message::Request { request: self.number }, ctx);
        if let Some(after) = ctx.config().retry_after {
            ctx.arm(Timer::Retry, after);
        }
    }

    fn enter_if_enough(&mut self, ctx: &mut Ctx<'_, Self>) {
        let needed = ctx.config().quorum(ctx.topology()) as usize;
        if self.state == State::Waiting && needed <= self.oks.len() {
            // Larger than the last holder's: the coordinator we share knows that one.
            let fence = *self.oks.values().max().expect("a quorum has members");
            self.state = State::Inside { fence };
            ctx.disarm(Timer::Retry);
            ctx.notify(MutexNotice::Entered { fence: Some(fence) });
        }
    }

    /// Leaves, or gives up. Those that have not answered are told too: we are in their queues.
    fn finish(&mut self, fence: Option<Fence>, ctx: &mut Ctx<'_, Self>) {
        (self.state, self.failed) = (State::Idle, 0);
        ctx.disarm(Timer::Retry);
        tell_all(&Message::Release { request: self.number, fence }, ctx);
    }

    fn back_off(&mut self, ctx: &mut Ctx<'_, Self>) {
        let failed = self.failed + 1;
        self.finish(None, ctx);
        (self.state, self.failed) = (State::BackingOff, failed);
        // Were the wait not random, those who got into each other's way would do so again.
        ctx.arm_within(Timer::Again, ctx.config().back_off(failed));
    }
}

fn tell_all(message: &Message, ctx: &mut Ctx<'_, Quorum>) {
    for coordinator in 0..ctx.config().coordinators(ctx.topology()) {
        ctx.send(NodeId(coordinator), message.clone());
    }
}
