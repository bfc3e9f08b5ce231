//! If someone waits and nobody stays inside for ever, someone enters (ME2).

use super::{Court, Ending, Mutex, Promise};
use crate::problem::some_names;

pub(super) fn at_rest(mutex: &Mutex, ending: Ending, court: &mut Court<'_>) {
    // A run that was cut off may have been about to let someone in.
    if ending != Ending::Quiescent || !mutex.inside.is_empty() {
        return;
    }
    let waiting = mutex.waiting();
    if !waiting.is_empty() {
        let who = some_names(court.topology, &waiting);
        let detail = format!("nobody is inside, nothing more can happen, and still waiting: {who}");
        court.breach(Promise::NoDeadlock, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact::*, broken, judged, names};
    use crate::{Ending, Promise};

    #[test]
    fn everyone_served_keeps_it() {
        assert!(broken(&[Asks(0), Enters(0), Leaves(0)]).is_empty());
        assert!(broken(&[Asks(0), Withdraws(0)]).is_empty());
    }

    #[test]
    fn waiting_with_nobody_inside_breaks_it() {
        assert!(names(&broken(&[Asks(0), Asks(1)])).contains(&Promise::NoDeadlock));
        let holder_died = [Asks(0), Enters(0), Asks(1), Crashes(0)];
        assert!(names(&broken(&holder_died)).contains(&Promise::NoDeadlock));
    }

    #[test]
    fn waiting_for_one_who_stays_inside_is_starvation_but_no_deadlock() {
        let stays = [Asks(0), Enters(0), Asks(1)];
        assert_eq!(names(&broken(&stays)), [Promise::NoStarvation]);
    }

    #[test]
    fn a_run_cut_off_proves_no_deadlock() {
        let breaches = judged(&[Asks(0)], Ending::Deadline, None, false);
        assert_eq!(names(&breaches), [Promise::NoStarvation]);
    }
}
