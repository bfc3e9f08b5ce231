//! The users of the processes: what each still wants, and what each will do when.

use std::collections::{BTreeMap, VecDeque};

use vez_core::{NodeId, Time, Wish};

#[derive(Debug, Default)]
pub(crate) struct Users {
    /// For each user, how long it will stay inside, for what it has asked or will ask.
    wants: BTreeMap<NodeId, VecDeque<Time>>,
    /// Who does what when; those of one moment in the order they came up.
    agenda: BTreeMap<(Time, u64), (NodeId, Deed)>,
    /// Who is inside, and on which visit.
    inside: BTreeMap<NodeId, u64>,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Ends this visit; ignored if it was cut short before.
    Leave(u64),
    Ask(Wish),
}

impl Users {
    /// Wants in once more. Whether it can ask right away: its earlier wishes come first.
    pub(crate) fn want(&mut self, node: NodeId, hold: Time) -> bool {
        let wants = self.wants.entry(node).or_default();
        wants.push_back(hold);
        wants.len() == 1
    }

    pub(crate) fn entered(&mut self, node: NodeId, now: Time) {
        // One let in unasked leaves at once.
        let hold = self.wants.get(&node).and_then(VecDeque::front).copied().unwrap_or_default();
        let visit = self.plan(now + hold, node, Deed::Leave(self.count + 1));
        self.inside.insert(node, visit);
    }

    /// Its wish is over, fulfilled or not. Whether it has another.
    pub(crate) fn done(&mut self, node: NodeId) -> bool {
        self.inside.remove(&node);
        let Some(wants) = self.wants.get_mut(&node) else { return false };
        wants.pop_front();
        !wants.is_empty()
    }

    /// Whether it will ask again after what it does now.
    pub(crate) fn wants_more(&self, node: NodeId) -> bool {
        self.wants.get(&node).is_some_and(|wants| 1 < wants.len())
    }

    pub(crate) fn crashed(&mut self, node: NodeId) {
        self.inside.remove(&node);
        self.wants.remove(&node);
    }

    pub(crate) fn ask_at(&mut self, at: Time, node: NodeId, wish: Wish) {
        self.plan(at, node, Deed::Ask(wish));
    }

    #[inline]
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.agenda.first_key_value().map(|(&(at, _), _)| at)
    }

    /// What a user does next, unless it has become pointless.
    pub(crate) fn next_deed(&mut self) -> Option<(NodeId, Wish)> {
        let (_, (node, deed)) = self.agenda.pop_first()?;
        match deed {
            Deed::Leave(visit) => {
                (self.inside.get(&node) == Some(&visit)).then_some((node, Wish::Release))
            }
            Deed::Ask(wish) => Some((node, wish)),
        }
    }

    fn plan(&mut self, at: Time, node: NodeId, deed: Deed) -> u64 {
        self.count += 1;
        self.agenda.insert((at, self.count), (node, deed));
        self.count
    }
}
