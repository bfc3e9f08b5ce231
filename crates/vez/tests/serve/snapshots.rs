//! Snapshots: saved while others write, restored elsewhere, and refused when they are not whole.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tonic::Code;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseLeasesRequest, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
    PutRequest, RangeRequest, RangeResponse, SnapshotRequest, kv_client::KvClient,
    lease_client::LeaseClient, maintenance_client::MaintenanceClient,
};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::server::{Server, directory, is_there};

fn snapshot(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.arg("snapshot").args(words).output().expect("it runs")
}

fn save(server: &Server, file: &str) -> Output {
    snapshot(&["save", file, "--endpoints", &server.endpoint(), "--format", "json"])
}

#[track_caller]
fn told(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

async fn connect(server: &Server) -> Channel {
    let channel = Channel::from_shared(server.endpoint()).expect("an address");
    channel.connect().await.expect("it listens")
}

/// All keys, as they were at a revision.
async fn keys(channel: &Channel, revision: i64) -> RangeResponse {
    let all = RangeRequest {
        key: "\0".into(),
        range_end: "\0".into(),
        revision,
        ..RangeRequest::default()
    };
    KvClient::new(channel.clone()).range(all).await.expect("it serves").into_inner()
}

async fn lease(channel: &Channel, id: i64) -> LeaseTimeToLiveResponse {
    let request = LeaseTimeToLiveRequest { id, keys: true };
    let answer = LeaseClient::new(channel.clone()).lease_time_to_live(request).await;
    answer.expect("it serves").into_inner()
}

/// A folder for files, gone at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = directory();
        fs::create_dir_all(&folder).expect("a directory");
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("in UTF-8").to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("in UTF-8");
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("it is there"))).collect();
        names.sort_unstable();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Four who write until told to stop, some of it with leases 1 and 2.
fn write(channel: &Channel, is_over: &Arc<AtomicBool>) -> tokio::task::JoinSet<()> {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (mut keys, is_over) = (KvClient::new(channel.clone()), Arc::clone(is_over));
        writers.spawn(async move {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (key, value) = (format!("k/{writer}/{}", number % 50), number.to_string());
                let put = PutRequest {
                    key: key.into(),
                    value: value.into(),
                    lease: number % 3,
                    ..PutRequest::default()
                };
                keys.put(put).await.expect("a put");
            }
        });
    }
    writers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_saved_while_others_write_is_all_there_when_it_is_restored() {
    let folder = Folder::new();
    let server = Server::vez();
    let channel = connect(&server).await;
    let mut leases = LeaseClient::new(channel.clone());
    for id in 1..=3 {
        leases.lease_grant(LeaseGrantRequest { ttl: 500 + id, id }).await.expect("a lease");
    }
    let mut locks = LockClient::new(channel.clone());
    let ask = |lease| LockRequest { name: "door".into(), lease };
    locks.lock(ask(1)).await.expect("it is free");
    let is_over = Arc::new(AtomicBool::new(false));
    let writers = write(&channel, &is_over);
    // Writing has begun when a few hundred are there, and goes on while it is saved.
    while keys(&channel, 0).await.kvs.len() < 150 {}
    let file = folder.file("backup");
    let saved = tokio::task::block_in_place(|| save(&server, &file));
    is_over.store(true, Ordering::Relaxed);
    writers.join_all().await;
    let saved = told(&saved);
    let revision = saved["revision"].as_i64().expect("a number");
    assert_eq!(saved["bytes"].as_u64(), fs::metadata(&file).ok().map(|found| found.len()));
    assert!(revision < keys(&channel, 0).await.header.expect("a header").revision);
    assert_eq!(told(&snapshot(&["status", &file, "--format", "json"]))["hash"], saved["hash"]);
    assert_eq!(folder.names(), ["backup"]);
    let place = folder.file("restored");
    let restored = snapshot(&["restore", &file, "--data-dir", &place, "--format", "json"]);
    let bumped = told(&restored)["revision"].as_i64().expect("a number");
    assert_eq!(bumped, revision + 1_000_000_000);
    let second = Server::vez_in(Path::new(&place), &[]);
    let other = connect(&second).await;
    let (before, after) = (keys(&channel, revision).await, keys(&other, 0).await);
    assert_eq!(before.kvs, after.kvs);
    assert_eq!(saved["keys"].as_u64(), Some(after.kvs.len() as u64));
    let (old, new) = (before.header.expect("a header"), after.header.expect("a header"));
    assert_eq!(new.revision, bumped);
    assert!(old.cluster_id != new.cluster_id && old.member_id != new.member_id);
    for id in 1..=3 {
        let after = lease(&other, id).await;
        let of_it = before.kvs.iter().filter(|kv| kv.lease == id).map(|kv| kv.key.clone());
        assert_eq!((after.granted_ttl, after.keys), (500 + id, of_it.collect()));
        assert!(490 + id < after.ttl, "its time is full again: {}", after.ttl);
    }
    let all = LeaseClient::new(other.clone()).lease_leases(LeaseLeasesRequest {}).await;
    assert_eq!(all.expect("it serves").into_inner().leases.len(), 3);
    // Who held the lock still does, and whoever comes next has a greater fence.
    let mut locks = LockClient::new(other.clone());
    let waiting = tokio::spawn(async move { locks.lock(ask(2)).await });
    while keys(&other, 0).await.kvs.iter().filter(|kv| kv.key.starts_with(b"door/")).count() < 2 {}
    assert!(!waiting.is_finished());
    let key = "door/1".into();
    LockClient::new(other).unlock(UnlockRequest { key }).await.expect("it is held");
    let granted = waiting.await.expect("it ends").expect("it is its turn");
    let fence = granted.metadata().get("vez-fence").expect("a fence").to_str().expect("text");
    assert!(bumped < fence.parse().expect("a number"), "{fence}");
    // And all of it outlives a crash of the new one.
    let second = Server::vez_in(&second.kill(), &[]);
    assert!(bumped < keys(&connect(&second).await, 0).await.header.expect("a header").revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_whole_is_refused_and_nothing_is_made_of_it() {
    let folder = Folder::new();
    let server = Server::vez();
    let mut keys = KvClient::new(connect(&server).await);
    for number in 0..40 {
        let put = PutRequest { key: format!("k{number}").into(), ..PutRequest::default() };
        keys.put(put).await.expect("a put");
    }
    let file = folder.file("backup");
    told(&save(&server, &file));
    assert!(refused(&save(&server, &file)).contains("is there already"));
    let whole = fs::read(&file).expect("it is there");
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        bytes
    };
    let (middle, last) = (whole.len() / 2, whole.len() - 1);
    let cases = [
        (flipped(0), "no snapshot of vez"),
        (flipped(9), "version"),
        (flipped(14), "checksum"),
        (flipped(middle), "checksum"),
        (flipped(last), "checksum"),
        (whole[..last].to_vec(), "checksum"),
        (whole[..middle].to_vec(), "checksum"),
        (whole[..9].to_vec(), "checksum"),
        ([&whole[..], b"more"].concat(), "checksum"),
        (b"SQLite format 3\0".to_vec(), "no snapshot of vez"),
        (Vec::new(), "no snapshot of vez"),
    ];
    let (bad, place) = (folder.file("bad"), folder.file("restored"));
    for (bytes, why) in cases {
        fs::write(&bad, &bytes).expect("it is written");
        for words in [&["status", &bad][..], &["restore", &bad, "--data-dir", &place]] {
            let said = refused(&snapshot(words));
            assert!(said.contains(why) && said.contains("bad"), "{} bytes: {said}", bytes.len());
        }
        assert_eq!(folder.names(), ["backup", "bad"]);
    }
    // Nothing is written over, and nothing is left of what cannot be made.
    let taken = folder.file("");
    assert!(refused(&snapshot(&["restore", &file, "--data-dir", &taken])).contains("already"));
    let nowhere = folder.file("backup/inside");
    refused(&snapshot(&["restore", &file, "--data-dir", &nowhere]));
    server.kill();
    let gone = ["save", &folder.file("late"), "--endpoints", "127.0.0.1:1"];
    assert!(refused(&snapshot(&gone)).contains("cannot reach"));
    assert_eq!(folder.names(), ["backup", "bad"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_saved_is_not_in_memory_a_second_time() {
    const VALUES: u64 = 48;
    let folder = Folder::new();
    let server = Server::vez();
    let mut keys = KvClient::new(connect(&server).await);
    for number in 0..VALUES {
        let (key, value) = (format!("large/{number}").into(), vec![number as u8; 1 << 20].into());
        keys.put(PutRequest { key, value, ..PutRequest::default() }).await.expect("a put");
    }
    let before = server.forget_memory();
    let file = folder.file("backup");
    let saved = told(&tokio::task::block_in_place(|| save(&server, &file)));
    assert!((VALUES << 20) < saved["bytes"].as_u64().expect("a number"));
    let [.., most] = server.memory();
    let more = most.saturating_sub(before) >> 20;
    assert!(more < VALUES / 2, "of {VALUES} MB, {more} were in memory while they were saved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_snapshots_may_be_read_at_a_time_and_the_next_when_one_is_over() {
    let server = Server::vez();
    let channel = connect(&server).await;
    let mut keys = KvClient::new(channel.clone());
    // More than waits on its way to somebody who does not read.
    for number in 0..16 {
        let (key, value) = (format!("large/{number}").into(), vec![7; 1 << 20].into());
        keys.put(PutRequest { key, value, ..PutRequest::default() }).await.expect("there is room");
    }
    let mut maintenance = MaintenanceClient::new(channel);
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(maintenance.snapshot(SnapshotRequest {}).await.expect("it is sent"));
    }
    let why = maintenance.snapshot(SnapshotRequest {}).await.expect_err("they are too many");
    assert!(why.message().contains("8 snapshots are being read already"), "{why}");
    unread.pop();
    let next = async {
        while let Err(why) = maintenance.snapshot(SnapshotRequest {}).await {
            assert_eq!(why.code(), Code::ResourceExhausted);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), next).await.expect("one is over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcds_own_client_saves_what_we_restore() {
    if !is_there("etcdctl") {
        return;
    }
    let folder = Folder::new();
    let server = Server::vez();
    let mut keys = KvClient::new(connect(&server).await);
    keys.put(PutRequest { key: "k".into(), value: "v".into(), ..PutRequest::default() })
        .await
        .expect("a put");
    let file = folder.file("backup");
    let saved = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &server.address, "snapshot", "save", &file])
        .output()
        .expect("it runs");
    assert!(saved.status.success(), "{saved:?}");
    let place = folder.file("restored");
    let exact =
        ["restore", &file, "--data-dir", &place, "--bump-revision", "0", "--format", "json"];
    assert_eq!(told(&snapshot(&exact))["revision"], 2);
    let second = Server::vez_in(Path::new(&place), &[]);
    let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
    let found = KvClient::new(connect(&second).await).range(get).await.expect("it serves");
    assert_eq!(&found.into_inner().kvs[0].value[..], b"v");
}
