//! In the end every live process follows one and the same (LE3).

use super::{Court, Election, NodeId, Promise, Seat};
use crate::problem::some_names;

pub(super) fn at_rest(election: &Election, court: &mut Court<'_>) {
    // Where nobody leads there is nothing to agree on yet: that is termination's concern.
    let Some(leader) = election.leaders().next() else { return };
    let differs = |&(_, seat): &(NodeId, Seat)| seat.leader != Some(leader);
    let others: Vec<(NodeId, Seat)> = election.views().filter(differs).collect();
    let Some(&(first, seat)) = others.first() else { return };
    let (name, first) = (court.name(leader), court.name(first));
    let detail = match seat.leader {
        Some(other) => format!("{name} leads, but {first} follows {}", court.name(other)),
        None => {
            let nodes: Vec<NodeId> = others.iter().map(|&(node, _)| node).collect();
            let who = some_names(court.topology, &nodes);
            format!("{name} leads, but not everyone was told: {who}")
        }
    };
    court.breach(Promise::Agreement, detail);
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, broken, names};
    use crate::Promise;

    #[test]
    fn all_following_one_keeps_it() {
        assert!(broken(&[Follows(2, 2), Follows(0, 2), Follows(1, 2)]).is_empty());
        assert!(broken(&[Follows(2, 2), Follows(0, 2), Crashes(1)]).is_empty());
    }

    #[test]
    fn one_who_was_not_told_breaks_it() {
        let breaches = broken(&[Follows(2, 2), Follows(0, 2)]);
        assert_eq!(names(&breaches), [Promise::Agreement]);
        assert_eq!(breaches[0].detail, "P3 leads, but not everyone was told: P2");
    }

    #[test]
    fn one_who_follows_another_breaks_it() {
        let breaches = broken(&[Follows(2, 2), Follows(0, 2), Follows(1, 0)]);
        assert_eq!(breaches[0].detail, "P3 leads, but P2 follows P1");
    }
}
