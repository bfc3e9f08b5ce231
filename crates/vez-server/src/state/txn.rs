//! Transactions: compare, then do the one list of operations or the other, as one step.
//!
//! All comparisons, those of nested transactions too, see the store as it was before the whole;
//! operations see what the earlier ones have done. Whatever could fail is looked at before anything
//! is done.

use std::cmp::Ordering;

use vez_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::response_op::Response;
use vez_api::etcdserverpb::{
    Compare, PutRequest, RangeRequest, RequestOp, ResponseHeader, ResponseOp, TxnRequest,
    TxnResponse,
};
use vez_api::mvccpb::KeyValue;

use super::error::Error;
use super::range::range;
use super::span::Span;
use super::write::Write;
use super::{State, header};

/// For a request that was found good.
pub(super) fn txn(write: &mut Write<'_>, request: &TxnRequest) -> Result<TxnResponse, Error> {
    let way = Way::choose(write.state, request);
    way.check(write.state)?;
    let response = way.go(&mut |op| match op {
        Request::RequestRange(request) => {
            Response::ResponseRange(range(&write.state.keys, request, write.current()))
        }
        Request::RequestPut(request) => Response::ResponsePut(write.put(request)),
        Request::RequestDeleteRange(request) => {
            Response::ResponseDeleteRange(write.delete_range(request))
        }
        Request::RequestTxn(_) => unreachable!("the way goes through it by itself"),
    });
    Ok(TxnResponse { header: header(write.current()), ..response })
}

/// For a request that was found good and writes nothing.
pub(super) fn read(state: &State, request: &TxnRequest) -> Result<TxnResponse, Error> {
    let way = Way::choose(state, request);
    way.check(state)?;
    let response = way.go(&mut |op| match op {
        Request::RequestRange(request) => {
            Response::ResponseRange(range(&state.keys, request, state.revision))
        }
        _ => unreachable!("it writes nothing"),
    });
    Ok(TxnResponse { header: header(state.revision), ..response })
}

/// Which lists of operations a transaction and those nested in it go through.
struct Way<'r> {
    succeeded: bool,
    ops: &'r [RequestOp],
    /// Of the nested transactions among the operations, in their order.
    nested: Vec<Way<'r>>,
}

impl<'r> Way<'r> {
    fn choose(state: &State, request: &'r TxnRequest) -> Self {
        let succeeded = request.compare.iter().all(|compare| holds(state, compare));
        let ops = if succeeded { &request.success } else { &request.failure };
        let nested = ops.iter().filter_map(|op| match &op.request {
            Some(Request::RequestTxn(request)) => Some(Self::choose(state, request)),
            _ => None,
        });
        Self { succeeded, ops, nested: nested.collect() }
    }

    /// All puts before all reads: if several would fail, clients get the error etcd gives.
    fn check(&self, state: &State) -> Result<(), Error> {
        self.each(&mut |op| match op {
            Request::RequestPut(request) => check_put(state, request),
            _ => Ok(()),
        })?;
        self.each(&mut |op| match op {
            Request::RequestRange(request) => check_range(state, request),
            _ => Ok(()),
        })
    }

    fn each(&self, look: &mut impl FnMut(&Request) -> Result<(), Error>) -> Result<(), Error> {
        let mut nested = self.nested.iter();
        for op in self.ops.iter().filter_map(|op| op.request.as_ref()) {
            match op {
                Request::RequestTxn(_) => nested.next().expect("chosen").each(look)?,
                op => look(op)?,
            }
        }
        Ok(())
    }

    fn go(&self, act: &mut impl FnMut(&Request) -> Response) -> TxnResponse {
        let mut nested = self.nested.iter();
        let mut responses = Vec::with_capacity(self.ops.len());
        for op in self.ops {
            let response = op.request.as_ref().map(|op| match op {
                Request::RequestTxn(_) => {
                    Response::ResponseTxn(nested.next().expect("chosen").go(act))
                }
                op => act(op),
            });
            responses.push(ResponseOp { response });
        }
        // Nested headers stay empty in etcd, too.
        let header = Some(ResponseHeader::default());
        TxnResponse { header, succeeded: self.succeeded, responses }
    }
}

fn check_put(state: &State, request: &PutRequest) -> Result<(), Error> {
    if (request.ignore_value || request.ignore_lease) && state.get(&request.key).is_none() {
        return Err(Error::KeyNotFound);
    }
    if request.lease != 0 && state.lease(request.lease).is_none() {
        return Err(Error::LeaseNotFound);
    }
    Ok(())
}

/// Stricter with negative revisions than a range outside of transactions, as etcd is.
fn check_range(state: &State, request: &RangeRequest) -> Result<(), Error> {
    match request.revision {
        0 => Ok(()),
        revision if revision > state.revision => Err(Error::FutureRevision),
        revision if revision < state.compacted => Err(Error::Compacted),
        _ => Ok(()),
    }
}

/// For all keys in the span; if there are none, for a key that was never made.
fn holds(state: &State, compare: &Compare) -> bool {
    let mut found = state.keys.now(Span::new(&compare.key, &compare.range_end)).peekable();
    if found.peek().is_some() {
        return found.all(|kv| holds_for(compare, kv));
    }
    // An empty value and none look alike on the wire, so that none equals nothing.
    compare.target != i32::from(CompareTarget::Value) && holds_for(compare, &KeyValue::default())
}

/// What a comparison does not give is 0; what it gives of another kind is not looked at.
fn holds_for(compare: &Compare, kv: &KeyValue) -> bool {
    use TargetUnion::{CreateRevision, Lease, ModRevision, Value, Version};
    let given = compare.target_union.as_ref();
    let ordering = match CompareTarget::try_from(compare.target) {
        Ok(CompareTarget::Version) => kv.version.cmp(match given {
            Some(Version(version)) => version,
            _ => &0,
        }),
        Ok(CompareTarget::Create) => kv.create_revision.cmp(match given {
            Some(CreateRevision(revision)) => revision,
            _ => &0,
        }),
        Ok(CompareTarget::Mod) => kv.mod_revision.cmp(match given {
            Some(ModRevision(revision)) => revision,
            _ => &0,
        }),
        Ok(CompareTarget::Value) => kv.value.as_ref().cmp(match given {
            Some(Value(value)) => value.as_ref(),
            _ => &[],
        }),
        Ok(CompareTarget::Lease) => kv.lease.cmp(match given {
            Some(Lease(lease)) => lease,
            _ => &0,
        }),
        Err(_) => Ordering::Equal,
    };
    match CompareResult::try_from(compare.result) {
        Ok(CompareResult::Equal) => ordering.is_eq(),
        Ok(CompareResult::NotEqual) => ordering.is_ne(),
        Ok(CompareResult::Greater) => ordering.is_gt(),
        Ok(CompareResult::Less) => ordering.is_lt(),
        Err(_) => true,
    }
}
