//! Election by uptime over a weighted majority: the longest up wins, and nobody who lives is
//! deposed. The preference is Tanenbaum's and the notes'; the safety is
//! [`WeightedMajority`]'s, whose weights never change.
//!
//! Who misses the leader asks around before it stands: whoever follows a live leader says so, and
//! whoever has been up longer says that and asks around itself. Only one that a majority answered
//! and nobody outranks stands. Uptime takes no clock: every process counts ticks, takes over larger
//! counts it hears, and goes by the count at which it came up; ties go to the larger uid.

mod config;

use std::cmp::Reverse;

pub use config::Config;
use serde::{Deserialize, Serialize};
use vez_core::problem::ElectionRequest;
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, NodeSet, Promise, Protocol, Time,
    Timing, Topology, Winner,
};

use super::weighted_majority::{self, Ballot, WeightedMajority};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Stable {
    votes: WeightedMajority,
    /// Ticks counted or heard of.
    ticks: u64,
    /// The ticks at which it came up; unknown to one just back from a crash.
    birth: Option<u64>,
    canvass: Option<Canvass>,
}

/// An inquiry under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
struct Canvass {
    answered: NodeSet,
    /// Somebody follows a leader, or has been up longer.
    vetoed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Canvass { ticks: u64, birth: Option<u64> },
    Answer { ticks: u64, birth: Option<u64>, led: bool },
    Votes(weighted_majority::Message),
}

/// Uptime grows; the inquiry is over; and what the vote needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Tick,
    Canvass,
    Votes(weighted_majority::Timer),
}

impl Protocol for Stable {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = Ballot;
    type Config = Config;

    const META: Meta = Meta {
        name: "stable",
        title: "Stable election by uptime",
        source: "uptime as merit, over Ongaro & Ousterhout, USENIX ATC 2014, §5.2",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Synchronous,
        crashes: Crashes::Recover,
        restless: Some(Time::from_secs(2)),
        promises: &[Promise::Uniqueness, Promise::Stability],
        rules: include_str!("stable.toml"),
    };

    fn start(saved: Option<Ballot>, ctx: &mut Ctx<'_, Self>) -> Self {
        let (birth, votes) = (if saved.is_none() { Some(0) } else { None }, ctx.config().votes());
        let start = |ctx: &mut Ctx<'_, _>| WeightedMajority::start(saved, ctx);
        let (votes, _) = ctx.embed(&votes, Message::Votes, Timer::Votes, start);
        ctx.arm(Timer::Tick, ctx.config().tick);
        let mut this = Self { votes, ticks: 0, birth, canvass: None };
        if birth.is_none() {
            this.canvass(ctx);
        }
        this
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match request {
            ElectionRequest::Suspect(node) if self.votes.leader() != Some(node) => (),
            ElectionRequest::Start if self.votes.is_led() => (),
            _ => self.canvass(ctx),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Canvass { ticks, birth } => {
                self.ticks = self.ticks.max(ticks);
                let (ticks, led) = (self.ticks, self.votes.is_led());
                ctx.send(from, Message::Answer { ticks, birth: self.birth, led });
                let outranks = self.seniority(ctx) < seniority(birth, from, ctx);
                if !led && outranks && self.canvass.is_none() {
                    self.canvass(ctx);
                }
            }
            Message::Answer { ticks, birth, led } => {
                self.ticks = self.ticks.max(ticks);
                let outranked = seniority(birth, from, ctx) < self.seniority(ctx);
                if let Some(canvass) = &mut self.canvass {
                    canvass.answered.insert(from);
                    canvass.vetoed |= led || outranked;
                }
            }
            // A live leader is not deposed, whatever the term.
            Message::Votes(weighted_majority::Message::VoteReq { .. }) if self.votes.is_led() => (),
            Message::Votes(message) => {
                self.vote(ctx, |votes, ctx| votes.on_message(from, message, ctx));
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Tick => {
                self.ticks += 1;
                ctx.arm(Timer::Tick, ctx.config().tick);
            }
            Timer::Canvass => self.stand_if_backed(ctx),
            Timer::Votes(weighted_majority::Timer::Election) => self.canvass(ctx),
            Timer::Votes(timer) => self.vote(ctx, |votes, ctx| votes.on_timer(timer, ctx)),
        }
    }

    fn durable(&self) -> Ballot {
        self.votes.durable()
    }

    fn epoch(&self) -> u64 {
        self.votes.epoch() + self.ticks
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        config.validate(topology)
    }

    fn winner(_config: &Config) -> Winner {
        Winner::Any
    }
}

impl Stable {
    /// Asks around who is up, for how long, and whether anyone hears a leader.
    fn canvass(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.vote(ctx, WeightedMajority::miss_leader);
        self.canvass = Some(Canvass::default());
        ctx.broadcast(&Message::Canvass { ticks: self.ticks, birth: self.birth });
        ctx.arm(Timer::Canvass, ctx.config().canvass_within);
    }

    fn stand_if_backed(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(canvass) = self.canvass.take() else { return };
        if self.birth.is_none() && !canvass.answered.is_empty() {
            self.birth = Some(self.ticks + 1); // Later than anyone who was up before.
        }
        let weight = |node| u64::from(ctx.topology().weight(node));
        let backing: u64 = weight(ctx.me()) + canvass.answered.into_iter().map(weight).sum::<u64>();
        if !canvass.vetoed && ctx.topology().weight_total() < 2 * backing {
            let election = weighted_majority::Timer::Election;
            self.vote(ctx, |votes, ctx| votes.on_timer(election, ctx));
        }
    }

    fn vote(
        &mut self,
        ctx: &mut Ctx<'_, Self>,
        step: impl FnOnce(&mut WeightedMajority, &mut Ctx<'_, WeightedMajority>),
    ) {
        let (config, votes) = (ctx.config().votes(), &mut self.votes);
        let step = |ctx: &mut Ctx<'_, _>| step(votes, ctx);
        let ((), notices) = ctx.embed(&config, Message::Votes, Timer::Votes, step);
        for notice in notices {
            ctx.notify(notice);
        }
    }

    fn seniority(&self, ctx: &Ctx<'_, Self>) -> (u64, Reverse<u64>) {
        seniority(self.birth, ctx.me(), ctx)
    }
}

/// The smaller, the longer up.
fn seniority(birth: Option<u64>, node: NodeId, ctx: &Ctx<'_, Stable>) -> (u64, Reverse<u64>) {
    (birth.unwrap_or(u64::MAX), Reverse(ctx.topology().uid(node)))
}
