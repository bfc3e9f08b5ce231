//! The versions of one key that may still be asked for.

use std::sync::Arc;

use vez_api::mvccpb::KeyValue;

/// A version is a tombstone if its `version` is 0; it then has a key and a mod revision only.
pub(super) fn is_tombstone(version: &KeyValue) -> bool {
    version.version == 0
}

/// Never empty, oldest first. Most keys have one version, which costs no list.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    newest: Arc<KeyValue>,
    older: Vec<Arc<KeyValue>>,
}

impl Chain {
    pub(super) fn new(version: Arc<KeyValue>) -> Self {
        Self { newest: version, older: Vec::new() }
    }

    pub(super) fn newest(&self) -> &Arc<KeyValue> {
        &self.newest
    }

    pub(super) fn oldest(&self) -> &Arc<KeyValue> {
        self.older.first().unwrap_or(&self.newest)
    }

    pub(super) fn push(&mut self, version: Arc<KeyValue>) {
        debug_assert!(self.newest.mod_revision <= version.mod_revision);
        self.older.push(std::mem::replace(&mut self.newest, version));
    }

    /// The key as it was once everything up to `revision` was done.
    pub(super) fn at(&self, revision: i64) -> Option<&Arc<KeyValue>> {
        // What was just before the newest is asked for most: by whoever tells what has changed.
        let mut last = std::iter::once(&self.newest).chain(self.older.last());
        let version = match last.find(|version| version.mod_revision <= revision) {
            Some(version) => version,
            None => {
                let known = self.older.partition_point(|older| older.mod_revision <= revision);
                &self.older[known.checked_sub(1)?]
            }
        };
        (!is_tombstone(version)).then_some(version)
    }

    /// Forgets what no reader at `revision` or later can see, and says whether anything is left.
    ///
    /// A deletion at `revision` itself stays: watchers may start there and have to hear of it.
    #[must_use]
    pub(super) fn compact(&mut self, revision: i64) -> bool {
        let outdated =
            |version: &KeyValue| is_tombstone(version) && version.mod_revision < revision;
        if self.newest.mod_revision <= revision {
            self.older = Vec::new();
            return !outdated(&self.newest);
        }
        // Most often it was done already, for another version of the same key.
        let [first, second] = [0, 1].map(|place| self.older.get(place));
        let is_later = |version: &Arc<KeyValue>| revision < version.mod_revision;
        if first.is_none_or(|first| is_later(first) || !outdated(first))
            && second.is_none_or(is_later)
        {
            return true;
        }
        let known = self.older.partition_point(|older| older.mod_revision <= revision);
        if let Some(last) = known.checked_sub(1) {
            let forgotten = if outdated(&self.older[last]) { known } else { last };
            self.older.drain(..forgotten);
            self.older.shrink_to_fit();
        }
        true
    }
}
