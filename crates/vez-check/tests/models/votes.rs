//! One leader a term, by votes, as every consensus does it; and what goes wrong if half the votes
//! are enough, or a vote is not remembered.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, NodeSet, Promise, Protocol,
    Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Votes {
    /// Whom we voted for, in the one and only term.
    vote: Option<NodeId>,
    voters: NodeSet,
    persists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Ask,
    Vote,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) quorum: usize,
    pub(crate) persists: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { quorum: 2, persists: true }
    }
}

impl Protocol for Votes {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = Option<NodeId>;
    type Config = Config;

    const META: Meta = Meta {
        name: "votes",
        title: "Votes",
        source: "for tests",
        layout: Layout::Complete,
        channel: Channel::Lossy,
        timing: Timing::Asynchronous,
        crashes: Crashes::Recover,
        restless: None,
        promises: &[Promise::Uniqueness],
        rules: "",
    };

    fn start(saved: Option<Option<NodeId>>, ctx: &mut Ctx<'_, Self>) -> Self {
        let persists = ctx.config().persists;
        Self { vote: saved.flatten(), voters: NodeSet::new(), persists }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if self.vote.is_none() {
            self.vote = Some(ctx.me());
            self.voters = [ctx.me()].into();
            ctx.broadcast(&Message::Ask);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Ask => {
                if *self.vote.get_or_insert(from) == from {
                    ctx.send(from, Message::Vote);
                }
            }
            Message::Vote => {
                // Only who stands counts votes: one that came back has forgotten that it did.
                let stands = !self.voters.is_empty();
                if stands && self.voters.insert(from) && self.voters.len() == ctx.config().quorum {
                    ctx.notify(ElectionNotice::Leader { id: ctx.me(), term: 1 });
                }
            }
        }
    }

    fn durable(&self) -> Option<NodeId> {
        self.vote.filter(|_| self.persists)
    }
}
