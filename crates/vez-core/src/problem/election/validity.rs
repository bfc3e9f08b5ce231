//! The one everybody follows in the end is the one the rules say: the extremum of the live (LE5).

use super::{Court, Election, NodeId, Promise, Winner};

pub(super) fn at_rest(election: &Election, court: &mut Court<'_>) {
    let mut leaders = election.leaders();
    // Several leaders, or none, break other promises.
    let (Some(leader), None) = (leaders.next(), leaders.next()) else { return };
    let topology = court.topology;
    let live = || election.views().map(|(node, _)| node);
    let (due, what): (Option<NodeId>, _) = match election.winner {
        Winner::Largest => (live().max_by_key(|&node| topology.rank(node)), "largest"),
        Winner::Smallest => (live().min_by_key(|&node| topology.uid(node)), "smallest"),
        Winner::Any => return,
    };
    if let Some(due) = due.filter(|&due| due != leader) {
        let (leader, due) = (court.name(leader), court.name(due));
        let detail = format!("{leader} leads, but {due} is the {what} that is up");
        court.breach(Promise::Validity, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, judged, names};
    use crate::{Promise, Winner};

    #[test]
    fn the_extremum_keeps_it() {
        assert!(judged(&[Follows(2, 2), Follows(0, 2), Follows(1, 2)], Winner::Largest).is_empty());
        assert!(
            judged(&[Follows(0, 0), Follows(1, 0), Follows(2, 0)], Winner::Smallest).is_empty()
        );
        let two_left = [Crashes(2), Follows(1, 1), Follows(0, 1)];
        assert!(judged(&two_left, Winner::Largest).is_empty());
    }

    #[test]
    fn anyone_else_breaks_it() {
        let middle = [Follows(1, 1), Follows(0, 1), Follows(2, 1)];
        assert_eq!(names(&judged(&middle, Winner::Largest)), [Promise::Validity]);
        assert_eq!(names(&judged(&middle, Winner::Smallest)), [Promise::Validity]);
        assert!(judged(&middle, Winner::Any).is_empty());
    }
}
