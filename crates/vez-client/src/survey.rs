//! What there is, seen through the plain API: it says nothing of locks, but the keys do.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use vez_api::etcdserverpb::cluster_client::ClusterClient;
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::maintenance_client::MaintenanceClient;
use vez_api::etcdserverpb::{
    LeaseLeasesRequest, LeaseTimeToLiveRequest, MemberListRequest, RangeRequest, StatusRequest,
    TxnRequest,
};
use vez_api::mvccpb::KeyValue;

use crate::client::Client;
use crate::error::Error;
use crate::place::Entry;
use crate::wire;

/// A name somebody holds, leads, or waits for: first the holder or leader, then who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// A lease and what hangs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseInfo {
    pub id: i64,
    pub granted: Duration,
    pub left: Duration,
    pub keys: Vec<Bytes>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    pub id: u64,
    pub name: String,
    pub client_urls: Vec<String>,
    pub peer_urls: Vec<String>,
    pub is_leader: bool,
    pub is_learner: bool,
}

/// Keys in an answer.
const PAGE: i64 = 1000;

/// etcd takes at most 128 operations in a transaction.
const READS: usize = 100;

impl Client {
    /// All queues whose names begin so. A key whose last part is its own lease stands in a queue.
    pub async fn queues(&self, prefix: &str) -> Result<Vec<Queue>, Error> {
        let (keys, revision) = self.queue_keys(prefix).await?;
        let mut queues: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for keys in keys.chunks(READS) {
            let reads = keys.iter().map(|key| RangeRequest { revision, ..wire::one(key) });
            let request = TxnRequest {
                success: reads.map(wire::op_range).collect(),
                ..TxnRequest::default()
            };
            let answer = self.txn(request).await?;
            for kv in wire::ranges(answer).into_iter().flat_map(|range| range.kvs) {
                if let Some(name) = queue_of(&kv) {
                    queues.entry(name).or_default().push(Entry::new(&kv));
                }
            }
        }
        let sorted = |(name, mut entries): (String, Vec<Entry>)| {
            entries.sort_by_key(|entry| entry.fence);
            Queue { name, entries }
        };
        Ok(queues.into_iter().map(sorted).collect())
    }

    /// Without their values, which may be large and are nobody's business: a page at a time, all
    /// as of one revision.
    async fn queue_keys(&self, prefix: &str) -> Result<(Vec<Bytes>, i64), Error> {
        let mut request = RangeRequest {
            key: Bytes::copy_from_slice(if prefix.is_empty() { b"\0" } else { prefix.as_bytes() }),
            range_end: vez_api::end_of_prefix(prefix.as_bytes()),
            limit: PAGE,
            keys_only: true,
            ..RangeRequest::default()
        };
        let mut keys = Vec::new();
        loop {
            let page = self.range(request.clone()).await?;
            if request.revision == 0 {
                request.revision = page.header.map_or(0, |header| header.revision);
            }
            let last = page.kvs.last().map(|kv| kv.key.clone());
            keys.extend(page.kvs.into_iter().filter(|kv| queue_of(kv).is_some()).map(|kv| kv.key));
            match last {
                Some(last) if page.more => request.key = [&last[..], b"\0"].concat().into(),
                _ => return Ok((keys, request.revision)),
            }
        }
    }

    /// The leases, by number; what hangs on them of the first so many.
    pub async fn leases(&self, details_max: usize) -> Result<(usize, Vec<LeaseInfo>), Error> {
        let ask = |channel| async move {
            LeaseClient::new(channel).lease_leases(LeaseLeasesRequest {}).await
        };
        let mut ids: Vec<i64> =
            self.call(ask).await?.response.leases.into_iter().map(|lease| lease.id).collect();
        ids.sort_unstable();
        let mut leases = Vec::new();
        for &id in ids.iter().take(details_max) {
            let request = LeaseTimeToLiveRequest { id, keys: true };
            let ask = |channel| async move {
                LeaseClient::new(channel).lease_time_to_live(request).await
            };
            let lease = self.call(ask).await?.response;
            // One that has ended meanwhile has a negative rest.
            if let Ok(left) = u64::try_from(lease.ttl) {
                let granted = Duration::from_secs(lease.granted_ttl.max(0).cast_unsigned());
                leases.push(LeaseInfo {
                    id,
                    granted,
                    left: Duration::from_secs(left),
                    keys: lease.keys,
                });
            }
        }
        Ok((ids.len(), leases))
    }

    /// The servers, and the version of the one that answered.
    pub async fn members(&self) -> Result<(String, Vec<MemberInfo>), Error> {
        let status =
            |channel| async move { MaintenanceClient::new(channel).status(StatusRequest {}).await };
        let status = self.call(status).await?.response;
        let list = |channel| async move {
            ClusterClient::new(channel).member_list(MemberListRequest::default()).await
        };
        let members = self.call(list).await?.response.members.into_iter();
        let members = members.map(|member| MemberInfo {
            id: member.id,
            name: member.name,
            client_urls: member.client_urls,
            peer_urls: member.peer_urls,
            is_leader: member.id == status.leader,
            is_learner: member.is_learner,
        });
        Ok((status.version, members.collect()))
    }
}

/// The name of the queue that a key stands in, if it does.
fn queue_of(kv: &KeyValue) -> Option<String> {
    let (name, last) = std::str::from_utf8(&kv.key).ok()?.rsplit_once('/')?;
    (kv.lease != 0 && last == format!("{:x}", kv.lease)).then(|| name.to_owned())
}
