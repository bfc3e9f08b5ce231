//! Raymond, *A Tree-Based Algorithm for Distributed Mutual Exclusion*, ACM TOCS 7(1), 1989.
//!
//! One token in a tree. Every process knows which neighbour is on the way to it, and keeps a queue
//! of neighbours that want it, itself among them. However many wait behind a process, it asks the
//! way to the token once; when the token comes it goes to the first in the queue, and the way now
//! points there. 2d messages if the token lies idle d links away, about 4 an entry when everyone
//! always wants in.
//!
//! Why it is safe: there is one token. Why nobody starves: every queue is first come, first
//! served.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Fence, Layout, Meta, Mutex, Never, NodeId, Promise, Protocol, Timing,
    Topology,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Raymond {
    state: State,
    token: At,
    /// Neighbours that asked for the token, and ourselves, in the order of asking.
    queue: VecDeque<NodeId>,
    /// Whether we have asked for the token and not got it.
    asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting,
    /// In the queue, and no longer wants in.
    Withdrawn,
    Inside,
}

/// Where the token is: here, having let someone in so often; in the direction of a neighbour; or,
/// back from a crash, who knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum At {
    Here { grants: u64 },
    Toward { neighbor: NodeId },
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request,
    Token { grants: u64 },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub holder: Option<u64>,
}

impl Protocol for Raymond {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "raymond",
        title: "Raymond's tree",
        source: "Raymond, ACM TOCS 7(1), 1989",
        layout: Layout::Tree,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::FENCED_MUTEX,
        rules: include_str!("raymond.toml"),
    };

    fn start(saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        let (config, topology) = (ctx.config(), ctx.topology());
        let holder = config.holder.map_or(NodeId(0), |uid| topology.find(uid).expect("validated"));
        let token = match (saved, first_step(topology, ctx.me(), holder)) {
            // Who comes back from a crash must not bring a second token.
            (Some(()), _) => At::Unknown,
            (None, Some(neighbor)) => At::Toward { neighbor },
            (None, None) => At::Here { grants: 0 },
        };
        Self { state: State::Idle, token, queue: VecDeque::new(), asked: false }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.state = State::Waiting;
                self.queue.push_back(ctx.me());
            }
            // Its place in the queue is still there.
            (MutexRequest::Acquire, State::Withdrawn) => self.state = State::Waiting,
            (MutexRequest::Release, State::Inside) => self.state = State::Idle,
            (MutexRequest::Withdraw, State::Waiting) => self.state = State::Withdrawn,
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
        self.pass_or_ask(ctx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match (message, self.token) {
            (Message::Request, _) => self.queue.push_back(from),
            (Message::Token { .. }, At::Here { .. }) => return ctx.unexpected("a second token"),
            (Message::Token { grants }, At::Toward { .. } | At::Unknown) => {
                (self.token, self.asked) = (At::Here { grants }, false);
            }
        }
        self.pass_or_ask(ctx);
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        match config.holder {
            Some(uid) if topology.find(uid).is_none() => {
                Err(format!("holder: expected the id of a process, found {uid}"))
            }
            _ => Ok(()),
        }
    }
}

impl Raymond {
    fn pass_or_ask(&mut self, ctx: &mut Ctx<'_, Self>) {
        while let At::Here { grants } = self.token
            && self.state != State::Inside
            && let Some(first) = self.queue.pop_front()
        {
            if first == ctx.me() {
                self.enter_if_still_wanted(grants + 1, ctx);
            } else {
                self.token = At::Toward { neighbor: first };
                ctx.send(first, Message::Token { grants });
            }
        }
        if let At::Toward { neighbor } = self.token
            && !self.queue.is_empty()
            && !self.asked
        {
            self.asked = true;
            ctx.send(neighbor, Message::Request);
        }
    }

    fn enter_if_still_wanted(&mut self, grants: u64, ctx: &mut Ctx<'_, Self>) {
        if self.state == State::Withdrawn {
            self.state = State::Idle;
            return;
        }
        (self.state, self.token) = (State::Inside, At::Here { grants });
        ctx.notify(MutexNotice::Entered { fence: Some(Fence::plain(grants)) });
    }
}

/// The neighbour of `from` on the way to `to`; none if that is the same process.
fn first_step(tree: &Topology, from: NodeId, to: NodeId) -> Option<NodeId> {
    if from == to {
        return None;
    }
    // Walking out from the goal, whoever is linked to us first is between us and it.
    let mut walk = VecDeque::from([(to, to)]);
    while let Some((node, came_from)) = walk.pop_front() {
        if tree.linked(node, from) {
            return Some(node);
        }
        let onward = tree.neighbors(node).filter(|&next| next != came_from);
        walk.extend(onward.map(|next| (next, node)));
    }
    None
}
