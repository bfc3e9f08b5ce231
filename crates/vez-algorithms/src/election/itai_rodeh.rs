//! Itai and Rodeh, *Symmetry breaking in distributed networks*, Information and Computation 88(1),
//! 1990 (first 1981).
//!
//! Processes that are all alike can elect if they know how many they are and may roll dice. The
//! active ones draw an identity and send it round, with the number of the round and a count of
//! hops. A larger one on the way turns a process passive, a smaller one is dropped, an equal one is
//! marked as not unique. What comes home, n hops later, was the largest: if unique its owner leads;
//! if not, the owners of the largest draw again. O(n log n) messages are expected.
//!
//! Why it is safe: what comes home unique has turned everyone else passive. Because rounds are
//! compared before identities, messages may overtake each other; that it ends is certain only with
//! probability 1. Neither uids nor addresses decide anything: the announcement counts hops, and
//! everyone learns who leads as "the one so many hops behind me".

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing,
    Topology, Winner,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ItaiRodeh {
    state: State,
    leader: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
enum State {
    Asleep,
    Active { round: u32, id: u32 },
    Passive,
    Leader,
}

/// `hops` is how many times it has been sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Id { id: u32, round: u32, hops: u32, unique: bool },
    Elected { hops: u32 },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many identities to draw from; as many as there are processes if not said.
    pub ids: Option<u32>,
}

impl Protocol for ItaiRodeh {
    type Problem = Election;
    type Message = Message;
    type Timer = Never;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "itai-rodeh",
        title: "Itai–Rodeh",
        source: "Itai & Rodeh, Information and Computation 88(1), 1990",
        layout: Layout::Ring,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("itai_rodeh.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { state: State::Asleep, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match self.leader {
            Some(id) => ctx.notify(ElectionNotice::Leader { id, term: 0 }),
            None if self.state == State::Asleep => self.draw(1, ctx),
            None => (),
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Id { id, round, hops, unique } => self.on_id(id, round, hops, unique, ctx),
            Message::Elected { hops } if hops == ctx.topology().n() => (), // All the way round.
            Message::Elected { hops } => self.announce(hops, ctx),
        }
    }

    fn epoch(&self) -> u64 {
        match self.state {
            State::Active { round, .. } => u64::from(round),
            _ => 0,
        }
    }

    fn validate(config: &Config, topology: &Topology) -> Result<(), String> {
        match config.ids {
            Some(0) => Err("ids: expected at least 1, found 0".to_owned()),
            Some(1) if 1 < topology.n() => {
                Err("ids: expected at least 2, or no draw ever tells them apart, found 1"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn winner(_config: &Config) -> Winner {
        Winner::Any
    }
}

impl ItaiRodeh {
    fn draw(&mut self, round: u32, ctx: &mut Ctx<'_, Self>) {
        let n = ctx.topology().n();
        let id = 1 + ctx.choose(ctx.config().ids.unwrap_or(n));
        self.state = State::Active { round, id };
        ctx.send(ctx.next(), Message::Id { id, round, hops: 1, unique: true });
    }

    fn on_id(&mut self, id: u32, round: u32, hops: u32, unique: bool, ctx: &mut Ctx<'_, Self>) {
        let home = hops == ctx.topology().n();
        let order = match self.state {
            State::Active { round: own_round, id: own } => (round, id).cmp(&(own_round, own)),
            // Who has heard of an election before being told to start does not stand.
            State::Asleep | State::Passive if !home => Ordering::Greater,
            // Overtaken on its way home: its owner has lost meanwhile, or a leader has won.
            _ => Ordering::Less,
        };
        let hops = hops + 1;
        match order {
            Ordering::Equal if home && unique => {
                self.state = State::Leader;
                self.announce(0, ctx);
            }
            Ordering::Equal if home => self.draw(round + 1, ctx),
            Ordering::Equal => ctx.send(ctx.next(), Message::Id { id, round, hops, unique: false }),
            Ordering::Greater => {
                self.state = State::Passive;
                ctx.send(ctx.next(), Message::Id { id, round, hops, unique });
            }
            Ordering::Less => (),
        }
    }

    /// The leader is the one `hops` behind.
    fn announce(&mut self, hops: u32, ctx: &mut Ctx<'_, Self>) {
        let n = ctx.topology().n();
        let id = NodeId((ctx.me().0 + n - hops) % n);
        self.leader = Some(id);
        ctx.notify(ElectionNotice::Leader { id, term: 0 });
        ctx.send(ctx.next(), Message::Elected { hops: hops + 1 });
    }
}
