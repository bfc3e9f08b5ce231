//! What a process is to those whose quorum it is in, in Maekawa's algorithm: it says yes to one
//! request at a time, and to the earliest it knows if it can get its yes back.
//!
//! **Invariant:** of the requests that wait, all but the earliest have been told to; if the
//! earliest is earlier than the one that has our yes, that one has been asked to give it back.

use std::collections::BTreeSet;
use std::mem;

use serde::Serialize;
use vez_core::{Ctx, Stamp};

use super::maekawa::{Maekawa, Message};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Arbiter {
    /// The request we said yes to.
    locked: Option<Stamp>,
    waiting: BTreeSet<Stamp>,
    /// Whether the one we said yes to has been asked to give it back.
    inquired: bool,
}

impl Arbiter {
    pub fn on_request(&mut self, request: Stamp, ctx: &mut Ctx<'_, Maekawa>) {
        let first = self.waiting.first().copied();
        self.waiting.insert(request);
        match self.locked {
            None => self.grant_first(ctx),
            Some(locked) if request < locked && first.is_none_or(|first| request < first) => {
                // Until now the first could hope to be next.
                if let Some(first) = first.filter(|&first| first < locked && ctx.config().repair) {
                    ctx.send(first.node, Message::Failed { request: first });
                }
                if !mem::replace(&mut self.inquired, true) {
                    ctx.send(locked.node, Message::Inquire { request: locked });
                }
            }
            Some(_) => ctx.send(request.node, Message::Failed { request }),
        }
    }

    pub fn on_relinquish(&mut self, request: Stamp, ctx: &mut Ctx<'_, Maekawa>) {
        if self.locked == Some(request) {
            self.waiting.insert(request);
            self.grant_first(ctx);
        }
    }

    pub fn on_release(&mut self, request: Stamp, ctx: &mut Ctx<'_, Maekawa>) {
        if self.locked == Some(request) {
            self.grant_first(ctx);
        } else {
            self.waiting.remove(&request);
        }
    }

    fn grant_first(&mut self, ctx: &mut Ctx<'_, Maekawa>) {
        (self.locked, self.inquired) = (self.waiting.pop_first(), false);
        if let Some(request) = self.locked {
            ctx.send(request.node, Message::Grant { request });
        }
    }
}
