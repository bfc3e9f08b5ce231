//! Ricart and Agrawala's algorithm where silence means a crash: Tanenbaum, *Distributed Operating
//! Systems*, 1995, §3.2.
//!
//! Every request is answered at once, with GRANT or with DENIED and a later GRANT. So whoever does
//! not answer in time has crashed, and is asked no more; who denied and then falls silent is asked
//! again. From 2(n − 1) to 3(n − 1) messages an entry, and 2 for each question asked again.
//!
//! Why it is safe: as Ricart–Agrawala; but a slow process that is taken for dead may be inside.

use std::collections::BTreeSet;
use std::mem;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, NodeId, NodeSet, Promise, Protocol, Stamp, Time,
    Timing, Topology,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct RicartAgrawalaTanenbaum {
    state: State,
    clock: u64,
    /// Whose grant we still need, who of them has not even answered, and how often we asked.
    needed: NodeSet,
    silent: NodeSet,
    asked: u64,
    /// The requests to grant on leaving, and who is presumed crashed.
    deferred: BTreeSet<Stamp>,
    gone: NodeSet,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
enum State {
    #[default]
    Idle,
    Waiting {
        request: Stamp,
    },
    Inside,
}

/// Answers name the request they are for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { time: u64 },
    Grant { request: u64, time: u64 },
    Denied { request: u64, time: u64 },
}

/// Whoever lives has answered; time to see whether those who denied still live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Answer,
    Again,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub answer_within: Time,
    pub ask_again_after: Time,
}

impl Default for Config {
    fn default() -> Self {
        Self { answer_within: Time::from_millis(2), ask_again_after: Time::from_millis(20) }
    }
}

impl Protocol for RicartAgrawalaTanenbaum {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "ricart-agrawala-tanenbaum",
        title: "Ricart–Agrawala, Tanenbaum's variant",
        source: "Tanenbaum, Distributed Operating Systems, 1995, §3.2",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Synchronous,
        crashes: Crashes::Stop,
        restless: None,
        promises: Promise::BOUNDED_MUTEX,
        rules: include_str!("ricart_agrawala_tanenbaum.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.clock += 1;
                let request = Stamp { time: self.clock, node: ctx.me() };
                (self.state, self.asked) = (State::Waiting { request }, 0);
                self.needed = ctx.peers().filter(|peer| !self.gone.contains(peer)).collect();
                self.ask(request, ctx);
                self.enter_if_granted(ctx);
            }
            (MutexRequest::Release, State::Inside)
            | (MutexRequest::Withdraw, State::Waiting { .. }) => {
                self.state = State::Idle;
                ctx.disarm(Timer::Answer);
                ctx.disarm(Timer::Again);
                for theirs in mem::take(&mut self.deferred) {
                    self.answer(theirs, ctx);
                }
            }
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let (Message::Request { time }
        | Message::Grant { time, .. }
        | Message::Denied { time, .. }) = message;
        self.clock = self.clock.max(time) + 1;
        let ours = |time| matches!(self.state, State::Waiting { request } if request.time == time);
        match message {
            Message::Request { time } => self.answer(Stamp { time, node: from }, ctx),
            Message::Grant { request, .. } if ours(request) => {
                self.silent.remove(&from);
                self.needed.remove(&from);
                self.enter_if_granted(ctx);
            }
            Message::Denied { request, .. } if ours(request) => _ = self.silent.remove(&from),
            Message::Grant { .. } | Message::Denied { .. } => (), // The request is no more.
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        let State::Waiting { request } = self.state else { unreachable!("disarmed on entering") };
        match timer {
            Timer::Answer => {
                self.needed.retain(|peer| !self.silent.contains(peer));
                self.gone.append(&mut self.silent);
                ctx.arm(Timer::Again, ctx.config().ask_again_after);
                self.enter_if_granted(ctx);
            }
            Timer::Again => self.ask(request, ctx),
        }
    }

    fn age(&self, _topology: &Topology) -> u64 {
        self.asked // Who is denied may ask for ever, and every answer moves the clock.
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        match (config.answer_within, config.ask_again_after) {
            (Time::ZERO, _) => Err("answer_within: expected more than 0".to_owned()),
            (_, Time::ZERO) => Err("ask_again_after: expected more than 0".to_owned()),
            _ => Ok(()),
        }
    }

    fn wait_bound(_config: &Config, topology: &Topology) -> Option<u64> {
        Some(2 * (u64::from(topology.n()) - 1))
    }
}

impl RicartAgrawalaTanenbaum {
    fn ask(&mut self, request: Stamp, ctx: &mut Ctx<'_, Self>) {
        self.asked += 1;
        self.silent.clone_from(&self.needed);
        for &peer in &self.needed {
            ctx.send(peer, Message::Request { time: request.time });
        }
        ctx.arm(Timer::Answer, ctx.config().answer_within);
    }

    fn answer(&mut self, theirs: Stamp, ctx: &mut Ctx<'_, Self>) {
        self.clock += 1;
        let (request, time) = (theirs.time, self.clock);
        let ours_is_first = match self.state {
            State::Idle => false,
            State::Waiting { request } => request < theirs,
            State::Inside => true,
        };
        if ours_is_first {
            self.deferred.insert(theirs);
            ctx.send(theirs.node, Message::Denied { request, time });
        } else {
            ctx.send(theirs.node, Message::Grant { request, time });
        }
    }

    fn enter_if_granted(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.needed.is_empty() {
            self.state = State::Inside;
            ctx.disarm(Timer::Answer);
            ctx.disarm(Timer::Again);
            ctx.notify(MutexNotice::Entered { fence: None });
        }
    }
}
