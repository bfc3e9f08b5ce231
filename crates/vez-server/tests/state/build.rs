//! Requests in few words, and answers that must be good.

use bytes::Bytes;
use vez_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::response_op;
use vez_api::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, DeleteRangeResponse, LeaseGrantRequest,
    LeaseRevokeRequest, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    TxnRequest, TxnResponse,
};
use vez_api::log;
use vez_api::mvccpb::{Event, KeyValue};
use vez_server::state::{Applied, Error, Response, State};

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) fn command(command: log::command::Command) -> log::Command {
    command.into()
}

pub(crate) fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: bytes(key), value: bytes(value), ..PutRequest::default() }
}

pub(crate) fn put_leased(key: &str, lease: i64) -> PutRequest {
    PutRequest { key: bytes(key), lease, ..PutRequest::default() }
}

pub(crate) fn delete(key: &str, range_end: &str) -> DeleteRangeRequest {
    DeleteRangeRequest { key: bytes(key), range_end: bytes(range_end), prev_kv: false }
}

pub(crate) fn range(key: &str, range_end: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), range_end: bytes(range_end), ..RangeRequest::default() }
}

pub(crate) fn everything() -> RangeRequest {
    range("\0", "\0")
}

pub(crate) fn compare(
    key: &str,
    target: CompareTarget,
    result: CompareResult,
    given: Option<TargetUnion>,
) -> Compare {
    Compare {
        result: result.into(),
        target: target.into(),
        key: bytes(key),
        range_end: Bytes::new(),
        target_union: given,
    }
}

pub(crate) fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

pub(crate) fn op_put(key: &str, value: &str) -> RequestOp {
    op(Request::RequestPut(put(key, value)))
}

pub(crate) fn op_delete(key: &str, range_end: &str) -> RequestOp {
    op(Request::RequestDeleteRange(delete(key, range_end)))
}

pub(crate) fn op_range(request: RangeRequest) -> RequestOp {
    op(Request::RequestRange(request))
}

pub(crate) fn op_txn(request: TxnRequest) -> RequestOp {
    op(Request::RequestTxn(request))
}

/// A transaction without conditions.
pub(crate) fn always(success: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare: Vec::new(), success, failure: Vec::new() }
}

/// A transaction whose condition never holds: nothing has a version below 0.
pub(crate) fn never(failure: Vec<RequestOp>) -> TxnRequest {
    let given = Some(TargetUnion::Version(0));
    let compare = compare("never", CompareTarget::Version, CompareResult::Less, given);
    TxnRequest { compare: vec![compare], success: Vec::new(), failure }
}

/// What tests ask of a state; each panics if the answer is not of its kind.
pub(crate) trait Ask {
    fn try_put(&mut self, request: PutRequest) -> Result<PutResponse, Error>;
    fn try_delete(&mut self, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, Error>;
    fn try_txn(&mut self, request: TxnRequest) -> Result<TxnResponse, Error>;
    fn try_compact(&mut self, revision: i64) -> Result<i64, Error>;
    fn try_grant(&mut self, id: i64, ttl: i64) -> Result<i64, Error>;
    fn try_revoke(&mut self, id: i64) -> Result<i64, Error>;
    fn events_of(&mut self, command: log::command::Command) -> Vec<Event>;
    fn keys_in(&self, request: RangeRequest) -> Vec<String>;
}

impl Ask for State {
    fn try_put(&mut self, request: PutRequest) -> Result<PutResponse, Error> {
        match self.apply(&command(log::command::Command::Put(request))).response? {
            Response::Put(response) => Ok(response),
            other => panic!("{other:?}"),
        }
    }

    fn try_delete(&mut self, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        match self.apply(&command(log::command::Command::DeleteRange(request))).response? {
            Response::DeleteRange(response) => Ok(response),
            other => panic!("{other:?}"),
        }
    }

    fn try_txn(&mut self, request: TxnRequest) -> Result<TxnResponse, Error> {
        match self.apply(&command(log::command::Command::Txn(request))).response? {
            Response::Txn(response) => Ok(response),
            other => panic!("{other:?}"),
        }
    }

    fn try_compact(&mut self, revision: i64) -> Result<i64, Error> {
        let request = CompactionRequest { revision, physical: false };
        match self.apply(&command(log::command::Command::Compact(request))).response? {
            Response::Compact(response) => Ok(response.header.unwrap().revision),
            other => panic!("{other:?}"),
        }
    }

    fn try_grant(&mut self, id: i64, ttl: i64) -> Result<i64, Error> {
        let request = LeaseGrantRequest { id, ttl };
        match self.apply(&command(log::command::Command::LeaseGrant(request))).response? {
            Response::LeaseGrant(response) => {
                assert_eq!((response.id, response.error.as_str()), (id, ""));
                assert_eq!(response.header.unwrap().revision, self.revision());
                Ok(response.ttl)
            }
            other => panic!("{other:?}"),
        }
    }

    fn try_revoke(&mut self, id: i64) -> Result<i64, Error> {
        let request = LeaseRevokeRequest { id };
        match self.apply(&command(log::command::Command::LeaseRevoke(request))).response? {
            Response::LeaseRevoke(response) => Ok(response.header.unwrap().revision),
            other => panic!("{other:?}"),
        }
    }

    fn events_of(&mut self, one: log::command::Command) -> Vec<Event> {
        let Applied { response, events } = self.apply(&command(one));
        response.unwrap();
        events
    }

    fn keys_in(&self, request: RangeRequest) -> Vec<String> {
        names(&self.range(&request).unwrap())
    }
}

pub(crate) fn names(response: &RangeResponse) -> Vec<String> {
    response.kvs.iter().map(name).collect()
}

pub(crate) fn name(kv: &KeyValue) -> String {
    String::from_utf8(kv.key.to_vec()).unwrap()
}

/// The kind of an event, its key and its revision.
pub(crate) fn brief(event: &Event) -> (&'static str, String, i64) {
    let kv = event.kv.as_ref().unwrap();
    (event.r#type().as_str_name(), name(kv), kv.mod_revision)
}

/// The answer to the nth operation, which must be a range.
pub(crate) fn ranged(response: &TxnResponse, n: usize) -> &RangeResponse {
    match response.responses[n].response.as_ref().unwrap() {
        response_op::Response::ResponseRange(response) => response,
        other => panic!("{other:?}"),
    }
}
