//! Nobody is deposed who has not failed (LE4).

use super::{Court, NodeId, Promise};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Stability {
    /// The last to be elected, as long as it has not failed.
    incumbent: Option<NodeId>,
}

impl Stability {
    pub(super) fn on_declared(&mut self, node: NodeId, court: &mut Court<'_>) {
        if let Some(other) = self.incumbent.filter(|&incumbent| incumbent != node) {
            let (who, other) = (court.name(node), court.name(other));
            let detail = format!("{who} took over from {other}, which had not failed");
            court.breach(Promise::Stability, detail);
        }
        self.incumbent = Some(node);
    }

    pub(super) fn on_crash(&mut self, node: NodeId) {
        self.incumbent = self.incumbent.filter(|&incumbent| incumbent != node);
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Fact, Fact::*, broken, names};
    use crate::Promise;

    fn breaks(history: &[Fact]) -> bool {
        names(&broken(history)).contains(&Promise::Stability)
    }

    #[test]
    fn a_failed_leader_may_be_replaced_and_the_same_one_confirmed() {
        assert!(!breaks(&[Follows(2, 2), Crashes(2), Follows(1, 1), Follows(1, 1)]));
    }

    #[test]
    fn replacing_one_that_has_not_failed_breaks_it() {
        assert!(breaks(&[Crashes(2), Follows(1, 1), Restarts(2), Follows(2, 2)]));
        assert!(breaks(&[Follows(1, 1), Gives(1), Follows(2, 2)]));
    }
}
