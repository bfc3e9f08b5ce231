//! Election by weighted majority in terms, after Ongaro and Ousterhout, *In Search of an
//! Understandable Consensus Algorithm*, USENIX ATC 2014, §5.2, without a log.
//!
//! One vote a term, remembered across crashes; more than half of all weight leads the term. Two
//! such halves overlap: one leader a term, whatever is lost, cut or crashes.

mod ballot;
mod config;
mod message;
mod steady;

pub use ballot::Ballot;
pub use config::Config;
pub use message::Message;
use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, NodeSet, Promise, Protocol, Time,
    Timing, Topology, Winner,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct WeightedMajority {
    ballot: Ballot,
    role: Role,
    /// Who stands behind it: would vote for it, has voted for it, or has heard it lead of late.
    backers: NodeSet,
    leader: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum Role {
    Follower,
    PreCandidate,
    Candidate,
    Leader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Election,
    Heartbeat,
    Quorum,
}

impl Protocol for WeightedMajority {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = Ballot;
    type Config = Config;

    const META: Meta = Meta {
        name: "weighted-majority",
        title: "Weighted majority with terms",
        source: "Ongaro & Ousterhout, USENIX ATC 2014, §5.2; the weights are ours",
        layout: Layout::Complete,
        channel: Channel::Lossy,
        timing: Timing::Asynchronous,
        crashes: Crashes::Recover,
        restless: Some(Time::from_secs(2)),
        promises: &[Promise::Uniqueness],
        rules: include_str!("weighted_majority.toml"),
    };

    fn start(saved: Option<Ballot>, ctx: &mut Ctx<'_, Self>) -> Self {
        arm_election(ctx);
        let ballot = saved.unwrap_or_default();
        Self { ballot, role: Role::Follower, backers: NodeSet::new(), leader: None }
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match (request, self.leader) {
            (ElectionRequest::Suspect(node), leader) if leader != Some(node) => (),
            (ElectionRequest::Start, Some(_)) => (),
            _ => self.stand(ctx),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        let term = message.term();
        // A term only asked about may never be: nobody adopts it.
        let asked = matches!(message, Message::PreVoteReq { .. } | Message::PreVote { .. });
        if !asked && term > self.ballot.term {
            self.ballot = Ballot { term, voted_for: None };
            self.follow(None, ctx);
        }
        match message {
            Message::PreVoteReq { .. } => self.on_pre_vote_req(from, term, ctx),
            Message::PreVote { .. } => self.on_pre_vote(from, term, ctx),
            // So that a candidate or leader of old steps down.
            Message::VoteReq { .. } | Message::Heartbeat { .. } if term < self.ballot.term => {
                ctx.send(from, Message::Refuse { term: self.ballot.term });
            }
            _ if term < self.ballot.term => (),
            Message::VoteReq { .. } => {
                if self.ballot.vote(from) {
                    ctx.send(from, Message::Vote { term });
                    arm_election(ctx);
                }
            }
            Message::Heartbeat { .. } => {
                self.follow(Some(from), ctx);
                if ctx.config().check_quorum {
                    ctx.send(from, Message::HeartbeatAck { term });
                }
            }
            Message::Vote { .. } => self.count(from, Role::Candidate, ctx),
            Message::HeartbeatAck { .. } => self.count(from, Role::Leader, ctx),
            Message::Refuse { .. } => (),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Election => self.stand(ctx),
            Timer::Heartbeat => self.beat(ctx),
            Timer::Quorum => self.step_down_if_deserted(ctx),
        }
    }

    fn durable(&self) -> Ballot {
        self.ballot
    }

    fn epoch(&self) -> u64 {
        self.ballot.term
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        config.validate(topology)
    }

    fn winner(_config: &Config) -> Winner {
        Winner::Any
    }
}

impl WeightedMajority {
    fn campaign(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.ballot = self.ballot.next(ctx.me());
        ctx.broadcast(&Message::VoteReq { term: self.ballot.term });
        self.seek(Role::Candidate, ctx);
    }

    /// Takes on a role in which it needs others behind it.
    fn seek(&mut self, role: Role, ctx: &mut Ctx<'_, Self>) {
        (self.role, self.backers) = (role, NodeSet::new());
        self.count(ctx.me(), role, ctx);
    }

    fn count(&mut self, backer: NodeId, role: Role, ctx: &mut Ctx<'_, Self>) {
        if self.role != role {
            return; // It has moved on since.
        }
        self.backers.insert(backer);
        match role {
            Role::PreCandidate if self.has_majority(ctx) => self.campaign(ctx),
            Role::Candidate if self.has_majority(ctx) => self.lead(ctx),
            _ => (),
        }
    }

    fn lead(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.leader = Some(ctx.me());
        ctx.disarm(Timer::Election);
        ctx.notify(ElectionNotice::Leader { id: ctx.me(), term: self.ballot.term });
        self.seek(Role::Leader, ctx);
        self.beat(ctx);
        if ctx.config().check_quorum {
            ctx.arm(Timer::Quorum, ctx.config().election_after);
        }
    }

    fn beat(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.broadcast(&Message::Heartbeat { term: self.ballot.term });
        ctx.arm(Timer::Heartbeat, ctx.config().heartbeat_every);
    }

    fn follow(&mut self, leader: Option<NodeId>, ctx: &mut Ctx<'_, Self>) {
        self.role = Role::Follower;
        ctx.disarm(Timer::Heartbeat);
        ctx.disarm(Timer::Quorum);
        arm_election(ctx);
        if self.leader == leader {
            return;
        }
        let term = self.ballot.term;
        let notice = |id| ElectionNotice::Leader { id, term };
        ctx.notify(leader.map_or(ElectionNotice::NoLeader { term }, notice));
        self.leader = leader;
    }
}

/// Waits a random while, so that rivals rarely stand at once.
fn arm_election(ctx: &mut Ctx<'_, WeightedMajority>) {
    let base = ctx.config().election_after;
    ctx.arm_within(Timer::Election, base..=base * 2);
}
