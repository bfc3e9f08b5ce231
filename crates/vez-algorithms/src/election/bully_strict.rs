//! The Bully with its phases and terms: Garcia-Molina, IEEE Transactions on Computers 31(1), 1982;
//! Stoller, *Leader Election in Distributed Systems with Crash Failures*, Indiana TR 481, 1997.
//!
//! Ask every higher process whether it lives. If none does, halt everyone lower in a new term, wait
//! until each has agreed or is taken for dead, and only then announce; refuse older terms. After a
//! crash 3n − 5 to (n − 1)² + 3(n − 2) messages. Of any n terms in a row each process has one, so
//! no term has two leaders; where timeouts never lie, who led has stopped before.

mod config;
mod order;

pub use config::Config;
use order::{lower, own_term, tell};
use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, NodeSet, Promise, Protocol, Term, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct BullyStrict {
    state: State,
    leader: Option<NodeId>,
    /// The newest term heard of or used; outlives crashes.
    term: Term,
}

/// A candidate has asked the higher ones, in this term. Who waits is owed a leader by one that
/// answered or halted it. Who halts waits for the lower ones that have not agreed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Normal,
    Candidate { asked: Term },
    Waiting,
    Halting { missing: NodeSet },
    Leader,
}

/// An `Ok` carries the term of its question; a `Refuse` the newer term it refuses for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { term: Term },
    Ok { term: Term },
    Halt { term: Term },
    Ack { term: Term },
    Refuse { term: Term },
    Coord { term: Term },
}

/// Whoever has not answered is taken for dead; whoever owes us a leader has not won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Answer,
    Victory,
}

impl Protocol for BullyStrict {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = Term;
    type Config = Config;

    const META: Meta = Meta {
        name: "bully-strict",
        title: "Bully with halt and terms",
        source: "Garcia-Molina, IEEE Trans. Computers 31(1), 1982; Stoller, Indiana TR 481, 1997",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Synchronous,
        crashes: Crashes::Recover,
        restless: None,
        promises: Promise::ELECTION,
        rules: include_str!("bully_strict.toml"),
    };

    fn start(saved: Option<Term>, ctx: &mut Ctx<'_, Self>) -> Self {
        let mut this = Self { state: State::Normal, leader: None, term: saved.unwrap_or_default() };
        if saved.is_some() {
            this.elect(ctx);
        }
        this
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        self.elect(ctx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { term } => {
                ctx.send(from, Message::Ok { term });
                let newer = self.term < term;
                self.term = self.term.max(term);
                match self.state {
                    State::Normal => self.elect(ctx),
                    _ if newer && self.wins() => self.halt(ctx), // Past the term we win: another.
                    State::Leader => ctx.send(from, Message::Halt { term: self.term }), // Was down.
                    _ => (),
                }
            }
            Message::Ok { term: asked } if self.state == State::Candidate { asked } => {
                self.wait(ctx);
            }
            Message::Halt { term } if term < self.term => {
                ctx.send(from, Message::Refuse { term: self.term });
            }
            Message::Halt { term } => {
                self.term = term;
                self.leader = None;
                ctx.notify(ElectionNotice::NoLeader { term });
                self.wait(ctx);
                ctx.send(from, Message::Ack { term });
            }
            Message::Ack { term } if term == self.term => match &mut self.state {
                State::Halting { missing } => {
                    missing.remove(&from);
                    if missing.is_empty() {
                        self.declare(&NodeSet::new(), ctx);
                    }
                }
                State::Leader => ctx.send(from, Message::Coord { term }),
                _ => (),
            },
            Message::Refuse { term } if self.term < term && self.wins() => {
                self.term = term;
                self.halt(ctx);
            }
            Message::Coord { term } if term == self.term => self.follow(State::Normal, from, ctx),
            _ => (), // Of an older term, or an older question.
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match (timer, std::mem::replace(&mut self.state, State::Normal)) {
            (Timer::Answer, State::Halting { missing }) => self.declare(&missing, ctx),
            (Timer::Answer, _) => self.halt(ctx),
            (Timer::Victory, _) => self.elect(ctx),
        }
    }

    fn durable(&self) -> Term {
        self.term
    }

    fn epoch(&self) -> u64 {
        self.term
    }
}

impl BullyStrict {
    fn elect(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !matches!(self.state, State::Normal | State::Leader) {
            return;
        }
        self.term = own_term(self.term + 1, ctx);
        let higher = order::higher(ctx);
        if higher.is_empty() {
            return self.halt(ctx);
        }
        tell(&higher, &Message::Election { term: self.term }, ctx);
        self.state = State::Candidate { asked: self.term };
        ctx.arm(Timer::Answer, ctx.config().answer_within);
    }

    /// Nobody higher lives: has everyone lower agree before anything is announced.
    fn halt(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.term = own_term(self.term, ctx);
        let missing = lower(ctx);
        if missing.is_empty() {
            return self.declare(&missing, ctx);
        }
        tell(&missing, &Message::Halt { term: self.term }, ctx);
        self.state = State::Halting { missing };
        ctx.arm(Timer::Answer, ctx.config().answer_within);
    }

    /// Tells those that agreed; who did not is down, and will ask when it is back.
    fn declare(&mut self, missing: &NodeSet, ctx: &mut Ctx<'_, Self>) {
        self.follow(State::Leader, ctx.me(), ctx);
        tell(&(&lower(ctx) - missing), &Message::Coord { term: self.term }, ctx);
    }

    fn wins(&self) -> bool {
        matches!(self.state, State::Halting { .. } | State::Leader)
    }

    fn wait(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Waiting;
        ctx.disarm(Timer::Answer);
        ctx.arm(Timer::Victory, ctx.config().victory_within);
    }

    fn follow(&mut self, state: State, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.state, self.leader) = (state, Some(leader));
        ctx.disarm(Timer::Answer);
        ctx.disarm(Timer::Victory);
        ctx.notify(ElectionNotice::Leader { id: leader, term: self.term });
    }
}
