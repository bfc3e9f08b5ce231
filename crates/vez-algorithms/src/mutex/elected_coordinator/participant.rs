//! What everyone does, coordinator or not: ask, enter, leave, listen for heartbeats, take part in
//! elections and follow whoever wins.

use vez_core::problem::{ElectionNotice, ElectionRequest, MutexNotice};
use vez_core::{Ctx, Election, Fence, NodeId, Protocol, Term};

use super::office::leader_of;
use super::{ElectedCoordinator, Message, State, Timer};
use crate::detect::Watch;

impl<E: Protocol<Problem = Election>> ElectedCoordinator<E> {
    pub(super) fn request(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Waiting;
        self.clock += 1;
        self.request = self.clock;
        match self.coordinator {
            Some(coordinator) => ctx.send(coordinator, Message::Request { request: self.request }),
            // One was elected and will ask how things stand.
            None if self.watch.trusted().next().is_some() => (),
            None => self.elect(ctx, |election, ctx| {
                election.on_request(ElectionRequest::Start, ctx);
            }),
        }
    }

    /// Without a coordinator nobody need be told: the next one asks.
    pub(super) fn leave(&mut self, fence: Option<Fence>, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Idle;
        if let Some(coordinator) = self.coordinator {
            ctx.send(coordinator, Message::Release { request: self.request, fence });
        }
    }

    pub(super) fn enter_if_wanted(
        &mut self,
        from: NodeId,
        request: u64,
        fence: Fence,
        ctx: &mut Ctx<'_, Self>,
    ) {
        if fence.term < self.term {
            return; // Void: a newer coordinator was told that we are not inside.
        }
        if self.state == State::Waiting && request == self.request {
            self.state = State::Inside { fence };
            ctx.notify(MutexNotice::Entered { fence: Some(fence) });
        } else {
            ctx.send(from, Message::Release { request, fence: Some(fence) });
        }
    }

    /// Upon `leader` asking how things stand.
    pub(super) fn follow(&mut self, leader: NodeId, term: Term, ctx: &mut Ctx<'_, Self>) {
        if term < self.term {
            return ctx.send(leader, Message::Refuse { term: self.term });
        }
        self.resign(ctx);
        self.term = term;
        self.coordinator = Some(leader);
        self.watch = Watch::new([leader], &ctx.config().detector);
        ctx.send(leader, Message::State { term, request: self.request, state: self.state });
    }

    pub(super) fn on_heartbeat(
        &mut self,
        from: NodeId,
        term: Term,
        clock: u64,
        ctx: &mut Ctx<'_, Self>,
    ) {
        self.clock = self.clock.max(clock);
        let trusted_again = self.watch.on_heartbeat(from);
        if self.office.is_some() && trusted_again {
            // What it wanted was forgotten when it was suspected.
            ctx.send(from, Message::Recover { term: self.term });
        }
        if leader_of(term, ctx) == from {
            let known = term == self.term && self.coordinator == Some(from);
            if term < self.term {
                ctx.send(from, Message::Refuse { term: self.term });
            } else if !known {
                ctx.send(from, Message::Hello);
            }
        }
    }

    pub(super) fn on_tick(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.arm(Timer::Tick, ctx.config().detector.tick);
        let tick = self.watch.on_tick(&ctx.config().detector);
        if tick.beat {
            let heartbeat = Message::Heartbeat { term: self.term, clock: self.clock };
            match self.coordinator {
                Some(me) if me == ctx.me() => ctx.broadcast(&heartbeat),
                Some(coordinator) => ctx.send(coordinator, heartbeat),
                None => (),
            }
        }
        for suspect in tick.suspected {
            if self.office.is_some() {
                self.give_up_on(suspect, ctx);
            } else {
                self.coordinator = None;
                self.watch = Watch::new([], &ctx.config().detector);
                self.elect(ctx, |election, ctx| {
                    election.on_request(ElectionRequest::Start, ctx);
                });
            }
        }
    }

    /// Takes a step of the election, and minds who leads now.
    pub(super) fn elect(
        &mut self,
        ctx: &mut Ctx<'_, Self>,
        step: impl FnOnce(&mut E, &mut Ctx<'_, E>),
    ) {
        let ((), notices) = embed(ctx, |ctx| step(&mut self.election, ctx));
        self.on_notices(notices, ctx);
    }

    pub(super) fn on_notices(&mut self, notices: Vec<ElectionNotice>, ctx: &mut Ctx<'_, Self>) {
        for notice in notices {
            match notice {
                ElectionNotice::Leader { id, .. } if id == ctx.me() => {
                    if self.office.is_none() {
                        self.lead(ctx);
                    }
                }
                ElectionNotice::Leader { id, .. } => {
                    self.resign(ctx);
                    if self.coordinator != Some(id) {
                        self.coordinator = None;
                        self.watch = Watch::new([id], &ctx.config().detector);
                    }
                }
                ElectionNotice::NoLeader { .. } => {
                    self.resign(ctx);
                    self.coordinator = None;
                }
                // This protocol has a watch of its own.
                ElectionNotice::Suspects { .. } | ElectionNotice::Trusts { .. } => (),
            }
        }
    }
}

/// Runs a step of the election inside.
pub(super) fn embed<E: Protocol<Problem = Election>, R>(
    ctx: &mut Ctx<'_, ElectedCoordinator<E>>,
    step: impl FnOnce(&mut Ctx<'_, E>) -> R,
) -> (R, Vec<ElectionNotice>) {
    ctx.embed(&ctx.config().election, Message::Election, Timer::Election, step)
}
