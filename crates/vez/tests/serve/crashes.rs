//! The server killed with SIGKILL, again and again, in the middle of work.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, PutRequest, RangeRequest, kv_client::KvClient, lease_client::LeaseClient,
};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::server::{Server, directory};

const KILLS: u32 = 200;
const WRITERS: u32 = 4;
const LOCKERS: i64 = 3;

#[derive(Default)]
struct Seen {
    /// Of each writer, the last number that was acknowledged, and at which revision.
    written: Mutex<BTreeMap<u32, (u64, i64)>>,
    inside: AtomicU32,
    fence: AtomicI64,
    entries: AtomicU32,
    is_over: AtomicBool,
}

fn channel(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect_timeout(Duration::from_secs(2))
        .connect_lazy()
}

async fn write(address: String, writer: u32, seen: Arc<Seen>) {
    let mut keys = KvClient::new(channel(&address));
    let mut number = 0u64;
    while !seen.is_over.load(Ordering::Relaxed) {
        number += 1;
        let put = PutRequest {
            key: format!("writer/{writer}").into(),
            value: number.to_string().into(),
            ..PutRequest::default()
        };
        match keys.put(put).await {
            Ok(answer) => {
                let revision = answer.into_inner().header.expect("a header").revision;
                let mut written = seen.written.lock().expect("nobody panicked");
                let before = written.insert(writer, (number, revision));
                assert!(before.is_none_or(|(_, before)| before < revision), "revisions grow");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

/// Repeats a request until a server that lives answers it.
async fn insist<T, F: Future<Output = Result<T, tonic::Status>>>(mut ask: impl FnMut() -> F) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(status) if is_crash(&status) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(status) => panic!("{status:?}"),
        }
    }
}

fn is_crash(status: &tonic::Status) -> bool {
    use tonic::Code::{Cancelled, Internal, Unavailable, Unknown};
    matches!(status.code(), Unavailable | Cancelled | Unknown | Internal)
}

async fn contend(address: String, lease: i64, seen: Arc<Seen>) {
    let (locks, keys) = (LockClient::new(channel(&address)), KvClient::new(channel(&address)));
    while !seen.is_over.load(Ordering::Relaxed) {
        let request = LockRequest { name: "door".into(), lease };
        let granted = insist(|| {
            let (mut locks, request) = (locks.clone(), request.clone());
            async move { locks.lock(request).await }
        });
        let key: Bytes = granted.await.into_inner().key;
        assert_eq!(seen.inside.fetch_add(1, Ordering::SeqCst), 0, "somebody is inside already");
        let get = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let found = insist(|| {
            let (mut keys, get) = (keys.clone(), get.clone());
            async move { keys.range(get).await }
        });
        let found = found.await.into_inner();
        let fence = found.kvs.first().expect("the holder's key is there").create_revision;
        let before = seen.fence.swap(fence, Ordering::SeqCst);
        assert!(before < fence, "fence {fence} came after {before}");
        seen.entries.fetch_add(1, Ordering::Relaxed);
        seen.inside.fetch_sub(1, Ordering::SeqCst);
        insist(|| {
            let (mut locks, key) = (locks.clone(), key.clone());
            async move { locks.unlock(UnlockRequest { key }).await }
        })
        .await;
    }
}

async fn check_written(address: &str, seen: &Seen) {
    let expected = seen.written.lock().expect("nobody panicked").clone();
    let mut keys = KvClient::new(channel(address));
    for (writer, (number, revision)) in expected {
        let get = RangeRequest { key: format!("writer/{writer}").into(), ..Default::default() };
        let found = keys.range(get).await.expect("it serves").into_inner();
        let found = found.kvs.first().expect("what was acknowledged is there").clone();
        let value: u64 = String::from_utf8_lossy(&found.value).parse().expect("a number");
        assert!(number <= value, "writer {writer}: {number} was acknowledged, {value} is there");
        assert!(revision <= found.mod_revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_two_hundred_times_it_loses_nothing_it_acknowledged() {
    let place = directory();
    let mut server = Server::vez_in(&place, &[]);
    let address = server.address.clone();
    let seen = Arc::new(Seen::default());
    let mut work = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        work.spawn(write(address.clone(), writer, Arc::clone(&seen)));
    }
    let mut leases = LeaseClient::new(channel(&address));
    for id in 1..=LOCKERS {
        leases.lease_grant(LeaseGrantRequest { ttl: 3600, id }).await.expect("a lease");
        work.spawn(contend(address.clone(), id, Arc::clone(&seen)));
    }
    let mut dice = 0x5eed_u64;
    for _ in 0..KILLS {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        tokio::time::sleep(Duration::from_micros((dice >> 33) % 60_000)).await;
        let directory = server.kill();
        server = tokio::task::spawn_blocking({
            let address = address.clone();
            move || Server::vez_at(&directory, &address, &[])
        })
        .await
        .expect("it starts again");
        if let Some(Err(error)) = work.try_join_next() {
            std::panic::resume_unwind(error.into_panic());
        }
        check_written(&address, &seen).await;
    }
    seen.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = work.join_next().await {
        ended.expect("nobody saw anything wrong");
    }
    let entries = seen.entries.load(Ordering::Relaxed);
    assert!(KILLS / 4 < entries, "only {entries} entries: waiting must go on after a crash");
}
