//! What a plan says of single messages, clocks and choices.

use vez_core::{Chance, NodeId, Protocol, Seeded, Time};

use super::World;
use crate::network::scale;
use crate::{Happening, LossCause, Observer};

impl<P: Protocol, O: Observer<P>> World<'_, P, O> {
    /// How many messages have been sent. Kept by kind only: adding up is rare, sending is not.
    pub(super) fn sent(&self) -> u64 {
        self.by_kind.iter().map(|&(_, count)| count).sum()
    }

    pub(super) fn send_as_planned(
        &mut self,
        key: u64,
        id: u64,
        message: &P::Message,
        delays: &[Time],
    ) {
        let Some((&first, again)) = delays.split_first() else {
            return self.lose(id, LossCause::Chance);
        };
        self.flights.push(self.now + first, key, id, message.clone());
        for &delay in again {
            self.seq += 1;
            let copy = self.seq;
            self.messages.duplicated += 1;
            self.show(|| Happening::Repeated { id, copy });
            self.flights.push(self.now + delay, key, copy, message.clone());
        }
    }

    /// How long the world takes for what this process's clock calls `span`.
    pub(super) fn on_own_clock(&self, node: NodeId, span: Time) -> Time {
        if let Some(&rate) = self.plan.clocks.get(&node) {
            return scale(span, 1.0 / rate);
        }
        if self.plan.drift == 0.0 {
            return span;
        }
        let unit = Seeded::stream(self.plan.seed, 4 + u64::from(node.0)).unit();
        scale(span, 1.0 / (1.0 + self.plan.drift * (2.0 * unit - 1.0)))
    }
}

/// Choices as the plan tells them, then as the seed draws them.
pub(super) struct Choices<'a> {
    pub(super) told: std::slice::Iter<'a, u32>,
    pub(super) drawn: Seeded,
}

impl Chance for Choices<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        match self.told.next() {
            Some(&choice) => choice.min(bound - 1),
            None => self.drawn.below(bound),
        }
    }
}
