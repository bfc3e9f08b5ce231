//! Probabilistic election for large groups: Gupta, van Renesse and Birman, *A Probabilistically
//! Correct Leader Election Protocol for Large Groups*, DISC 2000, in our own words and numbers.
//!
//! The initiator names a round; everyone draws its lot, a hash of itself and the round, and only
//! the few with low ones go on. They tell each other of the lowest they know, check that it lives,
//! and the one that knows of none lower than itself announces itself. Some k² messages besides the
//! two announcements, whatever the size of the group. With probability (1 − k/n)ⁿ < e⁻ᵏ nobody passes,
//! and the round is drawn again under another name. Nothing is certain, and nothing is promised.

mod config;
mod draw;

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
        let leader = self.leader.map(|(_, leader)| leader);
        match request {
            ElectionRequest::Suspect(node) if leader.is_some() && leader != Some(node) => (),
            _ if 0 < self.rounds_left => (),
            _ => {
                self.rounds_left = ctx.config().rounds;
                self.draw(ctx);
            }
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
        let low =
            |&node: &NodeId| passes(lot(topology.uid(node), tag), config.k, config.size(topology));
        let known = ctx.peers().filter(low).filter(|&peer| config.sees(me, peer, topology));
        let passed = Passed { known: known.collect(), relays_left: config.relays };
        self.passed = Some(passed).filter(|_| low(&me));
        if self.passed.is_some() {
            self.relay(ctx);
            ctx.arm(Timer::Relay, config.relay_within);
        }
    }

    fn relay(&self, ctx: &mut Ctx<'_, Self>) {
        let (tag, best) = (self.tag, self.best(ctx));
        for &peer in self.passed.iter().flat_map(|passed| &passed.known) {
            ctx.send(peer, Message::Relay { tag, best });
        }
    }

    /// Hears of others that passed. A better best is told on, a few times.
    fn learn(&mut self, others: [NodeId; 2], ctx: &mut Ctx<'_, Self>) {
        let (me, before) = (ctx.me(), self.best(ctx));
        let Some(passed) = &mut self.passed else { return };
        passed.known.extend(others.into_iter().filter(|&other| other != me));
        let left = passed.relays_left;
        if self.best(ctx) != before && 0 < left {
            self.passed.as_mut().expect("it passed").relays_left = left - 1;
            self.relay(ctx);
        }
    }

    /// The lowest lot it knows of, its own included.
    fn best(&self, ctx: &Ctx<'_, Self>) -> NodeId {
        let known = self.passed.iter().flat_map(|passed| &passed.known).copied();
        known.chain([ctx.me()]).min_by_key(|&node| self.lot(node, ctx)).expect("at least itself")
    }

    fn lot(&self, node: NodeId, ctx: &Ctx<'_, Self>) -> u64 {
        lot(ctx.topology().uid(node), self.tag)
    }

    /// Leads if it knows of nobody better; if it does, that one had better be alive.
    fn check(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (tag, best) = (self.tag, self.best(ctx));
        if self.leader.is_some_and(|(of, leader)| of == tag && leader == best) {
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
        let rival = |&(tag, _): &(Tag, NodeId)| tag == self.tag;
        let known = self.leader.filter(rival).map(|(_, known)| self.lot(known, ctx));
        if known.is_some_and(|known| known <= self.lot(leader, ctx)) {
            return;
        }
        self.leader = Some((self.tag, leader));
        self.rounds_left = 0;
        ctx.disarm(Timer::Round);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
