//! A grant's fence is larger than every fence in use when it was asked for, and nobody else's, so
//! that a resource that keeps the largest it has seen refuses whoever a newer grant has overtaken,
//! and never refuses the newest.

use std::collections::BTreeMap;

use super::{Court, Fence, NodeId, Promise};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fencing {
    /// The largest fence anyone entered with, and who did.
    largest: Option<(Fence, NodeId)>,
    /// For each who waits, the largest there was when it asked.
    asked_after: BTreeMap<NodeId, Fence>,
}

impl Fencing {
    pub(super) fn on_asked(&mut self, node: NodeId) {
        if let Some((fence, _)) = self.largest {
            self.asked_after.insert(node, fence);
        }
    }

    pub(super) fn on_gone(&mut self, node: NodeId) {
        self.asked_after.remove(&node);
    }

    pub(super) fn on_entered(&mut self, node: NodeId, fence: Option<Fence>, court: &mut Court<'_>) {
        let who = court.name(node);
        let asked_after = self.asked_after.remove(&node);
        let Some(fence) = fence else {
            return court.breach(Promise::Fencing, format!("{who} entered without a fence"));
        };
        if let Some(known) = asked_after.filter(|&known| fence <= known) {
            let detail =
                format!("{who} entered with fence {fence}, but {known} was in use before it asked");
            return court.breach(Promise::Fencing, detail);
        }
        match self.largest {
            Some((largest, holder)) if largest == fence => {
                let holder = court.name(holder);
                let detail =
                    format!("{who} entered with fence {fence}, which {holder} had been given");
                court.breach(Promise::Fencing, detail);
            }
            // Granted before the largest was, and slow to enter: the resource will refuse it.
            Some((largest, _)) if fence < largest => (),
            _ => self.largest = Some((fence, node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact, Fact::*, judged, names};
    use crate::{Ending, Promise};

    fn breaks(history: &[Fact]) -> bool {
        names(&judged(history, Ending::Quiescent, None, true)).contains(&Promise::Fencing)
    }

    #[test]
    fn growing_fences_keep_it_even_with_two_inside() {
        assert!(!breaks(&[
            Asks(0),
            EntersWith(0, 1),
            Asks(1),
            EntersWith(1, 5),
            Leaves(0),
            Leaves(1)
        ]));
    }

    #[test]
    fn one_granted_earlier_may_enter_later_and_be_refused() {
        assert!(!breaks(&[
            Asks(0),
            Asks(1),
            EntersWith(1, 2),
            EntersWith(0, 1),
            Leaves(0),
            Leaves(1)
        ]));
    }

    #[test]
    fn a_fence_given_twice_or_out_of_date_breaks_it() {
        assert!(breaks(&[
            Asks(0),
            Asks(1),
            EntersWith(0, 2),
            Leaves(0),
            EntersWith(1, 2),
            Leaves(1)
        ]));
        assert!(breaks(&[
            Asks(0),
            EntersWith(0, 2),
            Leaves(0),
            Asks(1),
            EntersWith(1, 1),
            Leaves(1)
        ]));
    }

    #[test]
    fn no_fence_at_all_breaks_it() {
        assert!(breaks(&[Asks(0), Enters(0), Leaves(0)]));
    }
}
