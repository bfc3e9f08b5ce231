//! Who asks for an election gets one: some live process comes to consider itself leader (LE1).

use super::{Court, Election, NodeId, Promise};
use crate::problem::some_names;

pub(super) fn at_rest(election: &Election, court: &mut Court<'_>) {
    let owed = |&(_, seat): &(NodeId, super::Seat)| seat.owed;
    let waiting: Vec<NodeId> = election.views().filter(owed).map(|(node, _)| node).collect();
    if !waiting.is_empty() && election.leaders().next().is_none() {
        let who = some_names(court.topology, &waiting);
        let detail = format!("an election was asked for by {who} and nobody came to lead");
        court.breach(Promise::Termination, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, broken, names};
    use crate::Promise;

    #[test]
    fn a_leader_keeps_it() {
        assert!(broken(&[Starts(0), Follows(2, 2), Follows(0, 2), Follows(1, 2)]).is_empty());
    }

    #[test]
    fn nobody_asked_nobody_owed() {
        assert!(broken(&[]).is_empty());
        assert!(broken(&[Starts(0), Crashes(0)]).is_empty());
    }

    #[test]
    fn an_election_that_stalls_breaks_it() {
        assert_eq!(names(&broken(&[Starts(0)])), [Promise::Termination]);
        let again = [Follows(0, 2), Follows(1, 2), Follows(2, 2), Crashes(2), Suspects(0, 2)];
        assert!(names(&broken(&again)).contains(&Promise::Termination));
    }
}
