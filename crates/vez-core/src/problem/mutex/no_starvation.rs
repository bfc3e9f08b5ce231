//! Every live process that waits enters in the end (ME3).

use super::{Court, Ending, Mutex, Promise};
use crate::problem::some_names;

pub(super) fn at_rest(mutex: &Mutex, ending: Ending, court: &mut Court<'_>) {
    let waiting = mutex.waiting();
    if waiting.is_empty() {
        return;
    }
    let who = some_names(court.topology, &waiting);
    let detail = match ending {
        Ending::Quiescent => format!("waiting for ever: {who}"),
        Ending::Deadline | Ending::Limit => {
            format!("still waiting when the run was cut off: {who}")
        }
    };
    court.breach(Promise::NoStarvation, detail);
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, broken, names};
    use crate::Promise;

    #[test]
    fn everyone_served_keeps_it() {
        assert!(broken(&[Asks(0), Asks(1), Enters(1), Leaves(1), Enters(0), Leaves(0)]).is_empty());
    }

    #[test]
    fn the_dead_are_owed_nothing() {
        assert!(broken(&[Asks(0), Crashes(0)]).is_empty());
        assert!(broken(&[Asks(0), Crashes(0), Restarts(0)]).is_empty());
    }

    #[test]
    fn one_left_waiting_breaks_it() {
        let breaches = broken(&[Asks(0), Asks(2), Enters(0), Leaves(0)]);
        assert!(names(&breaches).contains(&Promise::NoStarvation));
        assert_eq!(breaches.last().unwrap().detail, "waiting for ever: P3");
    }
}
