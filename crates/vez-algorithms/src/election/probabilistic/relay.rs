//! What those that passed the filter tell each other.

use vez_core::{Ctx, NodeId};

use super::{Message, Probabilistic, lot};

impl Probabilistic {
    pub(super) fn relay(&self, ctx: &mut Ctx<'_, Self>) {
        let (tag, best) = (self.tag, self.best(ctx));
        for &peer in self.passed.iter().flat_map(|passed| &passed.known) {
            ctx.send(peer, Message::Relay { tag, best });
        }
    }

    /// Hears of others that passed. A better best is told on, a few times.
    pub(super) fn learn(&mut self, others: [NodeId; 2], ctx: &mut Ctx<'_, Self>) {
        let (me, before) = (ctx.me(), self.best(ctx));
        let Some(passed) = &mut self.passed else { return };
        passed.known.extend(others.into_iter().filter(|&other| other != me));
        let left = passed.relays_left;
        if self.best(ctx) != before && 0 < left {
            self.passed.as_mut().expect("it passed").relays_left = left - 1;
            self.relay(ctx);
        }
    }

    /// The lowest lot it knows of, its own included.
    pub(super) fn best(&self, ctx: &Ctx<'_, Self>) -> NodeId {
        let known = self.passed.iter().flat_map(|passed| &passed.known).copied();
        known.chain([ctx.me()]).min_by_key(|&node| self.lot(node, ctx)).expect("at least itself")
    }

    pub(super) fn lot(&self, node: NodeId, ctx: &Ctx<'_, Self>) -> u64 {
        lot(ctx.topology().uid(node), self.tag)
    }
}
