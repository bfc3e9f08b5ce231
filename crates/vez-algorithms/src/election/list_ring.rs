//! The list-collecting ring: Tanenbaum and van Steen, *Distributed Systems*, section on elections
//! in rings; in the notes, where the smallest wins.
//!
//! A list goes round and everyone adds itself. Whoever finds itself in it already has the list of
//! all: its smallest (or largest) leads, and a second lap says so. Every initiator costs n and n
//! messages, whoever else has started; all lists name the same leader.
//!
//! Why it ends even if the initiator dies: any member of the list may close it, not only its head.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Promise, Protocol, Time, Timing,
    Topology, Winner,
};

use super::hops::{Hops, Timer, UNNUMBERED, patience, validate};
use super::ring::Pick;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ListRing {
    /// We have sent a list out and been told no leader since.
    waiting: bool,
    leader: Option<NodeId>,
    hops: Hops<Message>,
}

/// `hops` is how many times it has been sent; `number` is what to acknowledge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { list: Vec<NodeId>, number: u32 },
    Coordinator { leader: NodeId, list: Vec<NodeId>, hops: u32, number: u32 },
    Ack { number: u32 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub pick: Pick,
    pub skip_within: Option<Time>,
}

impl Default for Config {
    fn default() -> Self {
        Self { pick: Pick::Min, skip_within: None }
    }
}

impl Protocol for ListRing {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "list-ring",
        title: "List-collecting ring",
        source: "Tanenbaum & van Steen, Distributed Systems, 2002",
        layout: Layout::Ring,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("list_ring.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { waiting: false, leader: None, hops: Hops::default() }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if !self.waiting {
            self.collect(ctx);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { list, number } => {
                acknowledge(number, from, ctx);
                if list.contains(&ctx.me()) {
                    self.close(list, ctx);
                } else {
                    self.add_ourselves(list, ctx);
                }
            }
            Message::Coordinator { leader, list, hops, number } => {
                acknowledge(number, from, ctx);
                self.follow(leader, ctx);
                if hops < list.len() as u32 {
                    self.announce(leader, list, hops + 1, ctx);
                }
            }
            Message::Ack { number } => self.hops.acknowledged(number, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        let within = ctx.config().skip_within.expect("timers are armed to skip the dead");
        match timer {
            Timer::Hop { number } => match self.hops.overdue(number) {
                // The list chose one that has died meanwhile.
                (dead, Message::Coordinator { leader, .. }) if leader == dead => self.collect(ctx),
                (dead, message) => self.hops.skip(number, dead, message, within, ctx),
            },
            Timer::Patience => self.collect(ctx),
        }
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        validate(config.skip_within)
    }

    fn winner(config: &Config) -> Winner {
        config.pick.winner()
    }
}

impl ListRing {
    fn collect(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.waiting = true;
        if let Some(within) = ctx.config().skip_within {
            ctx.arm(Timer::Patience, patience(within, ctx.topology().n()));
        }
        self.add_ourselves(Vec::new(), ctx);
    }

    fn add_ourselves(&mut self, mut list: Vec<NodeId>, ctx: &mut Ctx<'_, Self>) {
        list.push(ctx.me());
        let message = |number| Message::Election { list, number };
        self.hops.pass(ctx.config().skip_within, message, ctx);
    }

    fn close(&mut self, list: Vec<NodeId>, ctx: &mut Ctx<'_, Self>) {
        let (topology, pick) = (ctx.topology(), ctx.config().pick);
        let best = list.iter().copied().max_by_key(|&node| pick.rank(topology.uid(node)));
        let leader = best.expect("we are in it");
        self.follow(leader, ctx);
        self.announce(leader, list, 1, ctx);
    }

    fn announce(&mut self, leader: NodeId, list: Vec<NodeId>, hops: u32, ctx: &mut Ctx<'_, Self>) {
        let message = |number| Message::Coordinator { leader, list, hops, number };
        self.hops.pass(ctx.config().skip_within, message, ctx);
    }

    /// Every lap names a leader; only what is new, or was asked for, is told.
    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        if self.waiting || self.leader != Some(leader) {
            ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
        }
        (self.waiting, self.leader) = (false, Some(leader));
        if ctx.config().skip_within.is_some() {
            ctx.disarm(Timer::Patience);
        }
    }
}

fn acknowledge(number: u32, to: NodeId, ctx: &mut Ctx<'_, ListRing>) {
    if number != UNNUMBERED {
        ctx.send(to, Message::Ack { number });
    }
}
