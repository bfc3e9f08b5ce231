//! Probabilistic election for large groups: Gupta, van Renesse and Birman, *A Probabilistically
//! Correct Leader Election Protocol for Large Groups*, DISC 2000, in our own words and numbers.
//!
//! The initiator names a round; everyone draws its lot, a hash of itself and the round, and only
//! the few low ones go on. They tell each other of the lowest they know, check that it lives, and
//! the one that knows none lower announces itself. Some k² messages besides the
//! two announcements, whatever the size of the group. With probability (1 − k/n)ⁿ < e⁻ᵏ nobody
//! passes, and the round is drawn again under another name. Nothing is certain, and nothing is
//! promised.

mod config;
mod draw;
mod relay;

pub use config::Config;
pub use draw::{Tag, lot, passes};
use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, NodeSet, Protocol, Timing, Topology,
    Winner,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Probabilistic {
    /// The newest round heard of.
    tag: Tag,
    /// How many more our own user's election may try.
    rounds_left: u32,
    /// If it passed the filter of this round.
    passed: Option<Passed>,
    leader: Option<(Tag, NodeId)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Passed {
    /// Others that passed too, as far as it knows, and have not failed to answer.
    known: NodeSet,
    relays_left: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Init { tag: Tag },
    Relay { tag: Tag, best: NodeId },
    Check { tag: Tag },
    Alive { tag: Tag },
    Leader { tag: Tag },
}

/// Relays should have come; the best should have answered; a leader should have spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Relay,
    Check,
    Round,
}

impl Protocol for Probabilistic {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = Tag;
    type Config = Config;

    const META: Meta = Meta {
        name: "probabilistic",
        title: "Probabilistic election",
        source: "Gupta, van Renesse & Birman, DISC 2000",
        layout: Layout::Complete,
        channel: Channel::Lossy,
        timing: Timing::Asynchronous,
        crashes: Crashes::Recover,
        restless: None,
        promises: &[],
        rules: include_str!("probabilistic.toml"),
    };

    fn start(saved: Option<Tag>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { tag: saved.unwrap_or_default(), rounds_left: 0, passed: None, leader: None }
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        let other = |(_, leader)| matches!(request, ElectionRequest::Suspect(of) if of != leader);
        if self.rounds_left == 0 && !self.leader.is_some_and(other) {
            self.rounds_left = ctx.config().rounds;
            self.draw(ctx);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let (Message::Init { tag }
        | Message::Relay { tag, .. }
        | Message::Check { tag }
        | Message::Alive { tag }
        | Message::Leader { tag }) = message;
        if tag < self.tag {
            return; // Of a round that another has overtaken.
        }
        // Whatever names the round first starts it here.
        self.take_part_if_new(tag, ctx);
        match message {
            Message::Init { .. } => (),
            Message::Relay { best, .. } => self.learn([from, best], ctx),
            Message::Check { tag } => ctx.send(from, Message::Alive { tag }),
            Message::Alive { .. } => ctx.disarm(Timer::Check),
            Message::Leader { .. } => self.follow_if_lower(from, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Relay => self.check(ctx),
            Timer::Check => {
                let best = self.best(ctx);
                if let Some(passed) = &mut self.passed {
                    passed.known.remove(&best);
                    self.check(ctx);
                }
            }
            Timer::Round => self.draw(ctx),
        }
    }

    fn durable(&self) -> Tag {
        self.tag
    }

    fn epoch(&self) -> u64 {
        self.tag.number
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        config.validate()
    }

    fn winner(_config: &Config) -> Winner {
        Winner::Any
    }
}

impl Probabilistic {
    /// Tries a round, if any is left to try, under a name never used before.
    fn draw(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(left) = self.rounds_left.checked_sub(1) else { return };
        self.rounds_left = left;
        let tag = Tag { number: self.tag.number + 1, initiator: ctx.uid() };
        ctx.broadcast(&Message::Init { tag });
        ctx.arm(Timer::Round, ctx.config().round_within);
        self.take_part_if_new(tag, ctx);
    }

    /// Draws its lot, and if that is low enough tells those it knows to have passed too.
    fn take_part_if_new(&mut self, tag: Tag, ctx: &mut Ctx<'_, Self>) {
        if tag == self.tag {
            return;
        }
        self.tag = tag;
        ctx.disarm(Timer::Relay);
        ctx.disarm(Timer::Check);
        if 0 < self.rounds_left {
            ctx.arm(Timer::Round, ctx.config().round_within); // Gives another's round its time.
        }
        let (topology, config, me) = (ctx.topology(), ctx.config(), ctx.me());
        let size = config.size(topology);
        let low = |&node: &NodeId| passes(lot(topology.uid(node), tag), config.k, size);
        self.passed = None;
        if low(&me) {
            let known = ctx.peers().filter(low).filter(|&peer| config.sees(me, peer, topology));
            self.passed = Some(Passed { known: known.collect(), relays_left: config.relays });
            self.relay(ctx);
            ctx.arm(Timer::Relay, config.relay_within);
        }
    }

    /// Leads if it knows of nobody better; if it does, that one had better be alive.
    fn check(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (tag, best) = (self.tag, self.best(ctx));
        if self.leader == Some((tag, best)) {
            return; // It has spoken.
        }
        if best == ctx.me() {
            ctx.broadcast(&Message::Leader { tag });
            return self.follow_if_lower(best, ctx);
        }
        ctx.send(best, Message::Check { tag });
        ctx.arm(Timer::Check, ctx.config().check_within);
    }

    fn follow_if_lower(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        let lower = |(tag, known)| tag == self.tag && self.lot(known, ctx) <= self.lot(leader, ctx);
        if self.leader.is_some_and(lower) {
            return;
        }
        self.leader = Some((self.tag, leader));
        self.rounds_left = 0;
        ctx.disarm(Timer::Round);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
