//! Suzuki and Kasami, *A Distributed Mutual Exclusion Algorithm*, ACM TOCS 3(4), 1985.
//!
//! One token; who has it may enter. Who does not asks everyone, with the number of its request.
//! The token carries the number of each process's last request that was served, so that old
//! requests are told from new ones, and a queue of whom to visit. No message if the token is here
//! and idle, otherwise n: n − 1 requests and the token.
//!
//! Why it is safe: there is one token. Why nobody starves: whoever leaves adds to the queue all
//! who have asked, looking from its own place onward, so that no place is favoured.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Fence, Layout, Meta, Mutex, Never, NodeId, Promise, Protocol, Timing,
    Topology,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct SuzukiKasami {
    state: State,
    /// The number of each process's latest request, as far as known.
    requested: Vec<u64>,
    token: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Idle,
    Waiting,
    /// Asked, and no longer wants in.
    Withdrawn,
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The number of each process's last request that was served.
    served: Vec<u64>,
    queue: VecDeque<NodeId>,
    /// How often it let someone in.
    grants: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Request { number: u64 },
    Token { token: Token },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub holder: Option<u64>,
}

impl Protocol for SuzukiKasami {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "suzuki-kasami",
        title: "Suzuki–Kasami",
        source: "Suzuki & Kasami, ACM TOCS 3(4), 1985",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::FENCED_MUTEX,
        rules: include_str!("suzuki_kasami.toml"),
    };

    fn start(saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        let n = ctx.topology().n() as usize;
        // Who comes back from a crash must not bring a second token.
        let holds = saved.is_none()
            && ctx.config().holder.map_or(ctx.me().0 == 0, |holder| holder == ctx.uid());
        let token = Token { served: vec![0; n], queue: VecDeque::new(), grants: 0 };
        Self { state: State::Idle, requested: vec![0; n], token: holds.then_some(token) }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.state) {
            (MutexRequest::Acquire, State::Idle) => {
                self.state = State::Waiting;
                if self.token.is_some() {
                    return self.use_token(ctx);
                }
                let number = &mut self.requested[ctx.me().index()];
                *number += 1;
                ctx.broadcast(&Message::Request { number: *number });
            }
            // The request is still out.
            (MutexRequest::Acquire, State::Withdrawn) => self.state = State::Waiting,
            (MutexRequest::Release, State::Inside) => self.pass(ctx),
            (MutexRequest::Withdraw, State::Waiting) => self.state = State::Withdrawn,
            (request, state) => unreachable!("the user may not {request:?} while {state:?}"),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Request { number } => {
                let latest = &mut self.requested[from.index()];
                *latest = number.max(*latest);
                if self.state == State::Idle {
                    self.pass(ctx);
                }
            }
            Message::Token { token } => {
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                self.token = Some(token);
                self.use_token(ctx);
            }
        }
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

impl SuzukiKasami {
    fn use_token(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.state == State::Withdrawn {
            return self.pass(ctx);
        }
        self.state = State::Inside;
        let token = self.token.as_mut().expect("it is here");
        token.grants += 1;
        ctx.notify(MutexNotice::Entered { fence: Some(Fence::plain(token.grants)) });
    }

    /// Hands the token, if it is here, to the next who has asked; keeps it if nobody has.
    fn pass(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Idle;
        let Some(mut token) = self.token.take() else { return };
        let (me, n) = (ctx.me().index(), self.requested.len());
        token.served[me] = self.requested[me];
        for other in (me + 1..n).chain(0..me) {
            let node = NodeId(other as u32);
            if token.served[other] < self.requested[other] && !token.queue.contains(&node) {
                token.queue.push_back(node);
            }
        }
        match token.queue.pop_front() {
            Some(next) => ctx.send(next, Message::Token { token }),
            None => self.token = Some(token),
        }
    }
}
