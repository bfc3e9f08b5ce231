//! Peterson, *An O(n log n) unidirectional algorithm for the circular extrema problem*, ACM TOPLAS
//! 4(4), 1982; found independently by Dolev, Klawe and Rodeh, Journal of Algorithms 3(3), 1982.
//!
//! Franklin's rounds on a ring that goes one way only. Every active process stands for a candidate,
//! at first itself. It learns the candidates of the two active processes before it: if the nearer
//! is larger than its own and than the farther, it stands for that one from now on; else it turns
//! passive. Who hears its own candidate has found the winner, usually another, and announces it.
//! (2p − 1)·n messages in p phases, as many as Franklin has rounds; n announcements.
//!
//! Why it is safe: a candidate is carried on, by one process, exactly if it is larger than both its
//! neighbours. FIFO brings the messages of a phase in turn, so none has to wait.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing, Winner,
};

use super::ring::Pick;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Peterson {
    state: State,
    phase: u32,
    leader: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Asleep,
    /// Stands for `candidate`; `nearer` is that of the active process before it, once heard.
    Active {
        candidate: NodeId,
        nearer: Option<NodeId>,
    },
    Passive,
}

/// `M1` brings the candidate of the nearest active process, `M2` that of the one before it. The
/// address stands for the uid it has: who announces a winner must say where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    M1 { candidate: NodeId },
    M2 { candidate: NodeId },
    Elected { leader: NodeId },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub pick: Pick,
}

impl Protocol for Peterson {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "peterson",
        title: "Peterson / Dolev–Klawe–Rodeh",
        source: "Peterson, ACM TOPLAS 4(4), 1982; Dolev, Klawe & Rodeh, J. Algorithms 3(3), 1982",
        layout: Layout::Ring,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("peterson.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { state: State::Asleep, phase: 0, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match self.leader {
            Some(id) => ctx.notify(ElectionNotice::Leader { id, term: 0 }),
            None if self.state == State::Asleep => self.next_phase(ctx.me(), ctx),
            None => (),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        if self.state == State::Asleep {
            self.next_phase(ctx.me(), ctx);
        }
        match message {
            // The end of the lap: whoever announces has known it from the start.
            Message::Elected { .. } if self.leader.is_some() => (),
            Message::Elected { leader } => self.announce(leader, ctx),
            Message::M1 { candidate } => self.on_first(candidate, ctx),
            Message::M2 { candidate } => self.on_second(candidate, ctx),
        }
    }

    fn epoch(&self) -> u64 {
        u64::from(self.phase)
    }

    fn winner(config: &Config) -> Winner {
        config.pick.winner()
    }
}

impl Peterson {
    fn next_phase(&mut self, candidate: NodeId, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Active { candidate, nearer: None };
        self.phase += 1;
        ctx.send(ctx.next(), Message::M1 { candidate });
    }

    fn on_first(&mut self, nearer: NodeId, ctx: &mut Ctx<'_, Self>) {
        match self.state {
            State::Active { candidate, nearer: None } if candidate == nearer => {
                self.state = State::Passive;
                self.announce(candidate, ctx);
            }
            State::Active { candidate, nearer: None } => {
                self.state = State::Active { candidate, nearer: Some(nearer) };
                ctx.send(ctx.next(), Message::M2 { candidate: nearer });
            }
            State::Passive => ctx.send(ctx.next(), Message::M1 { candidate: nearer }),
            _ => ctx.unexpected("a second M1 in one phase: the channel is not FIFO"),
        }
    }

    fn on_second(&mut self, farther: NodeId, ctx: &mut Ctx<'_, Self>) {
        let (topology, pick) = (ctx.topology(), ctx.config().pick);
        let rank = |node| pick.rank(topology.uid(node));
        match self.state {
            State::Active { candidate, nearer: Some(nearer) } => {
                if rank(nearer) > rank(candidate).max(rank(farther)) {
                    self.next_phase(nearer, ctx);
                } else {
                    self.state = State::Passive;
                }
            }
            State::Passive => ctx.send(ctx.next(), Message::M2 { candidate: farther }),
            _ => ctx.unexpected("an M2 before the M1 of its phase: the channel is not FIFO"),
        }
    }

    fn announce(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        self.leader = Some(leader);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
        ctx.send(ctx.next(), Message::Elected { leader });
    }
}
