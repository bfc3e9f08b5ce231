//! What is made of a run when it is over.

use vez_core::problem::Court;
use vez_core::{Ending, NodeId, Problem, Protocol};

use super::World;
use crate::{Observer, Report, Verdict};

impl<P: Protocol, O: Observer<P>> World<'_, P, O> {
    /// What a restless algorithm does after the last wish is met is not part of the run.
    pub(super) fn nothing_left_after(&self, node: NodeId) -> bool {
        let planned = self.happened < self.agenda.len() || self.users.next_time().is_some();
        !planned && !self.users.wants_more(node) && self.spec.is_settled()
    }

    pub(super) fn finish(mut self, ending: Ending) -> (Report, O) {
        self.now = self.last;
        let court = &mut Court { topology: self.topology, breaches: &mut self.breaches };
        self.spec.at_rest(ending, court);
        self.note_breaches();
        self.messages.total = self.sent();
        for (kind, count) in self.by_kind {
            self.messages.add(kind, count);
        }
        let report = Report {
            ending,
            time: self.last,
            steps: self.steps,
            rounds: self.rounds,
            messages: self.messages,
            promises: Verdict::of::<P>(&self.spec, &self.broken),
            account: self.tally.into(),
            unexpected: self.unexpected,
            unexpected_first: self.unexpected_first,
            queue_bytes_max: self.flights.bytes() + self.timers.bytes(),
        };
        (report, self.observer)
    }
}
