//! While one waits, others enter only so often (ME4). Always measured; a promise where the
//! algorithm states a bound.

use std::collections::BTreeMap;

use super::{Court, NodeId, Promise};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundedWait {
    bound: Option<u64>,
    /// Entries so far, by anyone.
    entries: u64,
    /// For each who waits, how many entries there had been when it asked.
    asked_at: BTreeMap<NodeId, u64>,
    /// The most entries of others that anyone has had to wait for.
    worst: u64,
}

impl BoundedWait {
    pub(super) fn new(bound: Option<u64>) -> Self {
        Self { bound, entries: 0, asked_at: BTreeMap::new(), worst: 0 }
    }

    pub(super) fn on_asked(&mut self, node: NodeId) {
        self.asked_at.insert(node, self.entries);
    }

    pub(super) fn on_gone(&mut self, node: NodeId) {
        self.asked_at.remove(&node);
    }

    pub(super) fn on_entered(&mut self, node: NodeId, court: &mut Court<'_>) {
        let asked_at = self.asked_at.remove(&node).unwrap_or(self.entries);
        let waited = self.entries - asked_at;
        self.judge(node, waited, "entered after", court);
        self.worst = self.worst.max(waited);
        self.entries += 1;
    }

    pub(super) fn at_rest(&self, court: &mut Court<'_>) {
        for (&node, &asked_at) in &self.asked_at {
            self.judge(node, self.entries - asked_at, "still waits after", court);
        }
    }

    fn judge(&self, node: NodeId, waited: u64, how: &str, court: &mut Court<'_>) {
        if let Some(bound) = self.bound.filter(|&bound| bound < waited) {
            let who = court.name(node);
            let detail =
                format!("{who} {how} {waited} entries of others; at most {bound} promised");
            court.breach(Promise::BoundedWait, detail);
        }
    }

    pub(super) fn worst(&self) -> u64 {
        let still = self.asked_at.values().map(|&asked_at| self.entries - asked_at).max();
        self.worst.max(still.unwrap_or(0))
    }

    pub(super) fn remark(&self) -> String {
        let worst = self.worst();
        let bound = self.bound.map(|bound| format!(", {bound} promised")).unwrap_or_default();
        format!("at most {worst} × another entered while one waited{bound}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact, Fact::*, judged, names};
    use crate::{Ending, Promise};

    fn breaks(bound: u64, history: &[Fact]) -> bool {
        names(&judged(history, Ending::Quiescent, Some(bound), false))
            .contains(&Promise::BoundedWait)
    }

    #[test]
    fn overtaken_once_keeps_a_bound_of_one() {
        let history = [Asks(0), Asks(1), Enters(1), Leaves(1), Enters(0), Leaves(0)];
        assert!(!breaks(1, &history));
        assert!(breaks(0, &history));
    }

    #[test]
    fn entries_before_the_request_do_not_count() {
        assert!(!breaks(0, &[Asks(1), Enters(1), Leaves(1), Asks(0), Enters(0), Leaves(0)]));
    }

    #[test]
    fn one_who_never_enters_has_waited_too() {
        assert!(breaks(
            1,
            &[Asks(0), Asks(1), Enters(1), Leaves(1), Asks(2), Enters(2), Leaves(2)]
        ));
    }

    #[test]
    fn who_withdraws_or_crashes_waits_no_longer() {
        assert!(!breaks(0, &[Asks(0), Asks(1), Withdraws(0), Enters(1), Leaves(1)]));
        assert!(!breaks(0, &[Asks(0), Asks(1), Crashes(0), Enters(1), Leaves(1)]));
    }
}
