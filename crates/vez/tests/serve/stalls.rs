//! Leases while the disk hangs, the server is stopped, or somebody sets the clock: none ends early.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseTimeToLiveRequest,
    PutRequest, kv_client::KvClient, lease_client::LeaseClient,
};

use crate::cold_disk::{ColdDisk, Thaw};
use crate::promises::{connect, count, put, until_count};
use crate::server::{Server, directory, serve};
use crate::wall_clock;

/// A lease, with a key of its own under `leased/`.
async fn lease(channel: &Channel, id: i64, ttl: i64) {
    let request = LeaseGrantRequest { ttl, id };
    LeaseClient::new(channel.clone()).lease_grant(request).await.expect("a lease");
    let request = PutRequest { lease: id, ..put(&format!("leased/{id}/key"), "x") };
    KvClient::new(channel.clone()).put(request).await.expect("a key");
}

/// Whole seconds; -1 if it is over.
async fn left(channel: &Channel, id: i64) -> i64 {
    let request = LeaseTimeToLiveRequest { id, keys: false };
    let asked = LeaseClient::new(channel.clone()).lease_time_to_live(request).await;
    asked.expect("an answer").into_inner().ttl
}

/// Keeps one lease alive when told to.
struct Keeper {
    id: i64,
    ask: mpsc::Sender<LeaseKeepAliveRequest>,
    answers: Streaming<LeaseKeepAliveResponse>,
}

impl Keeper {
    async fn of(channel: &Channel, id: i64) -> Self {
        let (ask, requests) = mpsc::channel(4);
        ask.send(LeaseKeepAliveRequest { id }).await.expect("there is room");
        let requests = ReceiverStream::new(requests);
        let stream = LeaseClient::new(channel.clone()).lease_keep_alive(requests).await;
        let mut keeper = Self { id, ask, answers: stream.expect("a stream").into_inner() };
        assert_ne!(keeper.hear().await, 0, "it is there");
        keeper
    }

    async fn ask(&self) {
        self.ask.send(LeaseKeepAliveRequest { id: self.id }).await.expect("there is room");
    }

    /// The time it has again.
    async fn hear(&mut self) -> i64 {
        let answer = tokio::time::timeout(Duration::from_secs(30), self.answers.message()).await;
        answer.expect("an answer").expect("it goes on").expect("it goes on").ttl
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_disk_hangs_no_lease_ends_and_who_keeps_one_is_answered() {
    let Some(disk) = ColdDisk::mount() else { return };
    let server = Server::vez_in(&disk.place.join("data"), &[]);
    let thaw = Thaw(&disk);
    let channel = connect(&server).await;
    lease(&channel, 1, 2).await;
    lease(&channel, 2, 5).await;
    let mut keeper = Keeper::of(&channel, 1).await;
    assert!(disk.freeze());
    let frozen = Instant::now();
    let mut keys = KvClient::new(channel.clone());
    let refused = loop {
        keeper.ask().await;
        assert_eq!(keeper.hear().await, 2, "its holder is heard");
        let waited = Duration::from_millis(100);
        match tokio::time::timeout(waited, keys.put(put("probe", "x"))).await {
            Ok(answer) => break answer.expect_err("the disk is frozen"),
            Err(_) => assert!(frozen.elapsed() < Duration::from_secs(20), "it is not noticed"),
        }
    };
    assert_eq!(refused.code(), Code::Unavailable);
    assert_eq!(refused.message(), "etcdserver: request timed out");
    // Longer than the lease that nobody keeps.
    while frozen.elapsed() < Duration::from_secs(7) {
        keeper.ask().await;
        assert_eq!(keeper.hear().await, 2);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ready = server.page("/readyz");
    assert!(ready.starts_with("HTTP/1.0 503") && ready.contains("the disk"), "{ready}");
    let before = left(&channel, 2).await;
    assert!(0 < before, "it has {before} s left");
    let thawed = Instant::now();
    drop(thaw);
    until_count(&channel, "leased/2/", 0).await;
    let lived = thawed.elapsed();
    assert!(Duration::from_secs(before.cast_unsigned()) <= lived, "{before} s became {lived:?}");
    keys.put(put("after", "x")).await.expect("it writes again");
    assert!(server.page("/readyz").contains(" 200 "));
}

#[test]
fn nobody_waits_for_a_huge_page_to_be_made_empty() {
    assert_eq!(Server::vez().status(["THP_enabled:"]), [0]);
}

#[tokio::test]
async fn a_server_that_was_stopped_reads_what_holders_said_before_it_ends_their_leases() {
    let server = Server::vez();
    let channel = connect(&server).await;
    lease(&channel, 1, 2).await;
    lease(&channel, 2, 2).await;
    let mut keeper = Keeper::of(&channel, 1).await;
    server.signal(Signal::STOP);
    keeper.ask().await;
    // Longer than both leases; the question lies in the socket meanwhile.
    let silence = tokio::time::timeout(Duration::from_secs(4), keeper.answers.message()).await;
    assert!(silence.is_err(), "it is stopped");
    server.signal(Signal::CONT);
    assert_eq!(keeper.hear().await, 2, "it was not too late");
    assert_eq!(count(&channel, "leased/1/").await, 1);
    until_count(&channel, "leased/2/", 0).await;
}

#[tokio::test]
async fn after_a_crash_every_lease_has_its_full_time_again_at_once() {
    let server = Server::vez();
    let channel = connect(&server).await;
    lease(&channel, 1, 6).await;
    let spent = async {
        while 3 < left(&channel, 1).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), spent).await.expect("time passes");
    let address = server.address.clone();
    let server = Server::vez_at(&server.kill(), &address, &[]);
    let channel = connect(&server).await;
    let left = left(&channel, 1).await;
    assert!((5..=6).contains(&left), "{left} s left of 6");
}

#[tokio::test]
async fn setting_the_clock_ends_no_lease_and_keeps_none() {
    let place = directory();
    fs::create_dir_all(&place).expect("a directory");
    let (clock, said) = (place.join("clock"), place.join("said"));
    let set = |offset: &str| fs::write(&clock, offset).expect("a file");
    set("+0");
    let Some(clock_of) = wall_clock::read_from(&clock) else { return };
    let mut command = serve(&place.join("data"), "127.0.0.1:0");
    command.envs(clock_of);
    command.stderr(fs::File::create(&said).expect("a file"));
    let server = Server::start(command, &place);
    let channel = connect(&server).await;
    lease(&channel, 1, 3).await;
    lease(&channel, 2, 600).await;
    let granted = Instant::now();
    set("+86400");
    assert!((1..=3).contains(&left(&channel, 1).await), "a day later by the wall");
    assert!(590 < left(&channel, 2).await);
    set("-86400");
    until_count(&channel, "leased/1/", 0).await;
    let lived = granted.elapsed();
    assert!((2..15).contains(&lived.as_secs()), "three seconds became {lived:?}");
    assert!((580..=600).contains(&left(&channel, 2).await));
    lease(&channel, 3, 600).await;
    set("+86400");
    assert!(580 < left(&channel, 3).await);
    let said = fs::read_to_string(&said).expect("what it said");
    let end = said.lines().find(|line| line.contains("lease 1 ran out")).expect("it says so");
    let yesterday = Command::new("date").args(["-u", "-d", "yesterday", "+%F"]).output();
    let yesterday = String::from_utf8(yesterday.expect("a date").stdout).expect("a date");
    assert!(end.contains(yesterday.trim()), "it believed another day: {end}");
    assert!(!said.contains("panicked"), "{said}");
}
