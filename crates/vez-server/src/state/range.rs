//! Reading: what a range request finds, with etcd's order of doing things.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use vez_api::etcdserverpb::range_request::{SortOrder, SortTarget};
use vez_api::etcdserverpb::{RangeRequest, RangeResponse};
use vez_api::mvccpb::KeyValue;

use super::error::Error;
use super::keyspace::Keyspace;
use super::span::Span;
use super::{State, header, validate};

impl State {
    /// What the keys of a request are, or were at any revision that is not compacted.
    pub fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        validate::range(request)?;
        if request.revision > self.revision {
            return Err(Error::FutureRevision);
        }
        if request.revision > 0 && request.revision < self.compacted {
            return Err(Error::Compacted);
        }
        Ok(range(&self.keys, request, self.revision))
    }
}

/// For a request that was found good. `current` is the newest revision the reader may see: within
/// a transaction, the one being written.
pub(super) fn range(keys: &Keyspace, request: &RangeRequest, current: i64) -> RangeResponse {
    let span = Span::new(&request.key, &request.range_end);
    let is_now = request.revision <= 0 || request.revision == current;
    if request.count_only && is_now {
        return response(Vec::new(), keys.now(span).count(), false, current);
    }
    let mut found: Vec<_> = match is_now {
        true => keys.now(span).collect(),
        false => keys.then(span, request.revision),
    };
    // Of all that lies in the span, whatever is then filtered or cut off.
    let count = found.len();
    if request.count_only {
        return response(Vec::new(), count, false, current);
    }
    let limit = usize::try_from(request.limit).ok().filter(|&limit| limit > 0);
    // Those who ask for no order get the first keys, and these in the order of their target.
    if let Some(limit) = limit
        && request.sort_order() == SortOrder::None
        && !has_filters(request)
    {
        found.truncate(limit.saturating_add(1));
    }
    found.retain(|kv| passes_filters(request, kv));
    sort(request, &mut found);
    let more = limit.is_some_and(|limit| found.len() > limit);
    found.truncate(limit.unwrap_or(usize::MAX));
    let shown = |kv: &Arc<KeyValue>| match request.keys_only {
        true => KeyValue { key: kv.key.clone(), value: Bytes::new(), ..**kv },
        false => KeyValue::clone(kv),
    };
    response(found.into_iter().map(shown).collect(), count, more, current)
}

fn response(kvs: Vec<KeyValue>, count: usize, more: bool, revision: i64) -> RangeResponse {
    let count = i64::try_from(count).expect("fewer keys than memory has bytes");
    RangeResponse { header: header(revision), kvs, more, count }
}

fn has_filters(request: &RangeRequest) -> bool {
    request.min_mod_revision != 0
        || request.max_mod_revision != 0
        || request.min_create_revision != 0
        || request.max_create_revision != 0
}

fn passes_filters(request: &RangeRequest, kv: &KeyValue) -> bool {
    let within =
        |revision, min, max| (min == 0 || revision >= min) && (max == 0 || revision <= max);
    within(kv.mod_revision, request.min_mod_revision, request.max_mod_revision)
        && within(kv.create_revision, request.min_create_revision, request.max_create_revision)
}

/// Equals stay in the order of keys, downwards too.
fn sort(request: &RangeRequest, found: &mut [&Arc<KeyValue>]) {
    let target = request.sort_target();
    let compare = |one: &KeyValue, other: &KeyValue| -> Ordering {
        match target {
            SortTarget::Key => one.key.cmp(&other.key),
            SortTarget::Version => one.version.cmp(&other.version),
            SortTarget::Create => one.create_revision.cmp(&other.create_revision),
            SortTarget::Mod => one.mod_revision.cmp(&other.mod_revision),
            SortTarget::Value => one.value.cmp(&other.value),
        }
    };
    match request.sort_order() {
        SortOrder::None if target == SortTarget::Key => {}
        SortOrder::None | SortOrder::Ascend => found.sort_by(|one, other| compare(one, other)),
        SortOrder::Descend => found.sort_by(|one, other| compare(other, one)),
    }
}
