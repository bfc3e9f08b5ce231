//! The central coordinator: the first process keeps the queue. Folklore; see Tanenbaum and van
//! Steen, *Distributed Systems*, §5.3.
//!
//! Ask the coordinator, wait for its OK, tell it when you are out. It serves in the order in which
//! requests arrive: three messages an entry, four if releases are acknowledged. Numbers and fences
//! tell apart what comes late or twice.
//!
//! Why it is safe: there is one queue, and its head is served only when the last one is out. With
//! a lease the coordinator stops waiting for a holder that may merely be slow: then only the fence
//! protects the resource.

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Fence, Layout, Meta, Mutex, NodeId, Promise, Protocol, Time, Timing,
    Topology,
};

use super::desk::{Claim, Desk, Release};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Coordinator {
    state: State,
    /// How many requests this process has made in all its lives.
    requests: u64,
    /// Only the coordinator has one.
    desk: Option<Desk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting,
    Inside { fence: Fence },
}

/// A release without a fence withdraws a request that has not been granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { request: u64 },
    Ok { request: u64, fence: Fence },
    Release { request: u64, fence: Option<Fence> },
    ReleaseAck { request: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// At the coordinator.
    Lease,
    /// At the holder, by its own clock.
    Stop,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub acknowledge: bool,
    pub lease: Option<Time>,
    pub stop_before: Option<Time>,
}

/// The numbers that must never be given out twice, and the coordinator's desk.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Saved {
    requests: u64,
    desk: Option<Desk>,
}

const COORDINATOR: NodeId = NodeId(0);

impl Protocol for Coordinator {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Timer;
    type Durable = Saved;
    type Config = Config;

    const META: Meta = Meta {
        name: "coordinator",
        title: "Central coordinator",
        source: "folklore; Tanenbaum & van Steen, Distributed Systems, §5.3",
        layout: Layout::Star,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::FENCED_MUTEX,
        rules: include_str!("coordinator.toml"),
    };

    fn start(saved: Option<Saved>, ctx: &mut Ctx<'_, Self>) -> Self {
        let Saved { requests, desk } = saved.unwrap_or_default();
        let desk = (ctx.me() == COORDINATOR).then(|| desk.unwrap_or_default());
        if desk.as_ref().is_some_and(|desk| desk.holder().is_some()) {
            arm_lease(ctx);
        }
        Self { state: State::Idle, requests, desk }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.state = State::Waiting;
                self.requests += 1;
                ctx.send(COORDINATOR, Message::Request { request: self.requests });
            }
            (MutexRequest::Release, State::Inside { fence }) => self.leave(Some(fence), ctx),
            (MutexRequest::Withdraw, State::Waiting) => self.leave(None, ctx),
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Ok { request, fence } => {
                if self.state == State::Waiting && request == self.requests {
                    self.state = State::Inside { fence };
                    ctx.notify(MutexNotice::Entered { fence: Some(fence) });
                    let Config { lease, stop_before, .. } = ctx.config();
                    if let (Some(lease), Some(before)) = (lease, stop_before) {
                        ctx.arm(Timer::Stop, *lease - *before);
                    }
                } else if self.state != (State::Inside { fence }) {
                    // Nobody wants it any more. Kept silent, the coordinator would wait for ever.
                    ctx.send(from, Message::Release { request, fence: Some(fence) });
                }
            }
            Message::ReleaseAck { .. } => (),
            Message::Request { request } => {
                let Some(desk) = &mut self.desk else { return ctx.unexpected(NOT_HERE) };
                desk.enqueue(Claim { node: from, request });
                self.grant_if_free(ctx);
            }
            Message::Release { request, fence } => {
                let Some(desk) = &mut self.desk else { return ctx.unexpected(NOT_HERE) };
                match desk.release(Claim { node: from, request }, fence) {
                    Release::OfHolder => ctx.disarm(Timer::Lease),
                    Release::OfWaiting => (),
                    Release::Stale => return,
                }
                if ctx.config().acknowledge {
                    ctx.send(from, Message::ReleaseAck { request });
                }
                self.grant_if_free(ctx);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match (timer, self.state) {
            (Timer::Lease, _) => {
                self.desk.iter_mut().for_each(Desk::revoke);
                self.grant_if_free(ctx);
            }
            (Timer::Stop, State::Inside { fence }) => {
                self.leave(Some(fence), ctx);
                ctx.notify(MutexNotice::Expelled);
            }
            (Timer::Stop, _) => unreachable!("disarmed on leaving"),
        }
    }

    fn durable(&self) -> Saved {
        Saved { requests: self.requests, desk: self.desk.clone() }
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        match (config.lease, config.stop_before) {
            (Some(Time::ZERO), _) => Err("lease: expected more than 0".to_owned()),
            (None, Some(_)) => Err("stop_before: expected a lease to stop before".to_owned()),
            (Some(lease), Some(before)) if lease <= before => {
                Err(format!("stop_before: expected less than the lease of {lease}, found {before}"))
            }
            _ => Ok(()),
        }
    }
}

const NOT_HERE: &str = "a message for the coordinator reached another process";
impl Coordinator {
    fn leave(&mut self, fence: Option<Fence>, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Idle;
        ctx.disarm(Timer::Stop);
        ctx.send(COORDINATOR, Message::Release { request: self.requests, fence });
    }

    fn grant_if_free(&mut self, ctx: &mut Ctx<'_, Self>) {
        if let Some(grant) = self.desk.as_mut().and_then(Desk::grant) {
            let request = grant.claim.request;
            ctx.send(grant.claim.node, Message::Ok { request, fence: grant.fence });
            arm_lease(ctx);
        }
    }
}

fn arm_lease(ctx: &mut Ctx<'_, Coordinator>) {
    if let Some(lease) = ctx.config().lease {
        ctx.arm(Timer::Lease, lease);
    }
}
