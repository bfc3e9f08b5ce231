//! Requests as the recipe needs them.

use bytes::Bytes;
use vez_api::end_of_prefix;
use vez_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use vez_api::etcdserverpb::range_request::{SortOrder, SortTarget};
use vez_api::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, ResponseOp,
    TxnResponse, request_op, response_op,
};
use vez_api::mvccpb::KeyValue;

/// Where the queue of a name is.
pub(crate) fn prefix(name: &str) -> Bytes {
    format!("{name}/").into()
}

/// A session's place in the queue of a name.
pub(crate) fn key(name: &str, lease: i64) -> Bytes {
    format!("{name}/{lease:x}").into()
}

/// The key was created at this revision; 0 for not at all.
pub(crate) fn created_at(key: &Bytes, revision: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Create.into(),
        key: key.clone(),
        target_union: Some(TargetUnion::CreateRevision(revision)),
        ..Compare::default()
    }
}

/// There is no key with this prefix.
pub(crate) fn nobody(prefix: &Bytes) -> Compare {
    Compare { range_end: end_of_prefix(prefix), ..created_at(prefix, 0) }
}

pub(crate) fn one(key: &Bytes) -> RangeRequest {
    RangeRequest { key: key.clone(), ..RangeRequest::default() }
}

/// The queue, from its head.
pub(crate) fn queue(prefix: &Bytes) -> RangeRequest {
    RangeRequest {
        key: prefix.clone(),
        range_end: end_of_prefix(prefix),
        sort_order: SortOrder::Ascend.into(),
        sort_target: SortTarget::Create.into(),
        ..RangeRequest::default()
    }
}

/// Who holds it.
pub(crate) fn first(prefix: &Bytes) -> RangeRequest {
    RangeRequest { limit: 1, ..queue(prefix) }
}

/// All who came before.
pub(crate) fn before(prefix: &Bytes, fence: i64) -> RangeRequest {
    RangeRequest { max_create_revision: fence - 1, ..queue(prefix) }
}

/// The one who came just before.
pub(crate) fn ahead(prefix: &Bytes, fence: i64) -> RangeRequest {
    let last = SortOrder::Descend.into();
    RangeRequest { limit: 1, keys_only: true, sort_order: last, ..before(prefix, fence) }
}

pub(crate) fn op_range(request: RangeRequest) -> RequestOp {
    RequestOp { request: Some(request_op::Request::RequestRange(request)) }
}

pub(crate) fn op_put(key: &Bytes, value: &Bytes, lease: i64) -> RequestOp {
    let (key, value) = (key.clone(), value.clone());
    let request = PutRequest { key, value, lease, ..PutRequest::default() };
    RequestOp { request: Some(request_op::Request::RequestPut(request)) }
}

pub(crate) fn op_delete(key: &Bytes) -> RequestOp {
    let request = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
    RequestOp { request: Some(request_op::Request::RequestDeleteRange(request)) }
}

/// The ranges that a transaction read, in order.
pub(crate) fn ranges(response: TxnResponse) -> Vec<RangeResponse> {
    let range = |op: ResponseOp| match op.response {
        Some(response_op::Response::ResponseRange(range)) => Some(range),
        _ => None,
    };
    response.responses.into_iter().filter_map(range).collect()
}

/// The only key, or the first.
pub(crate) fn head(range: Option<RangeResponse>) -> Option<KeyValue> {
    range.and_then(|range| range.kvs.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_as_the_recipe_says() {
        assert_eq!(&key("backup", 0x7c1)[..], b"backup/7c1");
    }
}
