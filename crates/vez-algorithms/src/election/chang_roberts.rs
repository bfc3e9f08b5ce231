//! Chang and Roberts, *An improved algorithm for decentralized extrema-finding in circular
//! configurations of processes*, CACM 22(5), 1979.
//!
//! Candidacies travel one way round the ring and are swallowed by any process with a larger
//! identity. Only the largest comes home; its owner leads and says so. From 2n − 1 to n(n + 1)/2
//! candidacies if all start, n·Hₙ on average; n announcements.
//!
//! Why it is safe: a candidacy that comes home has passed everyone, so everyone is smaller.
//!
//! Told to, it mends the ring: see [`hops`](super::hops). A candidacy whose owner died stops after
//! n hops, and who waits in vain stands again.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Promise, Protocol, Time, Timing,
    Topology, Winner,
};

use super::hops::{Hops, Timer, UNNUMBERED, patience, validate};
use super::ring::Pick;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ChangRoberts {
    /// Whether our candidacy, or a larger one, has gone out since the last election ended.
    participant: bool,
    leader: Option<NodeId>,
    hops: Hops<Message>,
}

/// `hops` is how many times it has been sent; `number` is what to acknowledge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { uid: u64, hops: u32, number: u32 },
    Elected { leader: NodeId, hops: u32, number: u32 },
    Ack { number: u32 },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub variant: Variant,
    pub pick: Pick,
    pub skip_within: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    #[default]
    Canonical,
    /// To teach: a smaller candidacy wakes nobody. Stalls unless the largest starts.
    DropOnly,
    /// To teach: a smaller candidacy is always replaced. One lap and one leader's declaration for
    /// every initiator.
    Substitute,
}

impl Protocol for ChangRoberts {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = Config;

    const META: Meta = Meta {
        name: "chang-roberts",
        title: "Chang–Roberts",
        source: "Chang & Roberts, CACM 22(5), 1979",
        layout: Layout::Ring,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: include_str!("chang_roberts.toml"),
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { participant: false, leader: None, hops: Hops::default() }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if !self.participant {
            self.stand(ctx);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { uid, hops, number } => {
                acknowledge(number, from, ctx);
                self.on_candidacy(uid, hops, ctx);
            }
            Message::Elected { leader, hops, number } => {
                acknowledge(number, from, ctx);
                if leader == ctx.me() {
                    return; // All the way round.
                }
                self.follow(leader, ctx);
                if hops < ctx.topology().n() {
                    self.announce(leader, hops + 1, ctx);
                }
            }
            Message::Ack { number } => self.hops.acknowledged(number, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Self>) {
        let within = ctx.config().skip_within.expect("timers are armed to skip the dead");
        match timer {
            Timer::Hop { number } => match self.hops.overdue(number) {
                // It died elected; its lap ends where it was.
                (dead, Message::Elected { leader, .. }) if leader == dead => self.stand(ctx),
                (dead, message) => self.hops.skip(number, dead, message, within, ctx),
            },
            Timer::Patience => self.stand(ctx),
        }
    }

    fn validate(config: &Config, _topology: &Topology) -> Result<(), String> {
        validate(config.skip_within)
    }

    fn winner(config: &Config) -> Winner {
        config.pick.winner()
    }
}

impl ChangRoberts {
    fn on_candidacy(&mut self, uid: u64, hops: u32, ctx: &mut Ctx<'_, Self>) {
        let pick = ctx.config().pick;
        match pick.rank(uid).cmp(&pick.rank(ctx.uid())) {
            Ordering::Greater => {
                self.participate(ctx);
                // After as many hops as there are processes it would be home, had it a home.
                if hops < ctx.topology().n() {
                    self.pass_candidacy(uid, hops + 1, ctx);
                }
            }
            Ordering::Equal => {
                self.follow(ctx.me(), ctx);
                self.announce(ctx.me(), 1, ctx);
            }
            // A smaller candidacy goes no further; ours goes out in its stead, once.
            Ordering::Less => match ctx.config().variant {
                Variant::Canonical if self.participant => (),
                Variant::Canonical | Variant::Substitute => self.stand(ctx),
                Variant::DropOnly => (),
            },
        }
    }

    fn stand(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.participate(ctx);
        // Alone on the ring it reaches its owner at once.
        self.pass_candidacy(ctx.uid(), 1, ctx);
    }

    fn participate(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.participant = true;
        if let Some(within) = ctx.config().skip_within {
            ctx.arm(Timer::Patience, patience(within, ctx.topology().n()));
        }
    }

    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.participant, self.leader) = (false, Some(leader));
        if ctx.config().skip_within.is_some() {
            ctx.disarm(Timer::Patience);
        }
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }

    fn pass_candidacy(&mut self, uid: u64, hops: u32, ctx: &mut Ctx<'_, Self>) {
        let message = |number| Message::Election { uid, hops, number };
        self.hops.pass(ctx.config().skip_within, message, ctx);
    }

    fn announce(&mut self, leader: NodeId, hops: u32, ctx: &mut Ctx<'_, Self>) {
        let message = |number| Message::Elected { leader, hops, number };
        self.hops.pass(ctx.config().skip_within, message, ctx);
    }
}

fn acknowledge(number: u32, to: NodeId, ctx: &mut Ctx<'_, ChangRoberts>) {
    if number != UNNUMBERED {
        ctx.send(to, Message::Ack { number });
    }
}
