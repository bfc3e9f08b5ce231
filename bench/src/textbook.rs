//! Chang–Roberts as the textbook has it, and nothing more: what the bare loops and the other
//! simulators run as well. The algorithm we ship can also mend a broken ring, and counts hops.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Promise, Protocol, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Textbook {
    participant: bool,
    leader: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Candidacy {
    Election { uid: u64 },
    Elected { leader: NodeId },
}

impl Protocol for Textbook {
    type Problem = Election;
    type Message = Candidacy;
    type Timer = Never;
    type Durable = ();
    type Config = ();

    const META: Meta = Meta {
        name: "textbook",
        title: "Chang–Roberts, as the textbook has it",
        source: "Chang & Roberts, CACM 22(5), 1979",
        layout: Layout::Ring,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: "",
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { participant: false, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        if !self.participant {
            self.stand(ctx);
        }
    }

    fn on_message(&mut self, _from: NodeId, message: Candidacy, ctx: &mut Ctx<'_, Self>) {
        match message {
            Candidacy::Election { uid } if uid > ctx.uid() => {
                self.participant = true;
                ctx.send(ctx.next(), Candidacy::Election { uid });
            }
            Candidacy::Election { uid } if uid == ctx.uid() => {
                self.follow(ctx.me(), ctx);
                ctx.send(ctx.next(), Candidacy::Elected { leader: ctx.me() });
            }
            Candidacy::Election { .. } if self.participant => (),
            Candidacy::Election { .. } => self.stand(ctx),
            Candidacy::Elected { leader } if leader == ctx.me() => (),
            Candidacy::Elected { leader } => {
                self.follow(leader, ctx);
                ctx.send(ctx.next(), Candidacy::Elected { leader });
            }
        }
    }
}

impl Textbook {
    fn stand(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.participant = true;
        ctx.send(ctx.next(), Candidacy::Election { uid: ctx.uid() });
    }

    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.participant, self.leader) = (false, Some(leader));
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
