//! Election in a wireless network: Vasudevan, Kurose and Towsley, *Design and Analysis of a Leader
//! Election Algorithm for Mobile Ad Hoc Networks*, ICNP 2004, in our own words and numbers.
//!
//! An election grows a tree from its initiator; each process reports the best below it to its
//! parent, and the root announces the best of all. Of elections that meet the larger index swallows
//! the other. ELECTION and ACK 2E − (n − 1) each, LEADER n − 1. Where processes move (`mobile`)
//! they probe whom they wait for, and the best leader whose heartbeats they hear wins.

mod config;
mod mobile;
mod tree;

use std::collections::BTreeMap;

pub use config::{Announce, Config};
use serde::{Deserialize, Serialize};
use tree::Part;
pub use tree::{Champion, Index, Used};
use vez_core::problem::ElectionRequest;
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, NodeSet, Promise, Protocol, Timing,
    Topology,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Wireless {
    /// The newest election heard of.
    index: Index,
    /// Its part in that election, until it knows the result.
    part: Option<Part>,
    /// Whom it follows, and as the result of which election.
    leader: Option<(Index, Champion)>,
    /// Its own heartbeats so far, and the newest of each other leader.
    beats: u64,
    heard: BTreeMap<NodeId, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { index: Index },
    Ack { index: Index, best: Option<Champion> },
    Leader { index: Index, best: Champion },
    Probe { index: Index },
    Reply { index: Index },
    Heartbeat { leader: Champion, beat: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Probe,
    Heartbeat,
    Lost,
}

impl Protocol for Wireless {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = Used;
    type Config = Config;

    const META: Meta = Meta {
        name: "wireless",
        title: "Wireless election",
        source: "Vasudevan, Kurose & Towsley, ICNP 2004",
        layout: Layout::Connected,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("wireless.toml"),
    };

    fn start(saved: Option<Used>, ctx: &mut Ctx<'_, Self>) -> Self {
        let returned = saved.is_some();
        let Used { number, beats } = saved.unwrap_or_default();
        let index = Index { number, initiator: 0 };
        let mut this = Self { index, part: None, leader: None, beats, heard: BTreeMap::new() };
        if returned {
            this.initiate(ctx);
        } else {
            this.await_leader(ctx);
        }
        this
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if self.part.is_none() {
            self.initiate(ctx);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { index } if index > self.index => self.join(index, Some(from), ctx),
            Message::Election { index } => ctx.send(from, Message::Ack { index, best: None }),
            Message::Ack { index, best } if index == self.index => self.on_ack(from, best, ctx),
            Message::Ack { .. } => (), // Of an election that a newer one swallowed.
            Message::Leader { index, best } => {
                let newer = self.part.is_some() || Some((index, best)) > self.leader;
                if index >= self.index && newer {
                    self.conclude(index, best, Some(from), ctx);
                }
            }
            Message::Probe { index } => self.on_probe(from, index, ctx),
            Message::Reply { index } => self.on_reply(from, index),
            Message::Heartbeat { leader, beat } => self.on_heartbeat(from, leader, beat, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Probe => self.probe(ctx),
            Timer::Heartbeat => self.beat(ctx),
            Timer::Lost => self.initiate(ctx),
        }
    }

    fn durable(&self) -> Used {
        Used { number: self.index.number, beats: self.beats }
    }

    fn epoch(&self) -> u64 {
        self.index.number
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        config.validate()
    }
}

impl Wireless {
    fn initiate(&mut self, ctx: &mut Ctx<'_, Self>) {
        let index = Index { number: self.index.number + 1, initiator: ctx.uid() };
        self.join(index, None, ctx);
    }

    /// Takes part in a newer election, and in no older one any more.
    fn join(&mut self, index: Index, parent: Option<NodeId>, ctx: &mut Ctx<'_, Self>) {
        self.index = index;
        let mut waiting = BTreeMap::new();
        for peer in ctx.neighbors().filter(|&peer| Some(peer) != parent) {
            ctx.send(peer, Message::Election { index });
            waiting.insert(peer, 0);
        }
        let best = Champion::of(ctx.me(), ctx.topology());
        let children = NodeSet::new();
        self.part = Some(Part { parent, children, best, reported: false, waiting });
        Self::watch(ctx);
        self.report_if_complete(ctx);
    }

    fn on_ack(&mut self, from: NodeId, best: Option<Champion>, ctx: &mut Ctx<'_, Self>) {
        let Some(part) = &mut self.part else { return };
        if let Some(best) = best {
            part.best = part.best.max(best);
            part.children.insert(from);
        }
        if !part.reported && part.waiting.remove(&from).is_some() {
            self.report_if_complete(ctx);
        }
    }

    fn report_if_complete(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (index, Some(part)) = (self.index, &mut self.part) else { return };
        if !part.waiting.is_empty() {
            return;
        }
        let best = part.best;
        match part.parent {
            None => self.conclude(index, best, None, ctx),
            Some(parent) => {
                part.reported = true;
                part.waiting.insert(parent, 0);
                ctx.send(parent, Message::Ack { index, best: Some(best) });
            }
        }
    }

    /// The result is known: tells those below, or everyone but who told us.
    fn conclude(
        &mut self,
        index: Index,
        best: Champion,
        from: Option<NodeId>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let part = self.part.take();
        self.index = index;
        let flood = ctx.config().announce == Announce::Flood || part.is_none();
        let children = part.map(|part| part.children).unwrap_or_default();
        for peer in ctx.neighbors().filter(|&peer| Some(peer) != from) {
            if flood || children.contains(&peer) {
                ctx.send(peer, Message::Leader { index, best });
            }
        }
        self.follow(index, best, ctx);
    }
}
