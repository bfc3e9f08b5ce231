//! Things that belong to spans of keys, found by a key: what it costs depends little on how many
//! spans there are that do not hold it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::state;

/// A key, or all keys from it up to an end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) key: Bytes,
    /// Empty for the one key; a zero byte for everything from it on.
    pub(crate) end: Bytes,
}

impl Span {
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        Self { key: Bytes::copy_from_slice(prefix), end: vez_api::end_of_prefix(prefix) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !matches!(&self.end[..], [] | [0]) && self.end <= self.key
    }

    fn holds(&self, key: &[u8]) -> bool {
        state::Span::new(&self.key, &self.end).contains(key)
    }

    fn is_prefix(&self) -> bool {
        !self.key.is_empty() && *self == Self::prefix(&self.key)
    }
}

/// Each span has a number while it is there, and a thing.
#[derive(Debug)]
pub(crate) struct Spans<T> {
    last: u64,
    things: BTreeMap<u64, (Span, T)>,
    keys: BTreeMap<Bytes, u64>,
    prefixes: BTreeMap<Bytes, u64>,
    /// How many prefixes have which length: a key has one prefix of each.
    lengths: BTreeMap<usize, usize>,
    ranges: BTreeMap<Span, u64>,
    /// Of `ranges`; none if they changed since it was made.
    tree: Option<Vec<Node>>,
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self {
            last: 0,
            things: BTreeMap::new(),
            keys: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            lengths: BTreeMap::new(),
            ranges: BTreeMap::new(),
            tree: Some(Vec::new()),
        }
    }
}

impl<T: Default> Spans<T> {
    pub(crate) fn entry(&mut self, span: &Span) -> &mut T {
        let number = self.find(span).unwrap_or_else(|| self.insert(span));
        &mut self.things.entry(number).or_insert_with(|| (span.clone(), T::default())).1
    }

    /// Changes a thing, if it is there; it goes if the change says that nothing is left.
    pub(crate) fn change(&mut self, span: &Span, change: impl FnOnce(&mut T) -> bool) {
        if let Some(number) = self.find(span) {
            self.change_group(number, change);
        }
    }

    pub(crate) fn change_group(&mut self, number: u64, change: impl FnOnce(&mut T) -> bool) {
        let Some((_, thing)) = self.things.get_mut(&number) else { return };
        if !change(thing)
            && let Some((span, _)) = self.things.remove(&number)
        {
            self.remove(&span);
        }
    }

    pub(crate) fn things(&self) -> impl Iterator<Item = &T> {
        self.things.values().map(|(_, thing)| thing)
    }

    /// Calls `found` with the number of each span that holds the key.
    pub(crate) fn holding(&mut self, key: &[u8], mut found: impl FnMut(u64)) {
        if let Some(number) = self.keys.get(key) {
            found(*number);
        }
        for (length, _) in self.lengths.range(..=key.len()) {
            if let Some(number) = self.prefixes.get(&key[..*length]) {
                found(*number);
            }
        }
        let tree = self.tree.get_or_insert_with(|| {
            let mut nodes: Vec<_> = self.ranges.iter().map(Node::new).collect();
            Node::build(&mut nodes);
            nodes
        });
        Node::holding(tree, key, &mut found);
    }

    fn find(&self, span: &Span) -> Option<u64> {
        if span.end.is_empty() {
            self.keys.get(&span.key).copied()
        } else if span.is_prefix() {
            self.prefixes.get(&span.key).copied()
        } else {
            self.ranges.get(span).copied()
        }
    }

    fn insert(&mut self, span: &Span) -> u64 {
        self.last += 1;
        if span.end.is_empty() {
            self.keys.insert(span.key.clone(), self.last);
        } else if span.is_prefix() {
            self.prefixes.insert(span.key.clone(), self.last);
            *self.lengths.entry(span.key.len()).or_default() += 1;
        } else {
            self.ranges.insert(span.clone(), self.last);
            self.tree = None;
        }
        self.last
    }

    fn remove(&mut self, span: &Span) {
        if span.end.is_empty() {
            self.keys.remove(&span.key);
        } else if span.is_prefix() {
            self.prefixes.remove(&span.key);
            if let Some(left) = self.lengths.get_mut(&span.key.len()) {
                *left -= 1;
                if *left == 0 {
                    self.lengths.remove(&span.key.len());
                }
            }
        } else {
            self.ranges.remove(span);
            self.tree = None;
        }
    }
}

/// Of a tree in a list: a slice's root is in its middle, its branches are what is before and after.
/// In order of the starts; each knows the greatest end of its branches.
#[derive(Debug)]
struct Node {
    span: Span,
    number: u64,
    /// None is beyond all keys.
    last_end: Option<Bytes>,
}

impl Node {
    fn new((span, number): (&Span, &u64)) -> Self {
        let end = (span.end[..] != [0]).then(|| span.end.clone());
        Self { span: span.clone(), number: *number, last_end: end }
    }

    /// Sets the greatest ends.
    fn build(nodes: &mut [Self]) {
        let middle = nodes.len() / 2;
        let (before, rest) = nodes.split_at_mut(middle);
        let Some((node, after)) = rest.split_first_mut() else { return };
        for branch in [before, after] {
            Self::build(branch);
            if let Some(root) = branch.get(branch.len() / 2) {
                let last = node.last_end.take().zip(root.last_end.clone());
                node.last_end = last.map(|(one, other)| one.max(other));
            }
        }
    }

    fn holding(nodes: &[Self], key: &[u8], found: &mut impl FnMut(u64)) {
        let middle = nodes.len() / 2;
        let Some(node) = nodes.get(middle) else { return };
        if node.last_end.as_ref().is_some_and(|end| &end[..] <= key) {
            return;
        }
        Self::holding(&nodes[..middle], key, found);
        if &node.span.key[..] <= key {
            if node.span.holds(key) {
                found(node.number);
            }
            Self::holding(&nodes[middle + 1..], key, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        assert_eq!(&Span::prefix(b"a/").end[..], b"a0");
        assert_eq!(&Span::prefix(b"a\xff").end[..], b"b");
        assert_eq!(&Span::prefix(b"\xff\xff").end[..], b"\0");
        assert!(Span::prefix(b"\xff").holds(b"\xff\xff\xff"));
        assert!(!Span::prefix(b"a/").holds(b"a0"));
    }

    fn text() -> impl Strategy<Value = Bytes> {
        let letters = prop_oneof![Just(0), Just(b'a'), Just(b'b'), Just(u8::MAX)];
        vec(letters, 0..4).prop_map(Bytes::from)
    }

    fn span() -> impl Strategy<Value = Span> {
        prop_oneof![
            text().prop_map(|key| Span { key, end: Bytes::new() }),
            text().prop_map(|key| Span::prefix(&key)),
            (text(), text()).prop_map(|(key, end)| Span { key, end }),
            text().prop_map(|key| Span { key, end: Bytes::from_static(b"\0") }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(500)
        })]

        #[test]
        fn a_key_finds_the_spans_that_hold_it(
            spans in vec(span(), 0..30),
            gone in vec(any::<prop::sample::Index>(), 0..15),
            keys in vec(text(), 1..20),
        ) {
            let mut all: Spans<usize> = Spans::default();
            let mut kept = std::collections::BTreeSet::new();
            for span in spans {
                *all.entry(&span) += 1;
                kept.insert(span);
            }
            let in_order: Vec<_> = kept.iter().cloned().collect();
            for index in gone.iter().filter(|_| !in_order.is_empty()) {
                let span = index.get(&in_order);
                all.change(span, |_| false);
                kept.remove(span);
                // Asked in between, so that what was built is built anew.
                all.holding(&keys[0], |_| {});
            }
            for key in &keys {
                let mut found = Vec::new();
                all.holding(key, |number| found.push(number));
                let mut found: Vec<_> =
                    found.iter().map(|number| all.things[number].0.clone()).collect();
                found.sort_unstable();
                let expected: Vec<_> =
                    kept.iter().filter(|span| span.holds(key)).cloned().collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
