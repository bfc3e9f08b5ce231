//! Maekawa, *A √N Algorithm for Mutual Exclusion in Decentralized Systems*, ACM TOCS 3(2), 1985,
//! with the repair of Sanders, ACM TOCS 5(3), 1987.
//!
//! Ask only the members of your quorum; any two quorums share a member, and each member says yes
//! to one process at a time. A member that said yes to a later request than one that comes asks
//! for its yes back; whoever has been told to wait elsewhere gives it. From 3(K − 1) to 6(K − 1)
//! messages an entry for quorums of K.
//!
//! Why it is safe: two who enter both have the yes of the member they share. Why nobody waits for
//! ever: every member tells all but the earliest request it knows that they must wait, so that
//! those give back what the earliest of all lacks. The repair is telling it also to a request that
//! was the earliest and is overtaken; without it some wait for each other for ever.

use std::mem;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, Never, NodeId, NodeSet, Promise, Protocol, Stamp,
    Timing, Topology, quorum,
};

use super::arbiter::Arbiter;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Maekawa {
    state: State,
    clock: u64,
    quorum: NodeSet,
    /// The members that said yes to our request, those that told us to wait, and those whose
    /// inquiry we have not answered, hoping to enter.
    granted: NodeSet,
    failed: NodeSet,
    inquiring: NodeSet,
    arbiter: Arbiter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting { request: Stamp },
    Inside { request: Stamp },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { request: Stamp },
    Grant { request: Stamp },
    Failed { request: Stamp },
    Inquire { request: Stamp },
    Relinquish { request: Stamp },
    Release { request: Stamp },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub quorums: Quorums,
    /// To teach: without it some runs block.
    pub repair: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quorums {
    Grid,
    Plane,
}

impl Default for Config {
    fn default() -> Self {
        Self { quorums: Quorums::Grid, repair: true }
    }
}

impl Protocol for Maekawa {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "maekawa",
        title: "Maekawa",
        source: "Maekawa, ACM TOCS 3(2), 1985; Sanders, ACM TOCS 5(3), 1987",
        layout: Layout::Complete,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::MUTEX,
        rules: include_str!("maekawa.toml"),
    };

    fn start(_saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        let (n, me) = (ctx.topology().n(), ctx.me());
        let quorum = match ctx.config().quorums {
            Quorums::Grid => quorum::grid(n, me),
            Quorums::Plane => quorum::plane(n, me).expect("validated"),
        };
        let (granted, failed, inquiring) = Default::default();
        let arbiter = Arbiter::default();
        Self { state: State::Idle, clock: 0, quorum, granted, failed, inquiring, arbiter }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.clock += 1;
                let request = Stamp { time: self.clock, node: ctx.me() };
                self.state = State::Waiting { request };
                self.tell_quorum(&Message::Request { request }, ctx);
            }
            (MutexRequest::Release, State::Inside { request })
            | (MutexRequest::Withdraw, State::Waiting { request }) => {
                self.state = State::Idle;
                self.granted.clear();
                self.failed.clear();
                self.inquiring.clear();
                self.tell_quorum(&Message::Release { request }, ctx);
            }
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let ours = |request| self.state == State::Waiting { request };
        match message {
            Message::Request { request } => {
                self.clock = self.clock.max(request.time) + 1;
                self.arbiter.on_request(request, ctx);
            }
            Message::Relinquish { request } => self.arbiter.on_relinquish(request, ctx),
            Message::Release { request } => self.arbiter.on_release(request, ctx),
            Message::Grant { request } if ours(request) => {
                self.failed.remove(&from);
                self.granted.insert(from);
                if self.granted == self.quorum {
                    self.state = State::Inside { request };
                    ctx.notify(MutexNotice::Entered { fence: None });
                }
            }
            Message::Failed { request } if ours(request) => {
                self.failed.insert(from);
                for member in mem::take(&mut self.inquiring) {
                    self.relinquish(member, request, ctx);
                }
            }
            Message::Inquire { request } if ours(request) && self.granted.contains(&from) => {
                if self.failed.is_empty() {
                    self.inquiring.insert(from);
                } else {
                    self.relinquish(from, request, ctx);
                }
            }
            // We are inside, or have left: the release will tell them, or is on its way.
            Message::Grant { .. } | Message::Failed { .. } | Message::Inquire { .. } => (),
        }
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        let n = topology.n();
        if config.quorums == Quorums::Grid || quorum::plane_sizes().any(|size| size == n) {
            return Ok(());
        }
        let sizes: Vec<String> = quorum::plane_sizes().map(|size| size.to_string()).collect();
        let sizes = sizes.join(", ");
        Err(format!("quorums: expected a plane of one of {sizes} processes, found {n}"))
    }
}

impl Maekawa {
    /// Ourselves included: we are members of our own quorum.
    fn tell_quorum(&self, message: &Message, ctx: &mut Ctx<'_, Self>) {
        for &member in &self.quorum {
            ctx.send(member, message.clone());
        }
    }

    fn relinquish(&mut self, member: NodeId, request: Stamp, ctx: &mut Ctx<'_, Self>) {
        self.granted.remove(&member);
        self.failed.insert(member);
        ctx.send(member, Message::Relinquish { request });
    }
}
