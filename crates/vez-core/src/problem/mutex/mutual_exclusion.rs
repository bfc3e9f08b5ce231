//! At most one process is inside at any moment (ME1).

use super::{Court, Mutex, NodeId, Promise, User};

pub(super) fn on_entered(mutex: &Mutex, node: NodeId, court: &mut Court<'_>) {
    let who = court.name(node);
    if let Some(&other) = mutex.inside.iter().find(|&&inside| inside != node) {
        let other = court.name(other);
        let detail = format!("{who} entered while {other} was inside");
        court.breach(Promise::MutualExclusion, detail);
    }
    if mutex.users[node.index()] != User::Waiting {
        let detail = format!("{who} was let in without waiting for it");
        court.breach(Promise::MutualExclusion, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, broken, names};
    use crate::Promise;

    #[test]
    fn one_after_the_other_keeps_it() {
        assert!(broken(&[Asks(0), Asks(1), Enters(0), Leaves(0), Enters(1), Leaves(1)]).is_empty());
    }

    #[test]
    fn who_crashed_or_was_expelled_is_no_longer_inside() {
        let crashed = [Asks(0), Asks(1), Enters(0), Crashes(0), Enters(1), Leaves(1)];
        assert!(broken(&crashed).is_empty());
        let expelled = [Asks(0), Asks(1), Enters(0), Expelled(0), Enters(1), Leaves(1)];
        assert!(broken(&expelled).is_empty());
    }

    #[test]
    fn two_inside_break_it() {
        let breaches = broken(&[Asks(0), Asks(1), Enters(0), Enters(1), Leaves(0), Leaves(1)]);
        assert_eq!(names(&breaches), [Promise::MutualExclusion]);
        assert_eq!(breaches[0].detail, "P2 entered while P1 was inside");
    }

    #[test]
    fn entering_unasked_breaks_it() {
        assert_eq!(names(&broken(&[Enters(0), Leaves(0)])), [Promise::MutualExclusion]);
    }
}
