//! Chang and Roberts' algorithm as other tools model it, for comparison with their counts.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Promise, Protocol, Time, Timing,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Ring {
    participant: bool,
    leader: Option<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Message {
    Election(u64),
    Elected(NodeId),
}

/// Each node starts at any moment before it has been drawn in. A user would ask all the same, and
/// be owed an answer, which makes for more states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Timer {
    Start,
}

impl Protocol for Ring {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = ();

    const META: Meta = Meta {
        name: "ring",
        title: "Chang–Roberts",
        source: "CACM 22(5), 1979",
        layout: Layout::Ring,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: Promise::STABLE_ELECTION,
        rules: "",
    };

    fn start(_saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        ctx.arm(Timer::Start, Time::from_millis(1));
        Self { participant: false, leader: None }
    }

    fn on_request(&mut self, _request: ElectionRequest, _ctx: &mut Ctx<'_, Self>) {
        unreachable!("nobody asks");
    }

    fn on_timer(&mut self, _timer: Timer, ctx: &mut Ctx<'_, Self>) {
        self.stand(ctx);
    }

    fn on_message(&mut self, _from: NodeId, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Election(uid) if uid > ctx.uid() => {
                self.participant = true;
                ctx.disarm(Timer::Start);
                ctx.send(ctx.next(), Message::Election(uid));
            }
            Message::Election(uid) if uid == ctx.uid() => {
                self.follow(ctx.me(), ctx);
                ctx.send(ctx.next(), Message::Elected(ctx.me()));
            }
            Message::Election(_) if self.participant => (),
            Message::Election(_) => self.stand(ctx),
            Message::Elected(leader) if leader == ctx.me() => (),
            Message::Elected(leader) => {
                self.follow(leader, ctx);
                ctx.send(ctx.next(), Message::Elected(leader));
            }
        }
    }
}

impl Ring {
    fn stand(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.participant = true;
        ctx.disarm(Timer::Start);
        ctx.send(ctx.next(), Message::Election(ctx.uid()));
    }

    fn follow(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        (self.participant, self.leader) = (false, Some(leader));
        ctx.notify(ElectionNotice::Leader { id: leader, term: 0 });
    }
}
