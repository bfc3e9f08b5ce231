//! Every key with its versions, and the changes in the order in which they happened.
//!
//! **Invariant:** a version is made once and shared: by its key's chain, and by the history while
//! its revision is not compacted. Living and deleted keys lie apart, so that what is asked of the
//! present does not wade through the past.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use vez_api::mvccpb::event::EventType;
use vez_api::mvccpb::{Event, KeyValue};

use super::chain::{Chain, is_tombstone};
use super::queue::Queues;
use super::span::Span;
use crate::pieces::Pieces;

#[derive(Clone, Debug, Default)]
pub(super) struct Keyspace {
    live: BTreeMap<Bytes, Chain>,
    /// Deleted, but still there for those who ask for an earlier revision.
    dead: BTreeMap<Bytes, Chain>,
    /// Of all revisions from the compacted one on.
    history: Pieces<Arc<KeyValue>>,
    queues: Queues,
}

impl Keyspace {
    pub(super) fn get(&self, key: &[u8]) -> Option<&Arc<KeyValue>> {
        self.live.get(key).map(Chain::newest)
    }

    /// The last version, which may be a tombstone.
    pub(super) fn newest(&self, key: &[u8]) -> Option<&Arc<KeyValue>> {
        self.chain(key).map(Chain::newest)
    }

    /// The last change.
    pub(super) fn last(&self) -> Option<&Arc<KeyValue>> {
        self.history.last()
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// What there is now, in the order of keys.
    pub(super) fn now<'a>(
        &'a self,
        span: Span<'_>,
    ) -> impl Iterator<Item = &'a Arc<KeyValue>> + use<'a> {
        in_span(&self.live, span).map(Chain::newest)
    }

    /// What there was at a revision that is not compacted, in the order of keys.
    pub(super) fn then(&self, span: Span<'_>, revision: i64) -> Vec<&Arc<KeyValue>> {
        let chains = in_span(&self.live, span).chain(in_span(&self.dead, span));
        let mut found: Vec<_> = chains.filter_map(|chain| chain.at(revision)).collect();
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        found
    }

    /// Takes a new version, a tombstone only of a key that lives.
    pub(super) fn write(&mut self, version: Arc<KeyValue>) {
        self.history.push(version.clone());
        self.link(version);
    }

    /// Takes a version from before the compacted revision, of which no watcher will hear.
    pub(super) fn link(&mut self, version: Arc<KeyValue>) {
        if is_tombstone(&version) {
            self.bury(version);
        } else if let Some(chain) = self.live.get_mut(&version.key) {
            chain.push(version);
        } else {
            self.queues.insert(&version);
            let key = version.key.clone();
            let chain = match self.dead.remove(&key) {
                Some(mut chain) => {
                    chain.push(version);
                    chain
                }
                None => Chain::new(version),
            };
            self.live.insert(key, chain);
        }
    }

    fn bury(&mut self, tombstone: Arc<KeyValue>) {
        match self.live.remove_entry(&tombstone.key) {
            Some((key, mut chain)) => {
                self.queues.remove(chain.newest());
                chain.push(tombstone);
                self.dead.insert(key, chain);
            }
            // All that compaction left of a key: its end.
            None => {
                self.dead.insert(tombstone.key.clone(), Chain::new(tombstone));
            }
        }
    }

    pub(super) fn first(&self, prefix: &[u8]) -> Option<&Arc<KeyValue>> {
        self.get(&self.queues.first(prefix)?.key)
    }

    pub(super) fn ahead(&self, prefix: &[u8], create_revision: i64) -> Option<&Arc<KeyValue>> {
        self.get(&self.queues.ahead(prefix, create_revision)?.key)
    }

    pub(super) fn first_beside(&self, key: &Bytes) -> Option<&Arc<KeyValue>> {
        self.get(&self.queues.first_beside(key)?.key)
    }

    pub(super) fn directory_after(&self, directory: Option<&Bytes>) -> Option<Bytes> {
        self.queues.directory_after(directory)
    }

    pub(super) fn line(&self, directory: &Bytes) -> impl Iterator<Item = &Arc<KeyValue>> {
        self.queues.line(directory).filter_map(|place| self.get(&place.key))
    }

    /// Changes from a revision on, in their order.
    pub(super) fn since(&self, revision: i64) -> impl Iterator<Item = &Arc<KeyValue>> {
        let skipped = self.history.partition_point(|version| version.mod_revision < revision);
        self.history.range(skipped..self.history.len())
    }

    /// All changes that are not compacted, as they are now: it costs little.
    pub(super) fn history(&self) -> Pieces<Arc<KeyValue>> {
        self.history.clone()
    }

    /// How many changes watchers may still ask for.
    pub(super) fn history_len(&self) -> usize {
        self.history.len()
    }

    /// What a watcher hears of a version. What was there before is what was there before the whole
    /// revision; of the compacted revision, compaction has left nothing to tell.
    pub(super) fn event(&self, version: &KeyValue) -> Event {
        let (kind, is_new) = match is_tombstone(version) {
            true => (EventType::Delete, false),
            false => (EventType::Put, version.create_revision == version.mod_revision),
        };
        let before = version.mod_revision - 1;
        let prev_kv = match is_new {
            true => None,
            false => self.chain(&version.key).and_then(|chain| chain.at(before)),
        };
        Event {
            r#type: kind.into(),
            kv: Some(version.clone()),
            prev_kv: prev_kv.map(|before| KeyValue::clone(before)),
        }
    }

    fn chain(&self, key: &[u8]) -> Option<&Chain> {
        self.live.get(key).or_else(|| self.dead.get(key))
    }

    /// Forgets what cannot be asked for any more. Costs what it frees, however many keys there are.
    pub(super) fn compact(&mut self, revision: i64) {
        let touched = self.history.partition_point(|version| version.mod_revision <= revision);
        for version in self.history.range(0..touched) {
            if let Some(chain) = self.live.get_mut(&version.key) {
                let left = chain.compact(revision);
                assert!(left, "a living key keeps its newest version");
            } else if let Some(chain) = self.dead.get_mut(&version.key)
                && !chain.compact(revision)
            {
                self.dead.remove(&version.key);
            }
        }
        // A transaction may write and then delete a key: of its revision, only the end is left.
        let is_left = |version: &&Arc<KeyValue>| {
            let chain = self.chain(&version.key);
            chain.is_some_and(|chain| Arc::ptr_eq(chain.oldest(), version))
        };
        let last = self.history.partition_point(|version| version.mod_revision < revision);
        let left = self.history.range(last..touched).filter(is_left).cloned();
        let left: Vec<_> = left.collect();
        self.history.forget_first(touched);
        for version in left.into_iter().rev() {
            self.history.push_front(version);
        }
    }

    /// What compaction left of earlier revisions, in the order of keys.
    pub(super) fn survivors(&self, compacted: i64) -> impl Iterator<Item = &Arc<KeyValue>> {
        let oldest = self.live.values().chain(self.dead.values()).map(Chain::oldest);
        oldest.filter(move |version| version.mod_revision < compacted)
    }
}

fn in_span<'a>(
    chains: &'a BTreeMap<Bytes, Chain>,
    span: Span<'_>,
) -> impl Iterator<Item = &'a Chain> + use<'a> {
    let bounds = span.bounds();
    let found = bounds.map(|bounds| chains.range::<[u8], _>(bounds));
    found.into_iter().flatten().map(|(_, chain)| chain)
}
