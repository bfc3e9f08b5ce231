//! One member after the other is restarted, as for a new version, and no client is told more than
//! that it should ask again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Response, Status};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse, PutRequest,
    RangeRequest, kv_client::KvClient, lease_client::LeaseClient,
};
use vez_client::{Client, Options, Session};

use crate::trio::{NAMES, Trio};

/// So often a request is made again, each time at the next member; a member that ends hands over
/// first, so that there is always one that can do it.
const RETRIES: usize = 6;
const PAUSE: Duration = Duration::from_millis(100);
const TTL: Duration = Duration::from_secs(10);
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Seen {
    done: [AtomicU64; 4],
    retries: AtomicU64,
    is_over: AtomicBool,
}

impl Seen {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn note(&self, client: usize) {
        self.done[client].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when all have got on by this much.
    async fn goes_on(&self, by: u64) {
        let now = || self.done.each_ref().map(|count| count.load(Ordering::Relaxed));
        let before = now();
        let gets_on = async {
            while now().iter().zip(before).any(|(now, before)| *now < before + by) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_so = timeout(PATIENCE, gets_on).await.is_ok();
        assert!(is_so, "nothing goes on: {before:?} before, {:?} now", now());
    }
}

/// A client that asks again.
struct Asker {
    channels: Vec<Channel>,
    turn: usize,
    seen: Arc<Seen>,
}

impl Asker {
    fn new(trio: &Trio, first: usize, seen: &Arc<Seen>) -> Self {
        let channels = (0..3).map(|member| trio.channel(member)).collect();
        Self { channels, turn: first, seen: Arc::clone(seen) }
    }

    async fn ask<T, Asked>(&mut self, ask: impl Fn(Channel) -> Asked) -> T
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let mut told = Vec::new();
        while told.len() <= RETRIES {
            let channel = self.channels[self.turn % 3].clone();
            match timeout(Duration::from_secs(5), ask(channel)).await {
                Ok(Ok(answer)) => return answer.into_inner(),
                Ok(Err(status)) => told.push(status.message().to_owned()),
                Err(_) => told.push("nothing".to_owned()),
            }
            self.turn += 1;
            self.seen.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        panic!("no retry hides it: {told:?}");
    }
}

async fn write_and_read(mut asker: Asker, client: usize) {
    let mut number = 0;
    while !asker.seen.is_over() {
        number += 1;
        let (key, value) = (format!("rolling/{client}"), number.to_string());
        let put =
            PutRequest { key: key.clone().into(), value: value.into(), ..PutRequest::default() };
        asker
            .ask(|channel| {
                let put = put.clone();
                async move { KvClient::new(channel).put(put).await }
            })
            .await;
        let get = RangeRequest { key: key.into(), ..RangeRequest::default() };
        let found = asker
            .ask(|channel| {
                let get = get.clone();
                async move { KvClient::new(channel).range(get).await }
            })
            .await;
        assert_eq!(found.kvs[0].value, put.value, "what was acknowledged is read");
        asker.seen.note(client);
    }
}

async fn grant_and_revoke(mut asker: Asker, client: usize) {
    let mut id = 1_000;
    while !asker.seen.is_over() {
        id += 1;
        // A lease that was granted before is as good.
        let grant = move |channel| async move {
            let request = LeaseGrantRequest { ttl: 60, id };
            match LeaseClient::new(channel).lease_grant(request).await {
                Err(status) if status.message().contains("already exists") => {
                    Ok(Response::new(LeaseGrantResponse::default()))
                }
                answer => answer,
            }
        };
        asker.ask(grant).await;
        let revoke = move |channel| async move {
            match LeaseClient::new(channel).lease_revoke(LeaseRevokeRequest { id }).await {
                Err(status) if status.message().contains("not found") => {
                    Ok(Response::new(LeaseRevokeResponse::default()))
                }
                answer => answer,
            }
        };
        asker.ask(revoke).await;
        asker.seen.note(client);
    }
}

/// Through our own client, which asks again by itself: nothing at all goes wrong.
async fn take_turns(session: Session, client: usize, seen: Arc<Seen>) {
    while !seen.is_over() {
        let guard = session.lock("turns").await.expect("a turn");
        guard.release().await.expect("it is ours");
        seen.note(client);
    }
    assert!(session.is_alive());
}

async fn session(trio: &Trio, first: usize) -> Session {
    let client = Client::connect(trio.endpoints_from(first), Options::default()).await;
    client.expect("it listens").session(TTL).await.expect("a lease")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_costs_no_client_more_than_a_retry() {
    let mut trio = Trio::start().await;
    let (seen, mut clients) = (Arc::new(Seen::default()), JoinSet::new());
    clients.spawn(write_and_read(Asker::new(&trio, 0, &seen), 0));
    clients.spawn(grant_and_revoke(Asker::new(&trio, 1, &seen), 1));
    for client in [2, 3] {
        clients.spawn(take_turns(session(&trio, client).await, client, Arc::clone(&seen)));
    }
    let holder = session(&trio, 1).await;
    let held = holder.lock("held").await.expect("it is free");
    let waiter = session(&trio, 2).await;
    let waiting = tokio::spawn(async move { waiter.lock("held").await });
    seen.goes_on(10).await;
    for member in [0, 1, 2, 0, 1, 2] {
        let was_leader = trio.leader().await == member;
        block_in_place(|| trio.end(member));
        seen.goes_on(5).await;
        block_in_place(|| trio.run(member));
        // Whoever restarts machines waits for one before the next.
        let get = RangeRequest { key: "rolling/0".into(), ..RangeRequest::default() };
        let well = async {
            while KvClient::new(trio.channel(member)).range(get.clone()).await.is_err() {}
        };
        timeout(PATIENCE, well).await.expect("it follows again");
        seen.goes_on(5).await;
        let retries = seen.retries.swap(0, Ordering::Relaxed);
        eprintln!("{} (led: {was_leader}): {retries} retries", NAMES[member]);
    }
    seen.is_over.store(true, Ordering::Relaxed);
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended.expect("no client was told what it could not mend");
        }
    };
    timeout(PATIENCE, all).await.expect("all clients come to an end");
    assert!(!waiting.is_finished(), "it is held all the time");
    held.release().await.expect("it is still ours");
    let granted = timeout(PATIENCE, waiting).await.expect("its turn").expect("it ends");
    granted.expect("it waited all the time").release().await.expect("it is ours");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_are_asked_to_end_at_once_end_without_a_complaint() {
    for _ in 0..3 {
        let mut trio = Trio::start().await;
        for member in 0..3 {
            trio.signal(member, Signal::TERM);
        }
        for (member, name) in NAMES.iter().enumerate().take(3) {
            assert!(trio.ended(member).await.success());
            let said = trio.said(member);
            assert!(!said.contains("ERROR"), "{name}: {said}");
        }
    }
}
