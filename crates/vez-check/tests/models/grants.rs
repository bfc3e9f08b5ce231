//! A coordinator that lets one in after the other; and one that answers again when it is asked
//! again, though the first it let in has not left.

use serde::{Deserialize, Serialize};
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{
    Channel, Crashes, Ctx, Layout, Meta, Mutex, Never, NodeId, Promise, Protocol, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Grants {
    /// At the first process: who is inside, and who waits.
    holder: Option<NodeId>,
    queue: Vec<NodeId>,
    waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Request,
    Grant,
    Release,
    Withdraw,
}

/// What is wrong with it, if anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flaw {
    #[default]
    None,
    /// Grants to the next without waiting for the release.
    GrantsTwice,
    /// Takes who stops waiting for one who leaves.
    MistakesWithdrawal,
}

impl Protocol for Grants {
    type Problem = Mutex;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Flaw;

    const META: Meta = Meta {
        name: "grants",
        title: "Coordinator",
        source: "for tests",
        layout: Layout::Star,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::MUTEX,
        rules: "",
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { holder: None, queue: Vec::new(), waits: false }
    }

    fn on_request(&mut self, request: MutexRequest, ctx: &mut Ctx<'_, Self>) {
        self.waits = request == MutexRequest::Acquire;
        let message = match request {
            MutexRequest::Acquire => Message::Request,
            MutexRequest::Release => Message::Release,
            MutexRequest::Withdraw => Message::Withdraw,
        };
        ctx.send(NodeId(0), message);
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Grant if self.waits => {
                self.waits = false;
                ctx.notify(MutexNotice::Entered { fence: None });
            }
            Message::Grant => (), // Too late: the withdrawal is on its way.
            Message::Request => {
                self.queue.push(from);
                if *ctx.config() == Flaw::GrantsTwice {
                    self.holder = None;
                }
            }
            Message::Withdraw if *ctx.config() != Flaw::MistakesWithdrawal => {
                self.queue.retain(|&node| node != from);
                self.holder = self.holder.filter(|&holder| holder != from);
            }
            Message::Withdraw | Message::Release => self.holder = None,
        }
        if self.holder.is_none() && !self.queue.is_empty() {
            let next = self.queue.remove(0);
            self.holder = Some(next);
            ctx.send(next, Message::Grant);
        }
    }
}
