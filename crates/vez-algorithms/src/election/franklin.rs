//! Franklin, *On an improved algorithm for decentralized extrema finding in circular
//! configurations of processors*, CACM 25(5), 1982.
//!
//! In every round the active processes send their uid both ways to the nearest active ones; only
//! those larger than both stay active, at most half. Who hears itself from both sides is the last:
//! it leads and says so. 2n messages a round, at most ⌊log₂ n⌋ + 1 rounds, n announcements.
//!
//! Why it is safe: the largest is never smaller than a neighbour, and a uid comes home only past
//! processes that are all passive. The k-th uid from one side belongs with the k-th from the other:
//! what comes early waits.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing, Winner,
};

use super::ring::{Pick, Way};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Franklin {
    state: State,
    round: u32,
    /// What has come from one side and waits for its match from the other: never from both.
    early: Vec<Message>,
    leader: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Asleep,
    Active,
    Passive,
    Leader,
}

/// A negative is what the notes call −p: it loses to every uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Id { uid: u64, negative: bool, way: Way },
    Elected { leader: NodeId },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub variant: Variant,
    pub pick: Pick,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    #[default]
    Canonical,
    /// To teach: who turns passive says so both ways, and the survivors "win" a round against each
    /// of these. The bound on rounds is lost.
    Negatives,
}

impl Protocol for Franklin {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "franklin",
        title: "Franklin",
        source: "Franklin, CACM 25(5), 1982",
        layout: Layout::RingBoth,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("franklin.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { state: State::Asleep, round: 0, early: Vec::new(), leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match self.leader {
            Some(id) => ctx.notify(ElectionNotice::Leader { id, term: 0 }),
            None if self.state == State::Asleep => self.next_round(ctx),
            None => (),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Id { way, .. } => match self.state {
                State::Asleep => {
                    self.next_round(ctx);
                    self.pair(message, way, ctx);
                }
                State::Active => self.pair(message, way, ctx),
                State::Passive => ctx.send(way.ahead(ctx), message),
                State::Leader => (), // What it sent the other way, come home as well.
            },
            Message::Elected { leader } if leader == ctx.me() => (), // All the way round.
            Message::Elected { leader } => {
                self.follow(leader, ctx);
                ctx.send(ctx.next(), Message::Elected { leader });
            }
        }
    }

    fn epoch(&self) -> u64 {
        u64::from(self.round)
    }

    fn winner(config: &Config) -> Winner {
        config.pick.winner()
    }
}

impl Franklin {
    fn next_round(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Active;
        self.round += 1;
        send_both_ways(false, ctx);
    }

    /// Ends the round if the other side's has come, else keeps this one for when it does.
    fn pair(&mut self, message: Message, way: Way, ctx: &mut Ctx<'_, Self>) {
        if self.early.first().is_none_or(|early| way_of(early) == way) {
            return self.early.push(message);
        }
        let other = self.early.remove(0);
        let best = rank(&message, ctx).max(rank(&other, ctx));
        match best.cmp(&Some(ctx.config().pick.rank(ctx.uid()))) {
            Ordering::Less => self.next_round(ctx),
            Ordering::Greater => self.give_up(ctx),
            Ordering::Equal => self.lead(ctx),
        }
    }

    fn give_up(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Passive;
        if ctx.config().variant == Variant::Negatives {
            send_both_ways(true, ctx);
        }
        for message in self.early.drain(..) {
            ctx.send(way_of(&message).ahead(ctx), message);
        }
    }

    fn lead(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Leader;
        self.early.clear();
        self.follow(ctx.me(), ctx);
        ctx.send(ctx.next(), Message::Elected { leader: ctx.me() });
    }

    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        self.leader = Some(leader);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}

fn send_both_ways(negative: bool, ctx: &mut Ctx<'_, Franklin>) {
    for way in Way::BOTH {
        ctx.send(way.ahead(ctx), Message::Id { uid: ctx.uid(), negative, way });
    }
}

fn rank(message: &Message, ctx: &Ctx<'_, Franklin>) -> Option<u64> {
    match message {
        Message::Id { uid, negative: false, .. } => Some(ctx.config().pick.rank(*uid)),
        _ => None,
    }
}

fn way_of(message: &Message) -> Way {
    match message {
        Message::Id { way, .. } => *way,
        Message::Elected { .. } => Way::Right,
    }
}
