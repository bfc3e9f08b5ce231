//! Whom a process follows, and what that takes where processes move and messages are lost: but for
//! the notice to its user, nothing here happens unless `heartbeat_every` is set.

use vez_core::problem::ElectionNotice;
use vez_core::{Ctx, NodeId};

use super::{Champion, Index, Message, Timer, Wireless};

impl Wireless {
    /// Watches over an election: who is awaited is asked, again and again, whether it is there.
    pub(super) fn watch(ctx: &mut Ctx<'_, Self>) {
        if ctx.config().is_mobile() {
            ctx.disarm(Timer::Heartbeat);
            ctx.disarm(Timer::Lost);
            ctx.arm(Timer::Probe, ctx.config().probe_every);
        }
    }

    pub(super) fn follow(&mut self, index: Index, best: Champion, ctx: &mut Ctx<'_, Self>) {
        self.leader = Some((index, best));
        ctx.notify(ElectionNotice::Leader { id: best.node, term: 0 });
        self.await_leader(ctx);
    }

    /// After an election: leads, or waits for the leader's heartbeats.
    pub(super) fn await_leader(&mut self, ctx: &mut Ctx<'_, Self>) {
        let config = ctx.config();
        if !config.is_mobile() {
            return;
        }
        ctx.disarm(Timer::Probe);
        match self.leader {
            Some((_, leader)) if leader.node == ctx.me() => {
                ctx.disarm(Timer::Lost);
                self.beat(ctx);
            }
            // Whoever chose it had lost sight of us.
            Some((_, leader)) if leader < Champion::of(ctx.me(), ctx.topology()) => {
                self.initiate(ctx);
            }
            _ => {
                ctx.disarm(Timer::Heartbeat);
                ctx.arm_within(Timer::Lost, config.lost_after..=config.lost_after * 2);
            }
        }
    }

    pub(super) fn probe(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (index, Some(part)) = (self.index, &mut self.part) else { return };
        let patience = ctx.config().probes_max;
        part.waiting.retain(|_, unanswered| *unanswered < patience);
        if part.reported && part.waiting.is_empty() {
            part.parent = None; // It has gone: what is below us is all there is.
        }
        for (&peer, unanswered) in &mut part.waiting {
            *unanswered += 1;
            ctx.send(peer, Message::Probe { index });
        }
        ctx.arm(Timer::Probe, ctx.config().probe_every);
        self.report_if_complete(ctx);
    }

    /// A probe is answered with whatever the prober may have missed.
    pub(super) fn on_probe(&mut self, from: NodeId, index: Index, ctx: &mut Ctx<'_, Self>) {
        if self.index < index {
            return self.join(index, Some(from), ctx);
        }
        let answer = match (&self.part, self.leader) {
            (Some(_), _) if index < self.index => Message::Election { index: self.index },
            (Some(part), _) if part.parent == Some(from) && part.reported => {
                Message::Ack { index, best: Some(part.best) }
            }
            (Some(part), _) if part.parent == Some(from) || part.children.contains(&from) => {
                Message::Reply { index }
            }
            (None, Some((index, best))) => Message::Leader { index, best },
            _ => Message::Ack { index, best: None },
        };
        ctx.send(from, answer);
    }

    pub(super) fn on_reply(&mut self, from: NodeId, index: Index) {
        let part = self.part.as_mut().filter(|_| index == self.index);
        if let Some(unanswered) = part.and_then(|part| part.waiting.get_mut(&from)) {
            *unanswered = 0;
        }
    }

    pub(super) fn beat(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(every) = ctx.config().heartbeat_every else { return };
        self.beats += 1;
        let (leader, beat) = (Champion::of(ctx.me(), ctx.topology()), self.beats);
        for peer in ctx.neighbors() {
            ctx.send(peer, Message::Heartbeat { leader, beat });
        }
        ctx.arm(Timer::Heartbeat, every);
    }

    /// Passes on each heartbeat of its leader once. One of a better leader wins it over: that is
    /// how two parts of the network that meet come to agree. Only a live leader's count grows, so
    /// nobody is won over by a dead one.
    pub(super) fn on_heartbeat(
        &mut self,
        from: NodeId,
        leader: Champion,
        beat: u64,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let known = self.heard.entry(leader.node).or_default();
        if leader.node == ctx.me() || beat <= *known || self.part.is_some() {
            return;
        }
        *known = beat;
        let mine = self.leader.map(|(_, mine)| mine);
        if mine.is_some_and(|mine| leader < mine) {
            return;
        }
        for peer in ctx.neighbors().filter(|&peer| peer != from) {
            ctx.send(peer, Message::Heartbeat { leader, beat });
        }
        if mine == Some(leader) {
            self.await_leader(ctx);
        } else {
            self.follow(self.index, leader, ctx);
        }
    }
}
