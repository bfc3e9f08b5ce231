//! The Bully algorithm: Garcia-Molina, *Elections in a Distributed Computing System*, IEEE
//! Transactions on Computers 31(1), 1982.
//!
//! Ask every higher process whether it lives. If one answers, it takes over; if none does in time,
//! lead and tell the others. From n to n(n − 1) messages after a crash. Sound only where timeouts
//! never lie: a slow process taken for dead gives two leaders for a while. Not stable: whoever is
//! higher and comes back takes over.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Promise, Protocol, Time, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Bully {
    state: State,
    leader: Option<NodeId>,
    /// The largest election number heard of or used.
    number: u64,
    /// Back from a crash, and told no leader since: announcements made meanwhile were missed.
    returned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Normal,
    /// Asked the higher ones, with this election number, and heard nothing so far.
    Candidate {
        asked: u64,
    },
    /// A higher one lives; it owes us a leader.
    Waiting,
    /// Leads, and announced it with this election number.
    Leader {
        announced: u64,
    },
}

/// The number in an `Ok` is the asker's own, so that a late answer to an older question is told
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { number: u64, returned: bool },
    Ok { number: u64 },
    Coord { number: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// No higher process has answered.
    Answer,
    /// The higher process that answered has not won.
    Victory,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub answer_within: Time,
    pub victory_within: Time,
    pub announce_to: Audience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    All,
    Lower,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            answer_within: Time::from_millis(2),
            victory_within: Time::from_millis(6),
            announce_to: Audience::All,
        }
    }
}

impl Protocol for Bully {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "bully",
        title: "Bully",
        source: "Garcia-Molina, IEEE Trans. Computers 31(1), 1982",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Synchronous,
        crashes: Crashes::Recover,
        restless: None,
        promises: Promise::ELECTION,
        rules: include_str!("bully.toml"),
    };

    fn start(saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        let returned = saved.is_some();
        let mut this = Self { state: State::Normal, leader: None, number: 0, returned };
        if returned {
            this.elect(ctx);
        }
        this
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match request {
            ElectionRequest::Suspect(node) if self.leader.is_some_and(|leader| leader != node) => {}
            _ => self.elect(ctx),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { number, returned } => {
                ctx.send(from, Message::Ok { number });
                self.number = self.number.max(number);
                match self.state {
                    // An asker that has not heard our announcement will; one that asks after it,
                    // or was down when it was made, will not.
                    State::Leader { announced } if returned || announced < number => {
                        ctx.send(from, Message::Coord { number: announced });
                    }
                    State::Leader { .. } => (),
                    _ => self.elect(ctx),
                }
            }
            Message::Ok { number } => {
                if self.state == (State::Candidate { asked: number }) {
                    self.state = State::Waiting;
                    ctx.disarm(Timer::Answer);
                    ctx.arm(Timer::Victory, ctx.config().victory_within);
                }
            }
            Message::Coord { number } => {
                self.number = self.number.max(number);
                if ctx.topology().rank(from) > ctx.rank() {
                    self.settle(State::Normal, from, ctx);
                } else {
                    self.elect(ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Answer => self.declare(ctx),
            Timer::Victory => {
                self.state = State::Normal;
                self.elect(ctx);
            }
        }
    }
}

impl Bully {
    fn elect(&mut self, ctx: &mut Ctx<'_, Self>) {
        // Without this guard every question asked would start another election: exponentially many.
        if matches!(self.state, State::Candidate { .. } | State::Waiting) {
            return;
        }
        self.number += 1;
        let (number, returned) = (self.number, self.returned);
        let (topology, rank) = (ctx.topology(), ctx.rank());
        let mut highest = true;
        for peer in ctx.peers().filter(|&peer| topology.rank(peer) > rank) {
            ctx.send(peer, Message::Election { number, returned });
            highest = false;
        }
        if highest {
            return self.declare(ctx);
        }
        self.state = State::Candidate { asked: number };
        ctx.arm(Timer::Answer, ctx.config().answer_within);
    }

    fn declare(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.settle(State::Leader { announced: self.number }, ctx.me(), ctx);
        let everyone = ctx.config().announce_to == Audience::All;
        for peer in ctx.peers() {
            if everyone || ctx.topology().rank(peer) < ctx.rank() {
                ctx.send(peer, Message::Coord { number: self.number });
            }
        }
    }

    fn settle(&mut self, state: State, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.state, self.leader, self.returned) = (state, Some(leader), false);
        ctx.disarm(Timer::Answer);
        ctx.disarm(Timer::Victory);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
