//! What is made of a run when it is over.

use vez_core::problem::Court;
use vez_core::{Ending, NodeId, Problem, Promise, Protocol};

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
        let verdict = |&promise: &Promise| {
            let broken = self.broken.iter().find(|(_, breach)| breach.promise == promise);
            let detail = broken.map(|(_, breach)| breach.detail.clone());
            Verdict {
                promise,
                kept: broken.is_none(),
                claimed: P::META.promises.contains(&promise),
                broken_at: broken.map(|&(at, _)| at),
                detail: detail.or_else(|| self.spec.remark(promise)),
            }
        };
        // Where no fences are promised there are none to judge.
        let judged = |verdict: &Verdict| verdict.claimed || verdict.promise != Promise::Fencing;
        let report = Report {
            ending,
            time: self.last,
            steps: self.steps,
            rounds: self.rounds,
            messages: self.messages,
            promises: P::Problem::PROMISES.iter().map(verdict).filter(judged).collect(),
            account: self.tally.into(),
            unexpected: self.unexpected,
            unexpected_first: self.unexpected_first,
            queue_bytes_max: self.flights.bytes() + self.timers.bytes(),
        };
        (report, self.observer)
    }
}
