//! What the coordinator does: first find out how things stand, then let in one at a time.

use serde::Serialize;
use vez_core::{Ctx, Election, NodeId, NodeSet, Protocol, Term};

use super::{ElectedCoordinator, Message, State, Timer};
use crate::detect::Watch;
use crate::mutex::desk::{Claim, Desk, Grant};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Office {
    desk: Desk,
    /// Who has not yet said how things stand. Until all have, nobody is let in.
    unanswered: NodeSet,
}

impl Office {
    /// How things stand with one participant. It may have crashed and come back since it last
    /// spoke: what it does not mention is over.
    fn note(&mut self, claim: Claim, state: State) {
        let current = u64::from(state != State::Idle);
        self.desk.forget(claim.node, claim.request.saturating_sub(current));
        match state {
            State::Idle => (),
            State::Waiting => self.enqueue(claim),
            State::Inside { fence } => self.desk.restore(Grant { claim, fence }),
        }
    }

    /// In the order of arrival; while the old queue is being pieced together, by age.
    fn enqueue(&mut self, claim: Claim) {
        if self.unanswered.is_empty() {
            self.desk.enqueue(claim);
        } else {
            self.desk.enqueue_by_age(claim);
        }
    }
}

/// Every process has terms of its own, so that no two coordinators share one.
fn term_after(term: Term, me: NodeId, n: u32) -> Term {
    let n = u64::from(n);
    (term / n + 1) * n + u64::from(me.0)
}

/// Whose term it is.
pub(super) fn leader_of<P: Protocol>(term: Term, ctx: &Ctx<'_, P>) -> NodeId {
    NodeId((term % u64::from(ctx.topology().n())) as u32)
}

impl<E: Protocol<Problem = Election>> ElectedCoordinator<E> {
    /// Begins a term.
    pub(super) fn lead(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.term = term_after(self.term, ctx.me(), ctx.topology().n());
        self.coordinator = Some(ctx.me());
        self.watch = Watch::new(ctx.peers(), &ctx.config().detector);
        let unanswered = ctx.topology().ids().collect();
        self.office = Some(Office { desk: Desk::of(self.term), unanswered });
        ctx.arm(Timer::Recover, ctx.config().recover_within);
        ctx.broadcast(&Message::Recover { term: self.term });
        let Self { term, request, state, .. } = *self;
        ctx.send(ctx.me(), Message::State { term, request, state });
    }

    pub(super) fn resign(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.office = None;
        ctx.disarm(Timer::Recover);
    }

    pub(super) fn on_office_message(
        &mut self,
        from: NodeId,
        message: &Message<E::Message>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        // Whoever takes us for the coordinator will be asked by the one who is.
        let Some(office) = &mut self.office else { return };
        match *message {
            Message::Hello => ctx.send(from, Message::Recover { term: self.term }),
            Message::Refuse { term } => {
                if self.term < term {
                    self.term = term;
                    self.lead(ctx);
                }
            }
            Message::State { term, request, state } => {
                if term == self.term {
                    // Back from a crash it sends no heartbeats before it has been asked.
                    self.watch.on_heartbeat(from);
                    self.clock = self.clock.max(request);
                    office.note(Claim { node: from, request }, state);
                    office.unanswered.remove(&from);
                }
            }
            Message::Request { request } => {
                self.clock = self.clock.max(request);
                office.enqueue(Claim { node: from, request });
            }
            Message::Release { request, fence } => {
                office.desk.release(Claim { node: from, request }, fence);
            }
            _ => unreachable!("this is for participants"),
        }
        self.grant_if_free(ctx);
    }

    /// Upon having waited long enough for those who have not answered.
    pub(super) fn stop_asking(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.office.iter_mut().for_each(|office| office.unanswered.clear());
        self.grant_if_free(ctx);
    }

    /// A suspect may merely be slow, and inside: from now on only its fence, which is older than
    /// the next one, protects the resource.
    pub(super) fn give_up_on(&mut self, suspect: NodeId, ctx: &mut Ctx<'_, Self>) {
        self.office.iter_mut().for_each(|office| office.desk.forget(suspect, u64::MAX));
        self.grant_if_free(ctx);
    }

    fn grant_if_free(&mut self, ctx: &mut Ctx<'_, Self>) {
        let ready = self.office.as_mut().filter(|office| office.unanswered.is_empty());
        if let Some(Grant { claim, fence }) = ready.and_then(|office| office.desk.grant()) {
            ctx.send(claim.node, Message::Grant { request: claim.request, fence });
        }
    }
}
