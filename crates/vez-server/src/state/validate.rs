//! Which requests are refused whatever the store holds. The API asks before it proposes, so that
//! nonsense does not reach the log; the state asks again, so that nonsense there does no harm.

use std::collections::{BTreeMap, BTreeSet};

use vez_api::etcdserverpb::range_request::{SortOrder, SortTarget};
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest};
use vez_api::log::{self, Leave, Take};

use super::error::Error;
use super::span::Span;

/// Each list of a transaction may have as many, and what is nested has what is left of them.
pub const TXN_OPS_MAX: usize = 128;

pub fn command(command: &log::Command) -> Result<(), Error> {
    use log::command::Command;
    match &command.command {
        Some(Command::Put(request)) => put(request),
        Some(Command::DeleteRange(request)) => delete_range(request),
        Some(Command::Txn(request)) => txn(request),
        Some(Command::Take(Take { key, .. }) | Command::Leave(Leave { key, .. })) => {
            if key.is_empty() { Err(Error::EmptyKey) } else { Ok(()) }
        }
        Some(Command::Compact(_) | Command::LeaseGrant(_) | Command::LeaseRevoke(_)) => Ok(()),
        None => Err(Error::UnknownCommand),
    }
}

pub fn range(request: &RangeRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        return Err(Error::EmptyKey);
    }
    if SortOrder::try_from(request.sort_order).is_err()
        || SortTarget::try_from(request.sort_target).is_err()
    {
        return Err(Error::InvalidSortOption);
    }
    Ok(())
}

pub fn put(request: &PutRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        Err(Error::EmptyKey)
    } else if request.ignore_value && !request.value.is_empty() {
        Err(Error::ValueProvided)
    } else if request.ignore_lease && request.lease != 0 {
        Err(Error::LeaseProvided)
    } else {
        Ok(())
    }
}

pub fn delete_range(request: &DeleteRangeRequest) -> Result<(), Error> {
    if request.key.is_empty() { Err(Error::EmptyKey) } else { Ok(()) }
}

pub fn txn(request: &TxnRequest) -> Result<(), Error> {
    each_operation(request, TXN_OPS_MAX)?;
    writes(&request.success)?;
    writes(&request.failure)?;
    Ok(())
}

/// Whether a transaction writes nothing on any of its ways, and so need not go through the log.
pub fn is_read_only(request: &TxnRequest) -> bool {
    request.success.iter().chain(&request.failure).all(|op| match &op.request {
        Some(Request::RequestRange(_)) | None => true,
        Some(Request::RequestTxn(nested)) => is_read_only(nested),
        Some(Request::RequestPut(_) | Request::RequestDeleteRange(_)) => false,
    })
}

fn each_operation(request: &TxnRequest, ops_max: usize) -> Result<(), Error> {
    let longest = request.compare.len().max(request.success.len()).max(request.failure.len());
    // This also ends the descent: whatever is nested has taken at least one from the allowance.
    let ops_left = ops_max.checked_sub(longest).ok_or(Error::TooManyOps)?;
    if request.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Error::EmptyKey);
    }
    for op in request.success.iter().chain(&request.failure) {
        match &op.request {
            Some(Request::RequestRange(request)) => range(request)?,
            Some(Request::RequestPut(request)) => put(request)?,
            Some(Request::RequestDeleteRange(request)) => delete_range(request)?,
            Some(Request::RequestTxn(request)) => each_operation(request, ops_left)?,
            None => return Err(Error::KeyNotFound),
        }
    }
    Ok(())
}

/// What a list of operations may write.
#[derive(Default)]
struct Writes<'a> {
    puts: BTreeSet<&'a [u8]>,
    deleted: Deleted<'a>,
}

/// A key may be put once, and not at all where the list deletes, whichever comes first. What is
/// nested is held against the list around it and what was nested before it; of its two ways only
/// one is gone, so that both may put the same key.
fn writes(ops: &[RequestOp]) -> Result<Writes<'_>, Error> {
    let mut all = Writes::default();
    for op in ops {
        if let Some(Request::RequestDeleteRange(request)) = &op.request {
            all.deleted.insert(Span::new(&request.key, &request.range_end));
        }
    }
    for op in ops {
        if let Some(Request::RequestTxn(request)) = &op.request {
            let (then, or_else) = (writes(&request.success)?, writes(&request.failure)?);
            let either: BTreeSet<_> = then.puts.union(&or_else.puts).copied().collect();
            for key in either {
                all.put(key)?;
            }
            all.deleted.extend(then.deleted);
            all.deleted.extend(or_else.deleted);
        }
    }
    for op in ops {
        if let Some(Request::RequestPut(request)) = &op.request {
            all.put(&request.key)?;
        }
    }
    Ok(all)
}

impl<'a> Writes<'a> {
    fn put(&mut self, key: &'a [u8]) -> Result<(), Error> {
        match !self.deleted.contains(key) && self.puts.insert(key) {
            true => Ok(()),
            false => Err(Error::DuplicateKey),
        }
    }
}

/// Spans, merged where they overlap, so that a long transaction is not compared pair by pair.
#[derive(Default)]
struct Deleted<'a> {
    keys: BTreeSet<&'a [u8]>,
    /// From start to end; none overlaps another.
    spans: BTreeMap<&'a [u8], &'a [u8]>,
}

impl<'a> Deleted<'a> {
    fn insert(&mut self, span: Span<'a>) {
        match span {
            Span::One(key) => {
                self.keys.insert(key);
            }
            Span::Between(start, end) if start < end => self.insert_span(start, end),
            // etcd does not hold puts against a deletion without end, and so neither may we.
            Span::From(_) | Span::Between(..) => {}
        }
    }

    fn insert_span(&mut self, mut start: &'a [u8], mut end: &'a [u8]) {
        // The last that starts at or before the end; merged ones are in order, so are their ends.
        while let Some((&other_start, &other_end)) = self.spans.range(..=end).next_back()
            && other_end >= start
        {
            self.spans.remove(other_start);
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.spans.insert(start, end);
    }

    fn contains(&self, key: &[u8]) -> bool {
        let in_span = || self.spans.range(..=key).next_back().is_some_and(|(_, &end)| key < end);
        self.keys.contains(key) || in_span()
    }

    fn extend(&mut self, other: Deleted<'a>) {
        self.keys.extend(other.keys);
        for (start, end) in other.spans {
            self.insert_span(start, end);
        }
    }
}
