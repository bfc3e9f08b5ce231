//! Chang and Roberts, *An improved algorithm for decentralized extrema-finding in circular
//! configurations of processes*, CACM 22(5), 1979.
//!
//! Candidacies travel one way round the ring and are swallowed by any process with a larger
//! identity. Only the largest comes home; its owner leads and says so. From 2n − 1 to n(n + 1)/2
//! candidacies if all start, n·Hₙ on average; n announcements.
//!
//! Why it is safe: a candidacy that comes home has passed everyone, so everyone is smaller.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ChangRoberts {
    /// Whether our candidacy, or a larger one, has gone out since the last election ended.
    participant: bool,
    leader: Option<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    Election { uid: u64 },
    Elected { leader: NodeId },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub variant: Variant,
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
    type Timer = Never;
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
        Self { participant: false, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if !self.participant {
            self.stand(ctx);
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election { uid } if uid > ctx.uid() => {
                self.participant = true;
                ctx.send(ctx.next(), Message::Election { uid });
            }
            Message::Election { uid } if uid == ctx.uid() => {
                self.follow(ctx.me(), ctx);
                ctx.send(ctx.next(), Message::Elected { leader: ctx.me() });
            }
            // A smaller candidacy goes no further; ours goes out in its stead, once.
            Message::Election { .. } => match ctx.config().variant {
                Variant::Canonical if self.participant => (),
                Variant::Canonical | Variant::Substitute => self.stand(ctx),
                Variant::DropOnly => (),
            },
            Message::Elected { leader } if leader == ctx.me() => (), // All the way round.
            Message::Elected { leader } => {
                self.follow(leader, ctx);
                ctx.send(ctx.next(), Message::Elected { leader });
            }
        }
    }
}

impl ChangRoberts {
    fn stand(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.participant = true;
        // Alone on the ring it reaches its owner at once.
        ctx.send(ctx.next(), Message::Election { uid: ctx.uid() });
    }

    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.participant, self.leader) = (false, Some(leader));
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
