//! Hirschberg and Sinclair, *Decentralized extrema-finding in circular configurations of
//! processors*, CACM 23(11), 1980.
//!
//! Every process probes ever farther both ways: 1, 2, 4, … hops. A larger process on the way
//! swallows the probe; at its end it is answered. Only who is answered from both sides probes
//! twice as far. A probe that comes home has passed everyone: its owner leads and says so. At most
//! 8n(1 + ⌈log₂ n⌉) messages, n announcements.
//!
//! Why it is cheap: of any 2ᵏ + 1 neighbours at most one probes farther than 2ᵏ hops. No order of
//! messages matters: whether a probe gets through depends on the uids alone.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing, Winner,
};

use super::ring::{Pick, Way};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct HirschbergSinclair {
    /// `None` until woken; then its probes go 2^phase hops.
    phase: Option<u32>,
    /// One of the two answers of this phase has come.
    half_answered: bool,
    leader: Option<NodeId>,
}

/// `hops` is how many times a probe has been sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Probe { uid: u64, phase: u32, hops: u32, way: Way },
    Reply { uid: u64, way: Way },
    Elected { leader: NodeId },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub pick: Pick,
}

impl Protocol for HirschbergSinclair {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "hirschberg-sinclair",
        title: "Hirschberg–Sinclair",
        source: "Hirschberg & Sinclair, CACM 23(11), 1980",
        layout: Layout::RingBoth,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("hirschberg_sinclair.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { phase: None, half_answered: false, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match self.leader {
            Some(id) => ctx.notify(ElectionNotice::Leader { id, term: 0 }),
            None => self.wake(ctx),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        self.wake(ctx);
        match message {
            Message::Probe { uid, phase, hops, way } => self.on_probe(uid, phase, hops, way, ctx),
            Message::Reply { uid, .. } if uid == ctx.uid() => self.on_reply(ctx),
            Message::Reply { way, .. } => ctx.send(way.ahead(ctx), message),
            Message::Elected { leader } if leader == ctx.me() => (), // All the way round.
            Message::Elected { leader } => self.announce(leader, ctx),
        }
    }

    fn epoch(&self) -> u64 {
        self.phase.map_or(0, |phase| u64::from(phase) + 1)
    }

    fn winner(config: &Config) -> Winner {
        config.pick.winner()
    }
}

impl HirschbergSinclair {
    fn wake(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.phase.is_none() {
            self.probe(0, ctx);
        }
    }

    fn probe(&mut self, phase: u32, ctx: &mut Ctx<'_, Self>) {
        (self.phase, self.half_answered) = (Some(phase), false);
        for way in Way::BOTH {
            ctx.send(way.ahead(ctx), Message::Probe { uid: ctx.uid(), phase, hops: 1, way });
        }
    }

    fn on_probe(&mut self, uid: u64, phase: u32, hops: u32, way: Way, ctx: &mut Ctx<'_, Self>) {
        let pick = ctx.config().pick;
        match pick.rank(uid).cmp(&pick.rank(ctx.uid())) {
            Ordering::Less => (), // Swallowed.
            Ordering::Greater if hops < 1 << phase => {
                let hops = hops + 1;
                ctx.send(way.ahead(ctx), Message::Probe { uid, phase, hops, way });
            }
            Ordering::Greater => {
                let way = way.back();
                ctx.send(way.ahead(ctx), Message::Reply { uid, way });
            }
            Ordering::Equal if self.leader.is_some() => (), // The other probe, home as well.
            Ordering::Equal => self.announce(ctx.me(), ctx),
        }
    }

    fn on_reply(&mut self, ctx: &mut Ctx<'_, Self>) {
        match self.phase {
            Some(phase) if self.half_answered => self.probe(phase + 1, ctx),
            _ => self.half_answered = true,
        }
    }

    fn announce(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        self.leader = Some(leader);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
        ctx.send(ctx.next(), Message::Elected { leader });
    }
}
