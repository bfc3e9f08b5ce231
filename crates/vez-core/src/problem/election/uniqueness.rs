//! Never two leaders at once, and never two in one term (LE2).
//!
//! With terms the rule is absolute: one leader a term, for all time. Without terms two processes
//! may not consider themselves leader at the same moment if both were there when the first was
//! elected. A process that was down then and takes over on its return has not split anyone's
//! brain; it has been unstable, which is judged on its own.

use std::collections::BTreeMap;

use super::{Court, NodeId, NodeSet, Promise, Term};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Uniqueness {
    by_term: BTreeMap<Term, NodeId>,
    /// Who considers itself leader without a term.
    reigns: Vec<Reign>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reign {
    node: NodeId,
    /// Who was down at some moment of it.
    absent: NodeSet,
}

impl Uniqueness {
    pub(super) fn on_declared(
        &mut self,
        node: NodeId,
        term: Term,
        down: &NodeSet,
        court: &mut Court<'_>,
    ) {
        let who = court.name(node);
        if term != 0 {
            let first = *self.by_term.entry(term).or_insert(node);
            if first != node {
                let first = court.name(first);
                let detail = format!("{who} leads term {term}, which {first} was elected to lead");
                court.breach(Promise::Uniqueness, detail);
            }
            return;
        }
        let rival = |reign: &&Reign| reign.node != node && !reign.absent.contains(&node);
        if let Some(reign) = self.reigns.iter().find(rival) {
            let other = court.name(reign.node);
            let detail =
                format!("{who} declared itself leader while {other} considers itself leader");
            court.breach(Promise::Uniqueness, detail);
        }
        self.on_stepped_down(node);
        self.reigns.push(Reign { node, absent: down.clone() });
    }

    pub(super) fn on_stepped_down(&mut self, node: NodeId) {
        self.reigns.retain(|reign| reign.node != node);
    }

    pub(super) fn on_crash(&mut self, node: NodeId) {
        self.on_stepped_down(node);
        for reign in &mut self.reigns {
            reign.absent.insert(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact, Fact::*, broken, names};
    use crate::Promise;

    fn breaks(history: &[Fact]) -> bool {
        names(&broken(history)).contains(&Promise::Uniqueness)
    }

    #[test]
    fn one_after_the_other_keeps_it() {
        assert!(!breaks(&[Follows(2, 2), Crashes(2), Follows(1, 1)]));
        assert!(!breaks(&[Follows(1, 1), Follows(1, 2), Follows(2, 2)]));
        assert!(!breaks(&[Follows(1, 1), Gives(1), Follows(2, 2)]));
    }

    #[test]
    fn two_who_both_consider_themselves_leader_break_it() {
        let breaches = broken(&[Follows(1, 1), Follows(2, 2), Follows(1, 2), Follows(0, 2)]);
        assert!(names(&breaches).contains(&Promise::Uniqueness));
        assert_eq!(
            breaches[0].detail,
            "P3 declared itself leader while P2 considers itself leader"
        );
    }

    #[test]
    fn a_returning_process_takes_over_without_splitting() {
        assert!(!breaks(&[Crashes(2), Follows(1, 1), Restarts(2), Follows(2, 2), Follows(1, 2)]));
        assert!(!breaks(&[Follows(1, 1), Crashes(2), Restarts(2), Follows(2, 2), Follows(1, 2)]));
    }

    #[test]
    fn a_term_has_one_leader_for_all_time() {
        assert!(!breaks(&[FollowsIn(1, 1, 1), FollowsIn(2, 2, 2)]));
        assert!(!breaks(&[FollowsIn(1, 1, 1), FollowsIn(1, 1, 1)]));
        assert!(breaks(&[FollowsIn(1, 1, 1), Crashes(1), FollowsIn(2, 2, 1)]));
    }
}
