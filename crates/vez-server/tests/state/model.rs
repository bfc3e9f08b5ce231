//! The store as a list of everything that ever happened, and every question answered by reading it
//! from its beginning. Slow, and short enough to be checked by reading.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use vez_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::{
    CompactionResponse, Compare, DeleteRangeRequest, DeleteRangeResponse, LeaseGrantResponse,
    LeaseRevokeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    ResponseHeader, ResponseOp, TxnRequest, TxnResponse, response_op,
};
use vez_api::log::{self, Leave, Left, Take, Taken, command::Command};
use vez_api::mvccpb::{Event, KeyValue};
use vez_server::state::{Applied, Error, Response};

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) revision: i64,
    pub(crate) compacted: i64,
    /// Never shortened; a deletion has version 0.
    changes: Vec<KeyValue>,
    pub(crate) leases: BTreeMap<i64, i64>,
}

type View = BTreeMap<Bytes, KeyValue>;

#[expect(clippy::unnecessary_wraps, reason = "headers are optional fields of all answers")]
fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..ResponseHeader::default() })
}

fn is_in(key: &[u8], start: &[u8], end: &[u8]) -> bool {
    match end {
        [] => key == start,
        [0] => key >= start,
        end => key >= start && key < end,
    }
}

fn put_of(key: &Bytes) -> PutRequest {
    PutRequest { key: key.clone(), ..PutRequest::default() }
}

fn compare_of(key: &Bytes, given: TargetUnion) -> Compare {
    let target = match given {
        TargetUnion::Version(_) => CompareTarget::Version,
        _ => CompareTarget::Create,
    };
    let (result, target) = (CompareResult::Equal.into(), target.into());
    Compare { key: key.clone(), result, target, target_union: Some(given), ..Compare::default() }
}

fn txn_of(compare: Vec<Compare>, success: Vec<Request>, failure: Vec<Request>) -> TxnRequest {
    let ops = |requests: Vec<Request>| {
        requests.into_iter().map(|request| RequestOp { request: Some(request) }).collect()
    };
    TxnRequest { compare, success: ops(success), failure: ops(failure) }
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { revision: 1, compacted: -1, changes: Vec::new(), leases: BTreeMap::new() }
    }

    pub(crate) fn view(&self, revision: i64) -> View {
        let mut view = View::new();
        for change in self.changes.iter().filter(|change| change.mod_revision <= revision) {
            view.insert(change.key.clone(), change.clone());
        }
        view.retain(|_, kv| kv.version > 0);
        view
    }

    /// All there is, even what the command at hand has just written.
    pub(crate) fn now(&self) -> View {
        self.view(i64::MAX)
    }

    pub(crate) fn apply(&mut self, command: &log::Command) -> Applied {
        let before = self.clone();
        let response = match command.command.as_ref().unwrap() {
            Command::Put(request) => self.put_alone(request).map(Response::Put),
            Command::DeleteRange(request) => self.delete_alone(request).map(Response::DeleteRange),
            Command::Txn(request) => self.txn(request).map(Response::Txn),
            Command::Compact(request) => self.compact(request.revision),
            Command::LeaseGrant(request) => self.grant(request.id, request.ttl),
            Command::LeaseRevoke(request) => self.revoke(request.id),
            Command::Take(request) => self.take(request),
            Command::Leave(request) => self.leave(request),
        };
        if response.is_err() {
            *self = before;
            return Applied { response, events: Vec::new() };
        }
        self.revision = self.reached();
        let new = &self.changes[before.changes.len()..];
        Applied { response, events: new.iter().map(|change| self.event(change)).collect() }
    }

    /// The revision with what the command at hand has done so far.
    fn reached(&self) -> i64 {
        self.changes.last().map_or(self.revision, |change| change.mod_revision.max(self.revision))
    }

    fn put_alone(&mut self, request: &PutRequest) -> Result<PutResponse, Error> {
        check_put(request)?;
        if request.lease != 0 && !self.leases.contains_key(&request.lease) {
            return Err(Error::LeaseNotFound);
        }
        let ignores = request.ignore_value || request.ignore_lease;
        if ignores && !self.now().contains_key(&request.key) {
            return Err(Error::KeyNotFound);
        }
        Ok(self.put(request))
    }

    /// As the transaction says it that etcd's clients use.
    fn take(&mut self, request: &Take) -> Result<Response, Error> {
        let put = PutRequest {
            key: request.key.clone(),
            value: request.value.clone(),
            lease: request.lease,
            ..PutRequest::default()
        };
        let (ignore_value, ignore_lease) = (true, true);
        let again = PutRequest { ignore_value, ignore_lease, ..put_of(&request.key) };
        let get = RangeRequest { key: request.key.clone(), ..RangeRequest::default() };
        let mut failure = vec![Request::RequestRange(get)];
        failure.extend(request.again.then_some(Request::RequestPut(again)));
        let made_never = compare_of(&request.key, TargetUnion::CreateRevision(0));
        let txn = txn_of(vec![made_never], vec![Request::RequestPut(put)], failure);
        let TxnResponse { header, succeeded, responses } = self.txn(&txn)?;
        let found = responses.into_iter().find_map(|answer| match answer.response {
            Some(response_op::Response::ResponseRange(range)) => range.kvs.into_iter().next(),
            _ => None,
        });
        assert_eq!(succeeded, found.is_none());
        Ok(Response::Take(Taken { header, found }))
    }

    fn leave(&mut self, request: &Leave) -> Result<Response, Error> {
        let delete = DeleteRangeRequest { key: request.key.clone(), ..Default::default() };
        let mut compare =
            vec![compare_of(&request.key, TargetUnion::CreateRevision(request.since))];
        let is_untouched = compare_of(&request.key, TargetUnion::Version(request.if_version));
        compare.extend((request.if_version != 0).then_some(is_untouched));
        // Of a key that is not there, nothing can have been made.
        let is_there = self.now().contains_key(&request.key);
        let delete = is_there.then_some(Request::RequestDeleteRange(delete));
        let txn = txn_of(compare, delete.into_iter().collect(), Vec::new());
        let TxnResponse { header, succeeded, .. } = self.txn(&txn)?;
        Ok(Response::Leave(Left { header, left: succeeded && is_there }))
    }

    fn put(&mut self, request: &PutRequest) -> PutResponse {
        let old = self.now().get(&request.key).cloned();
        let known = old.clone().unwrap_or_default();
        let revision = self.revision + 1;
        self.changes.push(KeyValue {
            key: request.key.clone(),
            create_revision: if old.is_some() { known.create_revision } else { revision },
            mod_revision: revision,
            version: known.version + 1,
            value: if request.ignore_value { known.value } else { request.value.clone() },
            lease: if request.ignore_lease { known.lease } else { request.lease },
        });
        PutResponse { header: header(revision), prev_kv: old.filter(|_| request.prev_kv) }
    }

    fn delete_alone(&mut self, request: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        if request.key.is_empty() { Err(Error::EmptyKey) } else { Ok(self.delete(request)) }
    }

    fn delete(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let mut found: Vec<_> = self.now().into_values().collect();
        found.retain(|kv| is_in(&kv.key, &request.key, &request.range_end));
        let mod_revision = self.revision + 1;
        for kv in &found {
            let key = kv.key.clone();
            self.changes.push(KeyValue { key, mod_revision, ..KeyValue::default() });
        }
        let deleted = i64::try_from(found.len()).unwrap();
        let prev_kvs = if request.prev_kv { found } else { Vec::new() };
        DeleteRangeResponse { header: header(self.reached()), deleted, prev_kvs }
    }

    fn compact(&mut self, revision: i64) -> Result<Response, Error> {
        if revision <= self.compacted {
            return Err(Error::Compacted);
        }
        if revision > self.revision {
            return Err(Error::FutureRevision);
        }
        self.compacted = revision;
        Ok(Response::Compact(CompactionResponse { header: header(self.revision) }))
    }

    fn grant(&mut self, id: i64, ttl: i64) -> Result<Response, Error> {
        if id == 0 {
            return Err(Error::LeaseNotFound);
        }
        if ttl > 9_000_000_000 {
            return Err(Error::LeaseTtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(Error::LeaseExists);
        }
        let ttl = if ttl < 2 { 2 } else { ttl };
        self.leases.insert(id, ttl);
        let (header, error) = (header(self.revision), String::new());
        Ok(Response::LeaseGrant(LeaseGrantResponse { header, id, ttl, error }))
    }

    fn revoke(&mut self, id: i64) -> Result<Response, Error> {
        self.leases.remove(&id).ok_or(Error::LeaseNotFound)?;
        for key in self.keys_of(id) {
            self.delete(&DeleteRangeRequest { key, ..DeleteRangeRequest::default() });
        }
        Ok(Response::LeaseRevoke(LeaseRevokeResponse { header: header(self.reached()) }))
    }

    pub(crate) fn keys_of(&self, lease: i64) -> Vec<Bytes> {
        self.now().into_values().filter(|kv| kv.lease == lease).map(|kv| kv.key).collect()
    }

    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        check_range(request)?;
        if request.revision > self.revision {
            return Err(Error::FutureRevision);
        }
        if request.revision > 0 && request.revision < self.compacted {
            return Err(Error::Compacted);
        }
        Ok(self.read(request))
    }

    fn read(&self, request: &RangeRequest) -> RangeResponse {
        let view = if request.revision <= 0 { self.now() } else { self.view(request.revision) };
        let mut kvs: Vec<_> = view.into_values().collect();
        kvs.retain(|kv| is_in(&kv.key, &request.key, &request.range_end));
        let mut response = RangeResponse { header: header(self.reached()), ..Default::default() };
        response.count = i64::try_from(kvs.len()).unwrap();
        if request.count_only {
            return response;
        }
        let (min_mod, max_mod) = (request.min_mod_revision, request.max_mod_revision);
        let (min_create, max_create) = (request.min_create_revision, request.max_create_revision);
        let filters = [min_mod, max_mod, min_create, max_create];
        let limit = usize::try_from(request.limit).unwrap_or(0);
        if request.limit > 0 && request.sort_order == 0 && filters == [0; 4] {
            kvs.truncate(limit + 1);
        }
        kvs.retain(|kv| min_mod == 0 || kv.mod_revision >= min_mod);
        kvs.retain(|kv| max_mod == 0 || kv.mod_revision <= max_mod);
        kvs.retain(|kv| min_create == 0 || kv.create_revision >= min_create);
        kvs.retain(|kv| max_create == 0 || kv.create_revision <= max_create);
        let order = |one: &KeyValue, other: &KeyValue| match request.sort_target {
            0 => one.key.cmp(&other.key),
            1 => one.version.cmp(&other.version),
            2 => one.create_revision.cmp(&other.create_revision),
            3 => one.mod_revision.cmp(&other.mod_revision),
            _ => one.value.cmp(&other.value),
        };
        // Sorting by insertion, which is what etcd's does with so few.
        for end in 1..kvs.len() {
            for at in (1..=end).rev() {
                let wanted =
                    if request.sort_order == 2 { Ordering::Greater } else { Ordering::Less };
                if order(&kvs[at], &kvs[at - 1]) == wanted {
                    kvs.swap(at, at - 1);
                }
            }
        }
        if request.limit > 0 && kvs.len() > limit {
            kvs.truncate(limit);
            response.more = true;
        }
        if request.keys_only {
            for kv in &mut kvs {
                kv.value = Bytes::new();
            }
        }
        response.kvs = kvs;
        response
    }

    pub(crate) fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, Error> {
        check_ops(request, 128)?;
        check_writes(&request.success)?;
        check_writes(&request.failure)?;
        let before = self.clone();
        before.check_txn(request, true)?;
        before.check_txn(request, false)?;
        let response = self.run(&before, request);
        Ok(TxnResponse { header: header(self.reached()), ..response })
    }

    fn way<'r>(&self, request: &'r TxnRequest) -> (bool, &'r [RequestOp]) {
        let succeeded = request.compare.iter().all(|compare| self.holds(compare));
        (succeeded, if succeeded { &request.success } else { &request.failure })
    }

    fn check_txn(&self, request: &TxnRequest, is_about_puts: bool) -> Result<(), Error> {
        for op in self.way(request).1 {
            match op.request.as_ref().unwrap() {
                Request::RequestPut(request) if is_about_puts => {
                    let ignores = request.ignore_value || request.ignore_lease;
                    if ignores && !self.now().contains_key(&request.key) {
                        return Err(Error::KeyNotFound);
                    }
                    if request.lease != 0 && !self.leases.contains_key(&request.lease) {
                        return Err(Error::LeaseNotFound);
                    }
                }
                Request::RequestRange(request) if !is_about_puts && request.revision != 0 => {
                    if request.revision > self.revision {
                        return Err(Error::FutureRevision);
                    }
                    if request.revision < self.compacted {
                        return Err(Error::Compacted);
                    }
                }
                Request::RequestTxn(request) => self.check_txn(request, is_about_puts)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn run(&mut self, before: &Self, request: &TxnRequest) -> TxnResponse {
        use response_op::Response::{ResponseDeleteRange, ResponsePut, ResponseRange, ResponseTxn};
        let (succeeded, ops) = before.way(request);
        let mut responses = Vec::new();
        for op in ops {
            let response = match op.request.as_ref().unwrap() {
                Request::RequestRange(request) => ResponseRange(self.read(request)),
                Request::RequestPut(request) => ResponsePut(self.put(request)),
                Request::RequestDeleteRange(request) => ResponseDeleteRange(self.delete(request)),
                Request::RequestTxn(request) => ResponseTxn(self.run(before, request)),
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        TxnResponse { header: header(0), succeeded, responses }
    }

    fn holds(&self, compare: &Compare) -> bool {
        let mut kvs: Vec<_> = self.now().into_values().collect();
        kvs.retain(|kv| is_in(&kv.key, &compare.key, &compare.range_end));
        if kvs.is_empty() {
            if compare.target == 3 {
                return false;
            }
            kvs.push(KeyValue::default());
        }
        kvs.iter().all(|kv| {
            let ordering = match (compare.target, compare.target_union.clone()) {
                (0, Some(TargetUnion::Version(given))) => kv.version.cmp(&given),
                (0, _) => kv.version.cmp(&0),
                (1, Some(TargetUnion::CreateRevision(given))) => kv.create_revision.cmp(&given),
                (1, _) => kv.create_revision.cmp(&0),
                (2, Some(TargetUnion::ModRevision(given))) => kv.mod_revision.cmp(&given),
                (2, _) => kv.mod_revision.cmp(&0),
                (3, Some(TargetUnion::Value(given))) => kv.value.cmp(&given),
                (3, _) => kv.value.cmp(&Bytes::new()),
                (4, Some(TargetUnion::Lease(given))) => kv.lease.cmp(&given),
                (4, _) => kv.lease.cmp(&0),
                _ => Ordering::Equal,
            };
            match compare.result {
                0 => ordering == Ordering::Equal,
                1 => ordering == Ordering::Greater,
                2 => ordering == Ordering::Less,
                3 => ordering != Ordering::Equal,
                _ => true,
            }
        })
    }

    /// What watchers may still ask for: of the compacted revision, how each key ended.
    pub(crate) fn history(&self) -> Vec<&KeyValue> {
        let is_last = |change: &KeyValue, at: usize| {
            let rest = &self.changes[at + 1..];
            !rest
                .iter()
                .any(|later| later.key == change.key && later.mod_revision == change.mod_revision)
        };
        let kept = |&(at, change): &(usize, &KeyValue)| {
            change.mod_revision > self.compacted
                || (change.mod_revision == self.compacted && is_last(change, at))
        };
        self.changes.iter().enumerate().filter(kept).map(|(_, change)| change).collect()
    }

    pub(crate) fn events_since(
        &self,
        start: i64,
        key: &[u8],
        end: &[u8],
    ) -> Result<Vec<Event>, Error> {
        if start < self.compacted {
            return Err(Error::Compacted);
        }
        let mut changes = self.history();
        changes.retain(|change| change.mod_revision >= start && is_in(&change.key, key, end));
        Ok(changes.into_iter().map(|change| self.event(change)).collect())
    }

    fn event(&self, change: &KeyValue) -> Event {
        let before = change.mod_revision - 1;
        let is_new = change.version > 0 && change.create_revision == change.mod_revision;
        let prev_kv = self.view(before).remove(&change.key);
        Event {
            r#type: i32::from(change.version == 0),
            kv: Some(change.clone()),
            prev_kv: prev_kv.filter(|_| !is_new && before >= self.compacted),
        }
    }

    /// Those under a prefix by create revision, as the recipe orders them.
    pub(crate) fn queue(&self, prefix: &[u8]) -> Vec<KeyValue> {
        let mut queue: Vec<_> = self.now().into_values().collect();
        queue.retain(|kv| kv.key.starts_with(prefix));
        queue.sort_by_key(|kv| kv.create_revision);
        queue
    }

    pub(crate) fn ahead(&self, prefix: &[u8], create_revision: i64) -> Option<KeyValue> {
        let mut queue = self.queue(prefix);
        queue.retain(|kv| kv.create_revision < create_revision);
        let last = queue.last()?.create_revision;
        queue.into_iter().find(|kv| kv.create_revision == last)
    }
}

fn check_range(request: &RangeRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        return Err(Error::EmptyKey);
    }
    let is_known = (0..3).contains(&request.sort_order) && (0..5).contains(&request.sort_target);
    if is_known { Ok(()) } else { Err(Error::InvalidSortOption) }
}

fn check_put(request: &PutRequest) -> Result<(), Error> {
    if request.key.is_empty() {
        return Err(Error::EmptyKey);
    }
    if request.ignore_value && !request.value.is_empty() {
        return Err(Error::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(Error::LeaseProvided);
    }
    Ok(())
}

fn check_ops(request: &TxnRequest, ops_max: usize) -> Result<(), Error> {
    let sizes = [request.compare.len(), request.success.len(), request.failure.len()];
    let most = *sizes.iter().max().unwrap();
    if most > ops_max {
        return Err(Error::TooManyOps);
    }
    if request.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Error::EmptyKey);
    }
    for op in request.success.iter().chain(&request.failure) {
        match &op.request {
            Some(Request::RequestRange(request)) => check_range(request)?,
            Some(Request::RequestPut(request)) => check_put(request)?,
            Some(Request::RequestDeleteRange(request)) if request.key.is_empty() => {
                return Err(Error::EmptyKey);
            }
            Some(Request::RequestDeleteRange(_)) => {}
            Some(Request::RequestTxn(request)) => check_ops(request, ops_max - most)?,
            None => return Err(Error::KeyNotFound),
        }
    }
    Ok(())
}

/// The keys put and the spans deleted, on whichever way.
type Written = (Vec<Bytes>, Vec<(Bytes, Bytes)>);

fn check_writes(ops: &[RequestOp]) -> Result<Written, Error> {
    let mut puts: Vec<Bytes> = Vec::new();
    let mut deletes: Vec<(Bytes, Bytes)> = Vec::new();
    let is_free = |key: &Bytes, puts: &[Bytes], deletes: &[(Bytes, Bytes)]| {
        let is_deleted = deletes.iter().any(|(start, end)| match end.is_empty() {
            true => key == start,
            // Even if it means that there is no end, it is compared like any other.
            false => key >= start && key < end,
        });
        if puts.contains(key) || is_deleted { Err(Error::DuplicateKey) } else { Ok(()) }
    };
    for op in ops {
        if let Some(Request::RequestDeleteRange(request)) = &op.request {
            deletes.push((request.key.clone(), request.range_end.clone()));
        }
    }
    for op in ops {
        if let Some(Request::RequestTxn(request)) = &op.request {
            let (then, then_deletes) = check_writes(&request.success)?;
            let (other, other_deletes) = check_writes(&request.failure)?;
            for key in then.iter().chain(&other) {
                is_free(key, &puts, &deletes)?;
            }
            puts.extend(then.into_iter().chain(other));
            deletes.extend(then_deletes.into_iter().chain(other_deletes));
        }
    }
    for op in ops {
        if let Some(Request::RequestPut(request)) = &op.request {
            is_free(&request.key, &puts, &deletes)?;
            puts.push(request.key.clone());
        }
    }
    Ok((puts, deletes))
}
