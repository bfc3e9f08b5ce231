//! `YoYo`: Santoro, *Design and Analysis of Distributed Algorithms*, 2006, §3.8.3.
//!
//! Every link points from the smaller to the larger identity. Down the links go the identities of
//! the sources, each process passing on the smallest it hears; up come the votes, YES only to
//! whoever brought the smallest. A NO turns its link round, and a source with a NO is one no
//! longer. Links that can tell nothing new are pruned; a source with none left leads. 2E messages
//! to set up, two a live link and iteration, 2E − (n − 1) to announce.
//!
//! Safe: links never form a cycle, stay in one piece, and the smallest never hears a NO.

mod config;
mod links;

pub use config::{Config, Pick, Rule};
pub use links::Vote;
use links::{Links, Way};
use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Promise, Protocol, Timing, Winner,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct YoYo {
    phase: Phase,
    links: Links,
    /// How many messages this phase still waits for.
    awaited: u32,
    /// The best identity heard in this iteration.
    best: u64,
    iteration: u64,
    leader: Option<NodeId>,
}

/// What it waits for: the neighbours' identities, the sources' from above, the votes from below.
/// Once pruned, or leading, it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum Phase {
    Asleep,
    Setup,
    Yo,
    Vote,
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Setup { uid: u64 },
    Yo { uid: u64 },
    Vote(Vote),
    Leader { leader: NodeId },
}

/// A neighbour that does not speak at the start is taken for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    Setup,
}

impl Protocol for YoYo {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "yoyo",
        title: "YoYo",
        source: "Santoro, Design and Analysis of Distributed Algorithms, 2006",
        layout: Layout::Connected,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("yoyo.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        let (phase, links) = (Phase::Asleep, Links::default());
        Self { phase, links, awaited: 0, best: 0, iteration: 0, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        self.wake(ctx);
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        self.wake(ctx); // Our identity goes out before anything else we say.
        if let Message::Leader { leader } = message {
            return self.follow(leader, from, ctx);
        }
        let Some(link) = self.links.get(from) else { return }; // Given up in the setup.
        let due = match (message, link.way) {
            (Message::Setup { uid }, Way::Unknown) => {
                let down = (ctx.uid() < uid) == (ctx.config().pick == Pick::Min);
                (link.uid, link.way) = (uid, if down { Way::Down } else { Way::Up });
                Phase::Setup
            }
            (Message::Yo { uid }, _) if link.expects_yo() => {
                link.heard = Some(uid);
                Phase::Yo
            }
            (Message::Vote(vote), Way::Down) if link.vote.is_none() => {
                link.vote = Some(vote);
                Phase::Vote
            }
            _ => return ctx.unexpected("a message out of turn"),
        };
        // What a faster neighbour says of the next phase stays on its link until then.
        if self.phase == due {
            self.awaited -= 1;
            self.advance(ctx);
        }
    }

    fn on_timer(&mut self, _timer: Timer, ctx: &mut Ctx<'_, Self>) {
        self.links.forget_unknown();
        self.awaited = 0;
        self.advance(ctx);
    }

    fn epoch(&self) -> u64 {
        self.iteration
    }

    fn winner(config: &Config) -> Winner {
        if config.pick == Pick::Min { Winner::Smallest } else { Winner::Largest }
    }
}

impl YoYo {
    fn wake(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.phase != Phase::Asleep {
            return;
        }
        (self.phase, self.links) = (Phase::Setup, Links::to(ctx.neighbors()));
        for peer in ctx.neighbors() {
            ctx.send(peer, Message::Setup { uid: ctx.uid() });
            self.awaited += 1;
        }
        if let Some(within) = ctx.config().setup_within {
            ctx.arm(Timer::Setup, within);
        }
        self.advance(ctx);
    }

    /// Goes from phase to phase for as long as nothing is missing.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        while self.awaited == 0 {
            match self.phase {
                Phase::Asleep | Phase::Over => return,
                Phase::Setup => {
                    ctx.disarm(Timer::Setup);
                    self.iterate(true, ctx);
                }
                Phase::Yo => {
                    self.best = self.links.best(ctx.config().pick).unwrap_or(ctx.uid());
                    for peer in self.links.down() {
                        ctx.send(peer, Message::Yo { uid: self.best });
                        self.awaited += 1;
                    }
                    self.phase = Phase::Vote;
                }
                Phase::Vote => {
                    let (source, config) = (self.links.is_source(), ctx.config());
                    for (peer, vote) in self.links.answer(self.best, config.rule, config.prune) {
                        ctx.send(peer, Message::Vote(vote));
                    }
                    self.iterate(source, ctx);
                }
            }
        }
    }

    fn iterate(&mut self, source: bool, ctx: &mut Ctx<'_, Self>) {
        if self.links.is_empty() {
            self.phase = Phase::Over;
            if source {
                self.follow(ctx.me(), ctx.me(), ctx);
            }
            return;
        }
        self.iteration += 1;
        (self.phase, self.awaited) = (Phase::Yo, self.links.silent());
    }

    /// Tells everyone but who told us: also over pruned links, for they lead to pruned processes.
    fn follow(&mut self, leader: NodeId, from: NodeId, ctx: &mut Ctx<'_, Self>) {
        if self.leader.is_some() {
            return;
        }
        self.leader = Some(leader);
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
        for peer in ctx.neighbors().filter(|&peer| peer != from) {
            ctx.send(peer, Message::Leader { leader });
        }
    }
}
