//! A command at work: its changes, all under the one revision that follows the store's.

use std::sync::Arc;

use bytes::Bytes;
use vez_api::etcdserverpb::{DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse};
use vez_api::mvccpb::{Event, KeyValue};

use super::span::Span;
use super::{State, header};

pub(super) struct Write<'a> {
    pub(super) state: &'a mut State,
    changes: Vec<Arc<KeyValue>>,
}

impl<'a> Write<'a> {
    pub(super) fn new(state: &'a mut State) -> Self {
        Self { state, changes: Vec::new() }
    }

    /// The revision that readers within the command see: the new one as soon as it has a change.
    pub(super) fn current(&self) -> i64 {
        self.state.revision + i64::from(!self.changes.is_empty())
    }

    fn revision(&self) -> i64 {
        self.state.revision + 1
    }

    pub(super) fn put(&mut self, request: &PutRequest) -> PutResponse {
        let revision = self.revision();
        let before = self.state.keys.get(&request.key).cloned();
        let old = before.as_deref();
        // Copies: what came over the wire is a slice of a buffer, and would keep all of it.
        let value = match request.ignore_value {
            true => old.map(|old| old.value.clone()).unwrap_or_default(),
            false => Bytes::copy_from_slice(&request.value),
        };
        let lease = match request.ignore_lease {
            true => old.map_or(0, |old| old.lease),
            false => request.lease,
        };
        let version = KeyValue {
            key: old.map_or_else(|| Bytes::copy_from_slice(&request.key), |old| old.key.clone()),
            create_revision: old.map_or(revision, |old| old.create_revision),
            mod_revision: revision,
            version: old.map_or(0, |old| old.version) + 1,
            value,
            lease,
        };
        self.state.leases.move_key(&version.key, old.map_or(0, |old| old.lease), lease);
        self.change(version);
        let prev_kv = old.filter(|_| request.prev_kv).cloned();
        PutResponse { header: header(revision), prev_kv }
    }

    pub(super) fn delete_range(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let span = Span::new(&request.key, &request.range_end);
        let found: Vec<_> = self.state.keys.now(span).cloned().collect();
        for kv in &found {
            self.delete(&kv.key);
        }
        let prev_kvs = match request.prev_kv {
            true => found.iter().map(|kv| KeyValue::clone(kv)).collect(),
            false => Vec::new(),
        };
        let deleted = i64::try_from(found.len()).expect("fewer keys than memory has bytes");
        DeleteRangeResponse { header: header(self.current()), deleted, prev_kvs }
    }

    pub(super) fn delete(&mut self, key: &Bytes) {
        if let Some(old) = self.state.keys.get(key).cloned() {
            self.state.leases.move_key(key, old.lease, 0);
            let mod_revision = self.revision();
            self.change(KeyValue { key: old.key.clone(), mod_revision, ..KeyValue::default() });
        }
    }

    fn change(&mut self, version: KeyValue) {
        let version = Arc::new(version);
        self.changes.push(version.clone());
        self.state.keys.write(version);
    }

    /// Takes the revision, if there is anything to take it for.
    pub(super) fn finish(self) -> Vec<Event> {
        self.state.revision = self.current();
        self.changes.iter().map(|version| self.state.keys.event(version)).collect()
    }
}
