//! An election among processes that are all alike, without dice: the notes' first ring, and what
//! cannot work about it. Angluin, *Local and global properties in networks of processors*, STOC
//! 1980, proves that nothing deterministic can.
//!
//! A candidate sends VOTE round; the next candidate takes it for its own vote come home, considers
//! itself elected and sends HABEMUS round, which the next candidate takes for its own again. One
//! candidate alone comes to lead. Several come to lead all together: no process can tell its own
//! VOTE from another's. 2n messages, however many stand.
//!
//! No uid and no address decides anything, so a follower that hears HABEMUS learns that somebody
//! leads, not who: only those in office tell their users.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing, Winner,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct AnonymousRing {
    state: State,
    /// Has passed a VOTE on.
    voted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Follower,
    Candidate,
    Elected,
    InOffice,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Vote,
    Habemus,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// To teach: let one stand that has already passed a VOTE on. The notes' table then lacks
    /// entries, and the election stalls.
    pub late_candidates: bool,
}

impl Protocol for AnonymousRing {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "anonymous-ring",
        title: "Anonymous ring",
        source: "the notes; its impossibility: Angluin, STOC 1980",
        layout: Layout::Ring,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        // Somebody comes to lead. That it is one only, or that others know who, nobody can promise.
        promises: &[Promise::Termination],
        rules: include_str!("anonymous_ring.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { state: State::Follower, voted: false }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match self.state {
            State::Follower if !self.voted || ctx.config().late_candidates => {
                self.state = State::Candidate;
                ctx.send(ctx.next(), Message::Vote);
            }
            State::InOffice => ctx.notify(ElectionNotice::Leader { id: ctx.me(), term: 0 }),
            State::Follower | State::Candidate | State::Elected => (),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match (message, self.state) {
            (Message::Vote, State::Follower) => {
                self.voted = true;
                ctx.send(ctx.next(), Message::Vote);
            }
            (Message::Vote, State::Candidate) => {
                self.state = State::Elected;
                ctx.send(ctx.next(), Message::Habemus);
            }
            (Message::Habemus, State::Follower) => ctx.send(ctx.next(), Message::Habemus),
            (Message::Habemus, State::Elected) => {
                self.state = State::InOffice;
                ctx.notify(ElectionNotice::Leader { id: ctx.me(), term: 0 });
            }
            // What the notes' table leaves open is discarded.
            (Message::Vote, State::Elected | State::InOffice) => {
                ctx.unexpected("a VOTE for one already elected");
            }
            (Message::Habemus, State::Candidate | State::InOffice) => {
                ctx.unexpected("a HABEMUS for one not about to take office");
            }
        }
    }

    fn winner(_config: &Config) -> Winner {
        Winner::Any
    }
}
