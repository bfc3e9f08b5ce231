//! What keeps an election by majority steady: nobody starts a term that nobody would vote in, and a
//! leader without a majority behind it steps down.

use vez_core::{Ctx, NodeId, Term};

use super::{Message, Role, Timer, WeightedMajority};

impl WeightedMajority {
    /// The leader has been silent for too long, or there is none.
    pub(super) fn stand(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.follow(None, ctx);
        let term = self.ballot.term + 1;
        if ctx.config().pre_vote {
            ctx.broadcast(&Message::PreVoteReq { term });
            return self.seek(Role::PreCandidate, ctx);
        }
        self.campaign(ctx);
    }

    pub(super) fn on_pre_vote_req(&mut self, from: NodeId, term: Term, ctx: &mut Ctx<'_, Self>) {
        if term <= self.ballot.term {
            ctx.send(from, Message::Refuse { term: self.ballot.term });
        } else if !self.is_led() {
            ctx.send(from, Message::PreVote { term });
        }
    }

    pub(super) fn on_pre_vote(&mut self, from: NodeId, term: Term, ctx: &mut Ctx<'_, Self>) {
        if term == self.ballot.term + 1 {
            self.count(from, Role::PreCandidate, ctx);
        }
    }

    pub(super) fn step_down_if_deserted(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !self.has_majority(ctx) {
            return self.follow(None, ctx);
        }
        self.seek(Role::Leader, ctx);
        ctx.arm(Timer::Quorum, ctx.config().election_after);
    }

    pub(super) fn has_majority(&self, ctx: &Ctx<'_, Self>) -> bool {
        let weight = |&node: &NodeId| u64::from(ctx.topology().weight(node));
        ctx.topology().weight_total() < 2 * self.backers.iter().map(weight).sum::<u64>()
    }

    /// Whether it leads, or hears one who does.
    pub(in crate::election) fn is_led(&self) -> bool {
        self.leader.is_some()
    }

    pub(in crate::election) fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// Gives the leader up, for one that asks around before it stands.
    pub(in crate::election) fn miss_leader(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.follow(None, ctx);
    }
}
