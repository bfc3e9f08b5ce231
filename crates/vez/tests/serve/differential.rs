//! The same operations on vez and on a real etcd, and the same answers, field by field.

use tonic::Status;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseLeasesRequest,
    LeaseRevokeRequest, LeaseTimeToLiveRequest, PutRequest, RangeRequest, RequestOp,
    ResponseHeader, TxnRequest, WatchCreateRequest, WatchRequest, compare, kv_client::KvClient,
    lease_client::LeaseClient, request_op, response_op, watch_client::WatchClient,
    watch_create_request::FilterType, watch_request,
};
use vez_api::mvccpb::Event;

use crate::peer;
use crate::server::Server;

/// Small sets of keys, leases and revisions, so that operations meet.
struct Dice(u64);

impl Dice {
    fn next(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn often(&mut self, one_in: u64) -> bool {
        self.next(one_in) == 0
    }

    fn key(&mut self) -> bytes::Bytes {
        let keys: [&[u8]; 9] =
            [b"a", b"a/1", b"a/2", b"a/\xff", b"b", b"b/1", b"c", b"\xff", b"\xff\xff"];
        let empty = self.often(60);
        if empty { bytes::Bytes::new() } else { keys[self.next(9) as usize].to_vec().into() }
    }

    fn end(&mut self) -> bytes::Bytes {
        let ends: [&[u8]; 8] = [b"", b"", b"", b"a0", b"b0", b"c", b"\0", b"\xff"];
        ends[self.next(8) as usize].to_vec().into()
    }

    fn revision(&mut self, now: i64) -> i64 {
        match self.next(6) {
            0..=2 => 0,
            3 => now,
            _ => (self.next(now.cast_unsigned() + 2)).cast_signed(),
        }
    }

    fn lease(&mut self) -> i64 {
        if self.often(2) { 0 } else { 100 + self.next(4).cast_signed() }
    }

    fn value(&mut self) -> bytes::Bytes {
        let length = self.next(3) as usize;
        vec![b'x' + self.next(3) as u8; length].into()
    }

    fn put(&mut self) -> PutRequest {
        let (ignore_value, ignore_lease) = (self.often(12), self.often(12));
        PutRequest {
            key: self.key(),
            value: if ignore_value && !self.often(4) { "".into() } else { self.value() },
            lease: if ignore_lease && !self.often(4) { 0 } else { self.lease() },
            prev_kv: self.often(2),
            ignore_value,
            ignore_lease,
        }
    }

    /// Without what etcd 3.4 cannot bear in a transaction: it ends when a key that the transaction
    /// deleted is put with its old value.
    fn plain_put(&mut self) -> PutRequest {
        PutRequest { ignore_value: false, ignore_lease: false, ..self.put() }
    }

    fn range(&mut self, now: i64) -> RangeRequest {
        let filter = |dice: &mut Self| if dice.often(6) { dice.revision(now) } else { 0 };
        RangeRequest {
            key: self.key(),
            range_end: self.end(),
            limit: if self.often(3) { self.next(4).cast_signed() } else { 0 },
            revision: self.revision(now),
            sort_order: self.next(3) as i32,
            sort_target: self.next(5) as i32,
            serializable: self.often(2),
            keys_only: self.often(4),
            count_only: self.often(6),
            min_mod_revision: filter(self),
            max_mod_revision: filter(self),
            min_create_revision: filter(self),
            max_create_revision: filter(self),
        }
    }

    fn delete(&mut self) -> DeleteRangeRequest {
        DeleteRangeRequest { key: self.key(), range_end: self.end(), prev_kv: self.often(2) }
    }

    fn compare(&mut self, now: i64) -> Compare {
        let target = self.next(5) as i32;
        let number = self.revision(now);
        let union = match target {
            0 => compare::TargetUnion::Version(self.next(4).cast_signed()),
            1 => compare::TargetUnion::CreateRevision(number),
            2 => compare::TargetUnion::ModRevision(number),
            3 => compare::TargetUnion::Value(self.value()),
            _ => compare::TargetUnion::Lease(self.lease()),
        };
        Compare {
            result: self.next(4) as i32,
            target,
            key: self.key(),
            target_union: (!self.often(20)).then_some(union),
            range_end: self.end(),
        }
    }

    fn operations(&mut self, now: i64, depth: u32) -> Vec<RequestOp> {
        let many = self.next(4);
        let one = |dice: &mut Self| match dice.next(8) {
            0..=2 => request_op::Request::RequestPut(dice.plain_put()),
            3..=4 => request_op::Request::RequestRange(dice.range(now)),
            5 if depth < 2 => request_op::Request::RequestTxn(dice.txn(now, depth + 1)),
            _ => request_op::Request::RequestDeleteRange(dice.delete()),
        };
        (0..many).map(|_| RequestOp { request: Some(one(self)) }).collect()
    }

    fn txn(&mut self, now: i64, depth: u32) -> TxnRequest {
        TxnRequest {
            compare: (0..self.next(3)).map(|_| self.compare(now)).collect(),
            success: self.operations(now, depth),
            failure: self.operations(now, depth),
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Put(PutRequest),
    Range(RangeRequest),
    Delete(DeleteRangeRequest),
    Txn(TxnRequest),
    Compact(CompactionRequest),
    Grant(LeaseGrantRequest),
    Revoke(LeaseRevokeRequest),
    Left(LeaseTimeToLiveRequest),
    Leases,
    Watch(WatchCreateRequest),
}

impl Operation {
    fn throw(dice: &mut Dice, now: i64, compacted: i64) -> Self {
        match dice.next(40) {
            0..=11 => Self::Put(dice.put()),
            12..=20 => Self::Range(dice.range(now)),
            21..=24 => Self::Delete(dice.delete()),
            25..=31 => Self::Txn(dice.txn(now, 0)),
            32 => {
                let revision = if dice.often(2) { now - 5 } else { dice.revision(now) };
                Self::Compact(CompactionRequest { revision, physical: dice.often(2) })
            }
            33..=34 => {
                let id = 100 + dice.next(4).cast_signed();
                Self::Grant(LeaseGrantRequest { ttl: 1000 + id, id })
            }
            35 => Self::Revoke(LeaseRevokeRequest { id: 100 + dice.next(4).cast_signed() }),
            36 => {
                let id = 100 + dice.next(4).cast_signed();
                Self::Left(LeaseTimeToLiveRequest { id, keys: dice.often(2) })
            }
            37 => Self::Leases,
            _ => Self::Watch(WatchCreateRequest {
                key: dice.key(),
                range_end: dice.end(),
                start_revision: match 1 + dice.next(now.cast_unsigned()).cast_signed() {
                    // Of a deletion at just that revision etcd 3.4 does not tell, later ones do.
                    start if start == compacted => start + 1,
                    start => start,
                },
                filters: if dice.often(3) { vec![dice.next(2) as i32] } else { vec![] },
                prev_kv: dice.often(2),
                watch_id: 0,
                ..WatchCreateRequest::default()
            }),
        }
    }
}

struct Peer {
    keys: KvClient<Channel>,
    leases: LeaseClient<Channel>,
    watches: WatchClient<Channel>,
}

impl Peer {
    async fn at(endpoint: String) -> Self {
        let channel = Channel::from_shared(endpoint).expect("an address");
        let channel = channel.connect().await.expect("it listens");
        Self {
            keys: KvClient::new(channel.clone()),
            leases: LeaseClient::new(channel.clone()),
            watches: WatchClient::new(channel),
        }
    }

    /// The answer in words that do not depend on who gave it; and the revision, if it says one.
    async fn ask(&mut self, operation: &Operation) -> (String, Option<i64>) {
        macro_rules! told {
            ($answer:expr, $plain:expr) => {
                match $answer.await {
                    Err(status) => (refusal(&status), None),
                    Ok(answer) => {
                        let mut answer = answer.into_inner();
                        let revision = plain_header(&mut answer.header);
                        ($plain)(&mut answer);
                        (format!("{answer:?}"), revision)
                    }
                }
            };
        }
        match operation.clone() {
            Operation::Put(request) => told!(self.keys.put(request), |_: &mut _| ()),
            Operation::Range(request) => told!(self.keys.range(request), |_: &mut _| ()),
            Operation::Delete(request) => told!(self.keys.delete_range(request), |_: &mut _| ()),
            Operation::Txn(request) => told!(self.keys.txn(request), plain_txn),
            Operation::Compact(request) => told!(self.keys.compact(request), |_: &mut _| ()),
            Operation::Grant(request) => told!(self.leases.lease_grant(request), |_: &mut _| ()),
            Operation::Revoke(request) => told!(self.leases.lease_revoke(request), |_: &mut _| ()),
            Operation::Left(request) => told!(
                self.leases.lease_time_to_live(request),
                |answer: &mut vez_api::etcdserverpb::LeaseTimeToLiveResponse| {
                    answer.ttl = answer.ttl.signum();
                    answer.keys.sort();
                }
            ),
            Operation::Leases => told!(
                self.leases.lease_leases(LeaseLeasesRequest {}),
                |answer: &mut vez_api::etcdserverpb::LeaseLeasesResponse| {
                    answer.leases.sort_by_key(|lease| lease.id);
                }
            ),
            Operation::Watch(request) => (self.hear(request).await, None),
        }
    }

    /// What a watch in the past hears, up to two marks that are written after it was made.
    async fn hear(&mut self, request: WatchCreateRequest) -> String {
        let is_deaf_to_deletions = request.filters.contains(&FilterType::Nodelete.into());
        let key = if request.key.is_empty() { "\0".into() } else { request.key.clone() };
        let create = watch_request::RequestUnion::CreateRequest(request);
        let (keep, held) = tokio::sync::mpsc::channel(1);
        let wish = WatchRequest { request_union: Some(create) };
        keep.send(wish).await.expect("there is room");
        let requests = tokio_stream::wrappers::ReceiverStream::new(held);
        let mut stream = self.watches.watch(requests).await.expect("a stream").into_inner();
        let mut told = vec![stream.message().await.expect("it goes on").expect("it goes on")];
        let revision = |header: Option<ResponseHeader>| header.expect("a header").revision;
        let put = PutRequest { key: key.clone(), ..PutRequest::default() };
        let put = revision(self.keys.put(put).await.expect("a put").into_inner().header);
        let delete = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
        let deleted = self.keys.delete_range(delete).await.expect("a deletion").into_inner();
        let last = if is_deaf_to_deletions { put } else { revision(deleted.header) };
        let is_last = |event: &Event| event.kv.as_ref().is_some_and(|kv| kv.mod_revision == last);
        while !told.iter().any(|answer| answer.canceled || answer.events.iter().any(is_last)) {
            told.push(stream.message().await.expect("it goes on").expect("it goes on"));
        }
        // How events are bundled into answers is nobody's business.
        let events: Vec<_> = told.iter().flat_map(|answer| &answer.events).collect();
        let ends = told.iter().filter(|answer| answer.canceled);
        let ends: Vec<_> =
            ends.map(|answer| (answer.compact_revision, &answer.cancel_reason)).collect();
        format!("{events:?} {ends:?}")
    }
}

fn refusal(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}

/// Who answered is nobody's business; how far the store had got is.
fn plain_header(header: &mut Option<ResponseHeader>) -> Option<i64> {
    let header = header.as_mut()?;
    *header = ResponseHeader { revision: header.revision, ..ResponseHeader::default() };
    Some(header.revision)
}

fn plain_txn(answer: &mut vez_api::etcdserverpb::TxnResponse) {
    for response in &mut answer.responses {
        let header = match &mut response.response {
            Some(response_op::Response::ResponseRange(inner)) => &mut inner.header,
            Some(response_op::Response::ResponsePut(inner)) => &mut inner.header,
            Some(response_op::Response::ResponseDeleteRange(inner)) => &mut inner.header,
            Some(response_op::Response::ResponseTxn(inner)) => {
                plain_txn(inner);
                &mut inner.header
            }
            None => continue,
        };
        plain_header(header);
    }
}

/// Runs one sequence on both, and says where they part.
async fn compare(seed: u64, operations: u32) {
    let Some(etcd) = peer::Server::etcd(&format!("differential-{seed}")) else { return };
    let vez = Server::vez();
    let (mut theirs, mut ours) = (Peer::at(etcd.endpoint()).await, Peer::at(vez.endpoint()).await);
    let mut dice = Dice(seed);
    let (mut now, mut compacted) = (1, 0);
    for number in 0..operations {
        let operation = Operation::throw(&mut dice, now, compacted);
        let (expected, revision) = theirs.ask(&operation).await;
        let (found, _) = ours.ask(&operation).await;
        assert_eq!(found, expected, "seed {seed}, operation {number}: {operation:?}");
        if let (Operation::Compact(request), Some(_)) = (&operation, revision) {
            compacted = request.revision;
        }
        now = revision.unwrap_or(now).max(now);
    }
}

#[tokio::test]
async fn random_operations_get_the_answers_of_etcd() {
    for seed in 0..6 {
        compare(seed, 600).await;
    }
}
