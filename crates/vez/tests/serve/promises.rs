//! What the service promises beyond etcd's API, and where its limits are.

use std::process::Command;
use std::time::Duration;

use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    DefragmentRequest, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, PutRequest,
    RangeRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchRequest, kv_client::KvClient,
    lease_client::LeaseClient, maintenance_client::MaintenanceClient, request_op,
    watch_client::WatchClient, watch_request,
};
use vez_api::v3electionpb::{CampaignRequest, election_client::ElectionClient};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::server::{Server, directory};

pub(crate) async fn connect(server: &Server) -> Channel {
    Channel::from_shared(server.endpoint())
        .expect("an address")
        .connect()
        .await
        .expect("it listens")
}

async fn grant(channel: &Channel, ids: &[i64]) {
    for &id in ids {
        let request = LeaseGrantRequest { ttl: 600, id };
        LeaseClient::new(channel.clone()).lease_grant(request).await.expect("a lease");
    }
}

pub(crate) fn put(key: &str, value: &str) -> PutRequest {
    PutRequest {
        key: key.to_owned().into(),
        value: value.to_owned().into(),
        ..PutRequest::default()
    }
}

/// How many keys begin like this.
pub(crate) async fn count(channel: &Channel, prefix: &str) -> i64 {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().expect("a prefix") += 1;
    let all = RangeRequest {
        key: prefix.to_owned().into(),
        range_end: end.into(),
        count_only: true,
        ..RangeRequest::default()
    };
    KvClient::new(channel.clone()).range(all).await.expect("it serves").into_inner().count
}

pub(crate) async fn until_count(channel: &Channel, prefix: &str, expected: i64) {
    let there = async { while count(channel, prefix).await != expected {} };
    tokio::time::timeout(Duration::from_secs(30), there).await.expect("keys come or go");
}

fn lock(channel: &Channel, lease: i64) -> impl Future<Output = Result<i64, Code>> + use<> {
    let mut locks = LockClient::new(channel.clone());
    let request = LockRequest { name: "door".into(), lease };
    async move {
        let granted = locks.lock(request).await.map_err(|status| status.code())?;
        Ok(granted.into_inner().header.expect("a header").revision)
    }
}

#[tokio::test]
async fn who_stops_waiting_leaves_the_line_and_nobody_else_does() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2]).await;
    lock(&channel, 1).await.expect("it is free");
    let waiting = tokio::spawn(lock(&channel, 2));
    until_count(&channel, "door/", 2).await;
    waiting.abort();
    until_count(&channel, "door/", 1).await;
    let mut elections = ElectionClient::new(channel.clone());
    let stand = |lease| CampaignRequest { name: "throne".into(), lease, value: "x".into() };
    elections.campaign(stand(1)).await.expect("nobody else stands");
    let request = stand(2);
    let waiting = tokio::spawn(async move { elections.campaign(request).await });
    until_count(&channel, "throne/", 2).await;
    waiting.abort();
    until_count(&channel, "throne/", 1).await;
}

/// Waits until so many calls have asked for a place with this lease.
async fn until_asked(channel: &Channel, name: &str, lease: i64, often: i64) {
    let key = format!("{name}/{lease:x}");
    let get = RangeRequest { key: key.into(), ..RangeRequest::default() };
    let mut keys = KvClient::new(channel.clone());
    let is_asked = async {
        loop {
            let found = keys.range(get.clone()).await.expect("it serves").into_inner();
            if found.kvs.first().is_some_and(|found| found.version == often) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), is_asked).await.expect("it is asked for");
}

#[tokio::test]
async fn who_asks_again_has_the_same_place_and_the_last_to_go_leaves_no_key_behind() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2]).await;
    lock(&channel, 1).await.expect("it is free");
    // In either order: the first goes first, or the second does.
    for order in [[0, 1], [1, 0]] {
        let mut calls = Vec::new();
        for often in 1..=2 {
            calls.push(tokio::spawn(lock(&channel, 2)));
            until_asked(&channel, "door", 2, often).await;
        }
        calls[order[0]].abort();
        // A write that comes after whatever that one may have said.
        lock(&channel, 1).await.expect("it holds it");
        let other = order[1];
        assert!(!calls[other].is_finished());
        assert_eq!(count(&channel, "door/").await, 2);
        calls[other].abort();
        until_count(&channel, "door/", 1).await;
    }
}

#[tokio::test]
async fn who_stands_again_and_gives_up_leaves_no_key_behind() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2]).await;
    let stand = |lease, value: &'static str| {
        let mut elections = ElectionClient::new(channel.clone());
        let stand = CampaignRequest { name: "throne".into(), lease, value: value.into() };
        async move { elections.campaign(stand).await }
    };
    stand(1, "first").await.expect("nobody else stands");
    let waiting = tokio::spawn(stand(2, "one"));
    until_asked(&channel, "throne", 2, 1).await;
    let again = tokio::spawn(stand(2, "another"));
    // It is found, and what it says is changed.
    until_asked(&channel, "throne", 2, 3).await;
    waiting.abort();
    stand(1, "first").await.expect("it leads");
    assert_eq!(count(&channel, "throne/").await, 2);
    again.abort();
    until_count(&channel, "throne/", 1).await;
}

#[tokio::test]
async fn who_waits_without_a_lease_any_more_is_refused() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2]).await;
    lock(&channel, 1).await.expect("it is free");
    let waiting = tokio::spawn(lock(&channel, 2));
    until_count(&channel, "door/", 2).await;
    let mut leases = LeaseClient::new(channel.clone());
    leases.lease_revoke(LeaseRevokeRequest { id: 2 }).await.expect("it is there");
    assert_eq!(waiting.await.expect("it ends"), Err(Code::FailedPrecondition));
    assert_eq!(lock(&channel, 2).await, Err(Code::NotFound));
    let key = "door/1".into();
    LockClient::new(channel.clone()).unlock(UnlockRequest { key }).await.expect("it is held");
    assert_eq!(count(&channel, "door/").await, 0);
}

#[tokio::test]
async fn who_keeps_a_lease_alive_hears_at_once_that_it_ended() {
    let server = Server::vez();
    let channel = connect(&server).await;
    let mut leases = LeaseClient::new(channel.clone());
    leases.lease_grant(LeaseGrantRequest { ttl: 2, id: 1 }).await.expect("a lease");
    grant(&channel, &[2]).await;
    let (keep, requests) = tokio::sync::mpsc::channel(4);
    let stream = leases.lease_keep_alive(ReceiverStream::new(requests)).await.expect("a stream");
    let mut answers = stream.into_inner();
    let mut next = async || {
        let answer = answers.message().await.expect("it goes on").expect("it goes on");
        (answer.id, answer.ttl)
    };
    for id in [1, 2, 3] {
        keep.send(LeaseKeepAliveRequest { id }).await.expect("there is room");
    }
    assert_eq!([next().await, next().await, next().await], [(1, 2), (2, 600), (3, 0)]);
    leases.lease_revoke(LeaseRevokeRequest { id: 2 }).await.expect("it is there");
    assert_eq!(next().await, (2, 0));
    // Not renewed any more: two seconds later it is over.
    assert_eq!(next().await, (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_reads_late_misses_nothing() {
    const EVENTS: i64 = 6000;
    let server = Server::vez();
    let channel = connect(&server).await;
    let create = WatchCreateRequest { key: "k".into(), ..WatchCreateRequest::default() };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = tokio::sync::mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.expect("there is room");
    // A connection of its own: what it does not read must not hold up the others.
    let mut watches = WatchClient::new(connect(&server).await);
    let stream = watches.watch(ReceiverStream::new(requests)).await.expect("a stream");
    let mut answers = stream.into_inner();
    assert!(answers.message().await.expect("it goes on").expect("it goes on").created);
    let value = "x".repeat(200);
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let (channel, request) = (channel.clone(), put("k", &value));
        writers.spawn(async move {
            for _ in 0..EVENTS / 60 {
                KvClient::new(channel.clone()).put(request.clone()).await.expect("a put");
            }
        });
    }
    writers.join_all().await;
    let mut next = 2;
    while next < EVENTS + 2 {
        let answer = answers.message().await.expect("it goes on").expect("it goes on");
        for event in answer.events {
            assert_eq!(event.kv.expect("a key").mod_revision, next);
            next += 1;
        }
    }
}

#[tokio::test]
async fn the_past_is_forgotten_and_limits_are_kept_with_a_sentence() {
    let limits = ["--history", "10", "--max-request-bytes", "1000", "--max-leases", "1"];
    let server = Server::vez_in(&directory(), &limits);
    let channel = connect(&server).await;
    let mut keys = KvClient::new(channel.clone());
    for _ in 0..50 {
        keys.put(put("k", "x")).await.expect("a put");
    }
    let past = RangeRequest { key: "k".into(), revision: 2, ..RangeRequest::default() };
    let forgotten = async {
        loop {
            if let Err(status) = keys.range(past.clone()).await {
                return status;
            }
        }
    };
    let forgotten = tokio::time::timeout(Duration::from_secs(30), forgotten).await;
    let why = forgotten.expect("it is forgotten");
    assert_eq!(why.message(), "etcdserver: mvcc: required revision has been compacted");
    let why = keys.put(put("k", &"x".repeat(2000))).await.expect_err("it is too large");
    assert_eq!(why.message(), "etcdserver: request is too large");
    grant(&channel, &[1]).await;
    let mut leases = LeaseClient::new(channel);
    let why = leases.lease_grant(LeaseGrantRequest { ttl: 9, id: 2 }).await.expect_err("too many");
    assert!(why.message().contains("no more are allowed"), "{why}");
}

#[tokio::test]
async fn too_many_operations_and_too_many_watches_are_refused_in_words() {
    let server = Server::vez_in(&directory(), &["--max-watches", "2"]);
    let channel = connect(&server).await;
    let operations = |many: usize| {
        let put = |number: usize| RequestOp {
            request: Some(request_op::Request::RequestPut(put(&format!("k{number}"), "x"))),
        };
        TxnRequest { success: (0..many).map(put).collect(), ..TxnRequest::default() }
    };
    let mut keys = KvClient::new(channel.clone());
    keys.txn(operations(128)).await.expect("it is allowed");
    let why = keys.txn(operations(129)).await.expect_err("it is not");
    assert_eq!(why.message(), "etcdserver: too many operations in txn request");
    assert_eq!(count(&channel, "k").await, 128);
    let (keep, requests) = tokio::sync::mpsc::channel(4);
    for _ in 0..3 {
        let create = WatchCreateRequest { key: "k".into(), ..WatchCreateRequest::default() };
        let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
        keep.send(WatchRequest { request_union }).await.expect("there is room");
    }
    let stream = WatchClient::new(channel).watch(ReceiverStream::new(requests)).await;
    let mut answers = stream.expect("a stream").into_inner();
    let mut next = async || answers.message().await.expect("it goes on").expect("it goes on");
    assert!(!next().await.canceled && !next().await.canceled);
    let refused = next().await;
    assert!(refused.canceled && refused.cancel_reason.contains("at most 2"), "{refused:?}");
}

/// What a watcher does not read is not kept for it: when the history has gone on, it is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_reads_too_late_is_cut_and_told_so() {
    const EVENTS: i64 = 6000;
    let server = Server::vez_in(&directory(), &["--history", "50"]);
    let channel = connect(&server).await;
    let create = WatchCreateRequest { key: "k".into(), ..WatchCreateRequest::default() };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = tokio::sync::mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.expect("there is room");
    let mut watches = WatchClient::new(connect(&server).await);
    let stream = watches.watch(ReceiverStream::new(requests)).await.expect("a stream");
    let mut answers = stream.into_inner();
    // Several times what answers and buffers may hold on their way.
    let value = "x".repeat(4000);
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let (channel, request) = (channel.clone(), put("k", &value));
        writers.spawn(async move {
            for _ in 0..EVENTS / 60 {
                KvClient::new(channel.clone()).put(request.clone()).await.expect("a put");
            }
        });
    }
    writers.join_all().await;
    let mut next = 2;
    let cut = loop {
        let answer = answers.message().await.expect("it goes on").expect("it goes on");
        for event in &answer.events {
            assert_eq!(event.kv.as_ref().expect("a key").mod_revision, next, "without a gap");
            next += 1;
        }
        if answer.canceled {
            break answer;
        }
        assert!(next < EVENTS + 2, "all of it was kept");
    };
    assert!(next < cut.compact_revision, "{} was kept, {next} was heard", cut.compact_revision);
}

/// Holder and waiter end at one moment: whoever's own lease is over gets no grant.
#[tokio::test]
async fn a_grant_whose_own_lease_is_over_is_never_returned() {
    let server = Server::vez();
    let channel = connect(&server).await;
    let mut leases = LeaseClient::new(channel.clone());
    for round in 0..4 {
        let (holder, waiter) = (10 * round + 1, 10 * round + 2);
        for id in [waiter, holder] {
            leases.lease_grant(LeaseGrantRequest { ttl: 2, id }).await.expect("a lease");
        }
        lock(&channel, holder).await.expect("it is free");
        // Asked for before the holder, it ends before the holder; nobody keeps it alive.
        let waiting = tokio::time::timeout(Duration::from_secs(30), lock(&channel, waiter)).await;
        assert_eq!(waiting.expect("it ends"), Err(Code::FailedPrecondition));
        until_count(&channel, "door/", 0).await;
    }
}

#[tokio::test]
async fn a_late_unlock_never_releases_a_newer_grant() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2]).await;
    let mut locks = LockClient::new(channel.clone());
    let unlock = |fence: Option<&str>| {
        let mut request = tonic::Request::new(UnlockRequest { key: "door/1".into() });
        if let Some(fence) = fence {
            request.metadata_mut().insert("vez-fence", fence.parse().expect("text"));
        }
        request
    };
    let mut take = async || {
        let request = LockRequest { name: "door".into(), lease: 1 };
        let granted = locks.lock(request).await.expect("it is free");
        let fence = granted.metadata().get("vez-fence").expect("a fence").clone();
        fence.to_str().expect("text").to_owned()
    };
    let first = take().await;
    let mut locks = LockClient::new(channel.clone());
    locks.unlock(unlock(Some(&first))).await.expect("it is held");
    assert_eq!(count(&channel, "door/").await, 0);
    let second = take().await;
    assert_ne!(first, second);
    // The same key again, and a second copy of the first unlock arrives.
    locks.unlock(unlock(Some(&first))).await.expect("it changes nothing");
    assert_eq!(count(&channel, "door/").await, 1);
    let why = locks.unlock(unlock(Some("soon"))).await.expect_err("it is no number");
    assert_eq!(why.code(), Code::InvalidArgument);
    locks.unlock(unlock(Some(&second))).await.expect("it is held");
    assert_eq!(count(&channel, "door/").await, 0);
    take().await;
    locks.unlock(unlock(None)).await.expect("as etcd has it");
    assert_eq!(count(&channel, "door/").await, 0);
}

/// A connection that breaks, and not only a call that is given up.
#[tokio::test]
async fn a_connection_that_breaks_leaves_no_key_behind() {
    let server = Server::vez();
    let channel = connect(&server).await;
    grant(&channel, &[1, 2, 3]).await;
    lock(&channel, 1).await.expect("it is free");
    let breaking = std::thread::spawn({
        let endpoint = server.endpoint();
        move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let other = Channel::from_shared(endpoint).expect("an address");
                let other = other.connect().await.expect("it listens");
                let waiting = [tokio::spawn(lock(&other, 2)), tokio::spawn(lock(&other, 3))];
                until_count(&other, "door/", 3).await;
                drop(waiting);
            });
            // Whatever is still under way ends with the runtime, and the connection with it.
        }
    });
    breaking.join().expect("it ends");
    until_count(&channel, "door/", 1).await;
}

/// Long names, so that whatever is kept of one shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_with_the_number_of_locks_that_were_ever_used() {
    const NAME: usize = 8000;
    const MANY: u64 = 6_000;
    let server = Server::vez_in(&directory(), &["--history", "100"]);
    let channel = connect(&server).await;
    let use_them = async |from: u64, many: u64| {
        let mut users = tokio::task::JoinSet::new();
        for user in 0..32 {
            let mut locks = LockClient::new(channel.clone());
            let lease = i64::try_from(from + user + 1).expect("it is small");
            grant(&channel, &[lease]).await;
            users.spawn(async move {
                for number in 0..many / 32 {
                    let number = from + user * many + number;
                    let name = format!("{number:0NAME$}").into();
                    let granted = locks.lock(LockRequest { name, lease }).await.expect("free");
                    let key = granted.into_inner().key;
                    locks.unlock(UnlockRequest { key }).await.expect("it is held");
                }
            });
        }
        users.join_all().await;
        // The log is forgotten, but for its end; what is left then is the same each time.
        let mut maintenance = MaintenanceClient::new(channel.clone());
        maintenance.defragment(DefragmentRequest {}).await.expect("it serves");
    };
    use_them(0, MANY).await;
    let [before, ..] = server.memory();
    use_them(1_000_000, 2 * MANY).await;
    // One copy of each name would be twice as much.
    let most = before + MANY * NAME as u64;
    let enough = async {
        while most < server.memory()[0] {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let shrunk = tokio::time::timeout(Duration::from_mins(1), enough).await;
    assert!(shrunk.is_ok(), "{before} before, {} after", server.memory()[0]);
}

/// A file system of four megabytes, while it lasts.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let place = directory();
        std::fs::create_dir_all(&place).expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "vez-test"])
            .arg(&place)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(place));
        }
        eprintln!("left out: a small file system cannot be mounted here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

#[tokio::test]
async fn a_full_disk_stops_writes_with_a_sentence_and_loses_none() {
    let Some(disk) = SmallDisk::mount() else { return };
    let place = disk.0.join("data");
    let server = Server::vez_in(&place, &[]);
    let address = server.address.clone();
    let mut keys = KvClient::new(connect(&server).await);
    let value = "x".repeat(100_000);
    let mut written = 0;
    let why = loop {
        match keys.put(put(&format!("k/{written}"), &value)).await {
            Ok(_) => written += 1,
            Err(why) => break why,
        }
    };
    assert!(why.message().contains("space") && 0 < written, "{written}: {why}");
    assert!(keys.put(put("k", "small")).await.is_err(), "it does not pretend to go on");
    let (ready, alive) = (server.page("/readyz"), server.page("/healthz"));
    assert!(ready.contains(" 503 ") && ready.contains("space"), "{ready}");
    assert!(alive.contains(" 200 "), "{alive}");
    server.kill();
    let larger = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0).status();
    assert!(larger.is_ok_and(|status| status.success()), "it can be made larger");
    let server = Server::vez_at(&place, &address, &[]);
    let channel = connect(&server).await;
    // One more may have been written and not acknowledged.
    let found = count(&channel, "k/").await;
    assert!((written..=written + 1).contains(&found), "{written} acknowledged, {found} found");
    KvClient::new(channel).put(put("k/after", "x")).await.expect("there is room again");
}
