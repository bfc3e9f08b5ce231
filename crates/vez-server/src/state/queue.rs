//! Who stands where in the queues for locks and elections.
//!
//! etcd's recipes make a key `name/lease` for everyone who waits and order them by create revision:
//! the first holds, everyone else waits for the one just ahead. They ask by range over the prefix
//! `name/`; this index answers the same questions without looking at the whole queue.
//!
//! **Invariant:** every live key is in the index once, under its directory: all up to and with its
//! last slash. A queue under `a/` has the members of `a/b/` too, because the prefix has them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use vez_api::mvccpb::KeyValue;

#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    places: BTreeSet<Place>,
}

/// Ordered by directory, then by create revision; those made in one transaction by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: Bytes,
    create_revision: i64,
    /// How much of the key is directory. Kept, because comparing would look for it each time.
    directory: usize,
}

impl Place {
    fn new(key: &Bytes, create_revision: i64) -> Self {
        Self { key: key.clone(), create_revision, directory: directory_len(key) }
    }

    /// Before (or, with the greatest revision, behind) all that stand in a directory.
    fn edge(directory: Bytes, create_revision: i64) -> Self {
        Self { directory: directory.len(), key: directory, create_revision }
    }

    fn directory(&self) -> &[u8] {
        &self.key[..self.directory]
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.directory().cmp(other.directory()))
            .then(self.create_revision.cmp(&other.create_revision))
            .then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Queues {
    pub(super) fn insert(&mut self, kv: &KeyValue) {
        self.places.insert(Place::new(&kv.key, kv.create_revision));
    }

    pub(super) fn remove(&mut self, kv: &KeyValue) {
        self.places.remove(&Place::new(&kv.key, kv.create_revision));
    }

    /// The smallest create revision under a prefix; of several, the smallest key.
    pub(super) fn first(&self, prefix: &[u8]) -> Option<&Place> {
        let best = |directory| {
            self.standing(directory, i64::MAX).find(|place| place.key.starts_with(prefix))
        };
        let places = self.directories(prefix).into_iter().filter_map(best);
        places.min_by(|one, other| {
            one.create_revision.cmp(&other.create_revision).then_with(|| one.key.cmp(&other.key))
        })
    }

    /// Who stands first in the directory of a key, without those below it.
    pub(super) fn first_beside(&self, key: &Bytes) -> Option<&Place> {
        self.standing(key.slice(..directory_len(key)), i64::MAX).next()
    }

    /// The directories that have keys, from the one after the given one on.
    pub(super) fn directory_after(&self, directory: Option<&Bytes>) -> Option<Bytes> {
        let from = match directory {
            Some(directory) => Bound::Excluded(Place::edge(directory.clone(), i64::MAX)),
            None => Bound::Unbounded,
        };
        let place = self.places.range((from, Bound::Unbounded)).next()?;
        Some(place.key.slice(..place.directory))
    }

    /// All that stand in a directory, without those below it, in their order.
    pub(super) fn line(&self, directory: &Bytes) -> impl Iterator<Item = &Place> {
        self.standing(directory.clone(), i64::MAX)
    }

    /// The greatest create revision below the given one; of several, the smallest key.
    pub(super) fn ahead(&self, prefix: &[u8], create_revision: i64) -> Option<&Place> {
        let under_prefix = |place: &&Place| place.key.starts_with(prefix);
        if self.is_alone(prefix, create_revision) {
            return None;
        }
        let best = |directory: Bytes| {
            let last = self
                .standing(directory.clone(), create_revision)
                .rev()
                .find(under_prefix)?
                .create_revision;
            let from = Bound::Included(Place::edge(directory, last));
            self.places.range((from, Bound::Unbounded)).find(under_prefix)
        };
        let places = self.directories(prefix).into_iter().filter_map(best);
        places.max_by(|one, other| {
            one.create_revision.cmp(&other.create_revision).then_with(|| other.key.cmp(&one.key))
        })
    }

    /// Whether nobody but this one, if anybody, stands anywhere under a directory: most often so.
    fn is_alone(&self, directory: &[u8], create_revision: i64) -> bool {
        let from = Place::edge(Bytes::copy_from_slice(directory), i64::MIN);
        let mut under = self.places.range(from..);
        let mut next = || under.next().filter(|place| place.key.starts_with(directory));
        directory.ends_with(b"/")
            && next().is_none_or(|first| create_revision <= first.create_revision)
            && next().is_none()
    }

    /// Those in a directory with a create revision below the given one.
    fn standing(
        &self,
        directory: Bytes,
        create_revision: i64,
    ) -> impl DoubleEndedIterator<Item = &Place> {
        let from = Place::edge(directory.clone(), i64::MIN);
        let to = Place::edge(directory, create_revision);
        self.places.range(from..to)
    }

    /// The directories that have keys under a prefix: for a lock, its own and those of locks whose
    /// names go on where its own ends.
    fn directories(&self, prefix: &[u8]) -> Vec<Bytes> {
        let mut found = Vec::new();
        let own = directory_len(prefix);
        if own != prefix.len() {
            found.push(Bytes::copy_from_slice(&prefix[..own]));
        }
        let mut from = Bound::Included(Place::edge(Bytes::copy_from_slice(prefix), i64::MIN));
        while let Some(place) = self.places.range((from, Bound::Unbounded)).next()
            && place.directory().starts_with(prefix)
        {
            let directory = place.key.slice(..place.directory);
            found.push(directory.clone());
            from = Bound::Excluded(Place::edge(directory, i64::MAX));
        }
        found
    }
}

fn directory_len(key: &[u8]) -> usize {
    key.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)
}
