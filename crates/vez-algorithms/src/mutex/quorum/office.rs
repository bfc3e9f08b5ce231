//! What a coordinator of a quorum does.

use serde::Serialize;
use vez_core::{Ctx, NodeId};

use super::{Message, Order, Quorum};
use crate::mutex::desk::{Claim, Desk, Grant};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Office {
    pub(super) desk: Desk,
    /// Whether the holder was asked to yield.
    inquired: bool,
}

impl Office {
    /// Begins with an empty desk, and so forgets what was promised before a crash; unless it is to
    /// remember. Then it says again what may not have left: its last permission.
    pub(super) fn open(saved: Option<Desk>, ctx: &mut Ctx<'_, Quorum>) -> Self {
        let desk = saved.filter(|_| ctx.config().durable).unwrap_or_default();
        let mut this = Self { desk, inquired: false };
        if let Some(grant) = this.desk.holder() {
            permit(grant, ctx);
            this.inquire_if_older(ctx);
        }
        this
    }

    pub(super) fn serve(&mut self, from: NodeId, message: &Message, ctx: &mut Ctx<'_, Quorum>) {
        let claim = |request| Claim { node: from, request };
        match *message {
            Message::Request { request } => match ctx.config().order {
                Order::Arrival => self.desk.enqueue(claim(request)),
                Order::Timestamp => self.desk.enqueue_by_age(claim(request)),
            },
            Message::Release { request, fence } => {
                self.desk.release_any(claim(request), fence);
            }
            Message::Relinquish { request } => self.desk.relinquish(claim(request)),
            Message::Ok { .. } | Message::Inquire { .. } => unreachable!("these are not for us"),
        }
        match self.desk.grant() {
            Some(grant) => {
                self.inquired = false;
                permit(grant, ctx);
            }
            None => self.inquire_if_older(ctx),
        }
    }

    /// In the order of age, a younger holder is asked to yield to whoever is next; once.
    fn inquire_if_older(&mut self, ctx: &mut Ctx<'_, Quorum>) {
        let (Some(first), Some(grant)) = (self.desk.first(), self.desk.holder()) else { return };
        let younger = first.age() < grant.claim.age();
        if ctx.config().order == Order::Timestamp && younger && !self.inquired {
            self.inquired = true;
            ctx.send(grant.claim.node, Message::Inquire { request: grant.claim.request });
        }
    }
}

fn permit(grant: Grant, ctx: &mut Ctx<'_, Quorum>) {
    let request = grant.claim.request;
    ctx.send(grant.claim.node, Message::Ok { request, fence: grant.fence });
}
