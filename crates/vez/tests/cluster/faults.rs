//! Members that die, hang and come back, while clients are at work.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use vez_api::etcdserverpb::{
    DefragmentRequest, LeaseGrantRequest, PutRequest, RangeRequest, WatchCreateRequest,
    WatchRequest, kv_client::KvClient, lease_client::LeaseClient,
    maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request,
};
use vez_api::v3electionpb::{CampaignRequest, election_client::ElectionClient};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::cold_disk::{ColdDisk, Thaw};
use crate::history::History;
use crate::trio::Trio;

/// Chance that can be had again: `VEZ_SEED=… cargo test --test cluster NAME`.
pub(crate) fn chance(test: &str) -> StdRng {
    let seed = std::env::var("VEZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| rand::rng().next_u64());
    eprintln!("{test}: VEZ_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// A while in which clients do as they like.
async fn a_while(chance: &mut StdRng) {
    let time = chance.random_range(20..400);
    tokio::time::sleep(Duration::from_millis(time)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_costs_a_moment_and_nothing_that_was_acknowledged() {
    let mut chance = chance("killed");
    let mut trio = Trio::start().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    for _ in 0..4 {
        history.longest_gap();
        a_while(&mut chance).await;
        let leader = trio.leader().await;
        trio.kill(leader);
        history.goes_on(5).await;
        eprintln!("killed: no write for {:?}", history.longest_gap());
        trio.run(leader);
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_killed_at_once_they_go_on_where_they_were() {
    let mut chance = chance("all killed");
    let mut trio = Trio::start().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    for _ in 0..3 {
        a_while(&mut chance).await;
        trio.kill_all();
        trio.run_all();
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_stands_still_is_replaced_and_believes_no_longer_that_it_leads() {
    let mut chance = chance("stopped");
    let trio = Trio::start().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    for _ in 0..3 {
        history.longest_gap();
        a_while(&mut chance).await;
        let leader = trio.leader().await;
        trio.signal(leader, Signal::STOP);
        trio.leader_but(leader).await;
        history.goes_on(5).await;
        eprintln!("stopped: no write for {:?}", history.longest_gap());
        // Sometimes longer than a lease, sometimes not.
        let time = chance.random_range(0..4_000);
        tokio::time::sleep(Duration::from_millis(time)).await;
        trio.signal(leader, Signal::CONT);
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_end_hands_over_and_a_rolling_restart_is_hardly_noticed() {
    let mut trio = Trio::new();
    // So that whoever leads soon was not elected because nobody else did.
    trio.set_flags(vec!["--election-timeout".to_owned(), "6000".to_owned()]);
    trio.run_all();
    trio.leader().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    for _ in 0..3 {
        history.longest_gap();
        let leader = trio.leader().await;
        trio.end(leader);
        // It knew that another leads, which may still have to make sure of that.
        let next = timeout(Duration::from_secs(1), trio.leader_but(leader)).await;
        assert!(next.is_ok(), "it ended before another was elected");
        history.goes_on(5).await;
        eprintln!("handed over: no write for {:?}", history.longest_gap());
        trio.run(leader);
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_that_stood_still_at_the_same_time_go_on_where_they_were() {
    let trio = Trio::start().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    // Longer than anybody goes without a leader; in the end, longer than a lease.
    for time in [600, 1_500, 4_000] {
        trio.all().for_each(|member| trio.signal(member, Signal::STOP));
        tokio::time::sleep(Duration::from_millis(time)).await;
        trio.all().for_each(|member| trio.signal(member, Signal::CONT));
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

/// How soon whoever asks a member that is left alone is told so.
const SOON: Duration = Duration::from_secs(5);

/// Whoever stands for election at a member that is left alone is told so, and whoever watches
/// there and said that this matters.
async fn others_are_told_too(trio: &Trio, member: usize) {
    let stand = CampaignRequest { name: "throne".into(), lease: 0, value: "x".into() };
    let mut elections = ElectionClient::new(trio.channel(member));
    let stands = elections.campaign(stand);
    let refused = timeout(SOON, stands).await.expect("soon").expect_err("nobody agrees");
    assert_eq!(refused.message(), "etcdserver: no leader");
    let create = WatchCreateRequest { key: "k".into(), ..WatchCreateRequest::default() };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = tokio::sync::mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.expect("there is room");
    let mut request = Request::new(ReceiverStream::new(requests));
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    let mut watches = WatchClient::new(trio.channel(member));
    let hears = async {
        let mut answers = watches.watch(request).await?.into_inner();
        while answers.message().await?.is_some() {}
        Ok::<_, Status>(())
    };
    let refused = timeout(SOON, hears).await.expect("soon").expect_err("it said so");
    assert_eq!(refused.message(), "etcdserver: no leader");
}

/// The first is left alone, after this one led.
async fn leave_alone(leader: usize) {
    let mut trio = Trio::start().await;
    trio.have_lead(leader).await;
    let put = |value: &'static str| PutRequest {
        key: "k".into(),
        value: value.into(),
        ..PutRequest::default()
    };
    KvClient::new(trio.channel(0)).put(put("before")).await.expect("all are there");
    // In this order, so that the second leads to the end, if it did.
    trio.kill(2);
    trio.kill(1);
    let mut keys = KvClient::new(trio.channel(0));
    for _ in 0..2 {
        let refused = timeout(SOON, keys.put(put("alone"))).await;
        let refused = refused.expect("soon").expect_err("nobody agrees");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
        let refused = timeout(SOON, keys.range(get.clone())).await;
        let refused = refused.expect("soon").expect_err("others may know better");
        assert_eq!(refused.message(), "etcdserver: no leader");
        let get = RangeRequest { serializable: true, ..get };
        let found = keys.range(get).await.expect("what it has, it says").into_inner();
        assert_eq!(found.kvs[0].value, "before");
        others_are_told_too(&trio, 0).await;
    }
    trio.run(1);
    trio.leader().await;
    keys.put(put("after")).await.expect("two are a majority");
}

#[tokio::test]
async fn without_a_majority_nothing_is_written_and_that_is_said_soon() {
    for leader in [0, 1] {
        leave_alone(leader).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_go_on_without_two_of_them_and_wait_when_a_third_is_missing() {
    let mut trio = Trio::of(5);
    trio.run_all();
    trio.leader().await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    let dead = trio.leader().await;
    trio.kill(dead);
    trio.kill((dead + 1) % 5);
    history.goes_on(10).await;
    let leader = trio.leader().await;
    let mut others = trio.all().filter(|member| *member != leader && trio.runs(*member));
    let third = others.next().expect("two follow");
    trio.kill(third);
    let refused = async |member| {
        let put = PutRequest { key: "k".into(), ..PutRequest::default() };
        let asked = timeout(SOON, KvClient::new(trio.channel(member)).put(put)).await;
        let refused = asked.expect("soon").expect_err("two of five agree on nothing");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    };
    refused(leader).await;
    let written = history.written();
    for member in trio.all().filter(|member| trio.runs(*member)) {
        refused(member).await;
    }
    assert_eq!(history.written(), written);
    trio.run(third);
    history.goes_on(10).await;
    trio.run(dead);
    trio.run((dead + 1) % 5);
    history.goes_on(10).await;
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_disk_hangs_hands_over_and_comes_back_when_it_is_well() {
    let Some(disk) = ColdDisk::mount() else { return };
    let trio = Trio::start_with(&disk, 0).await;
    let thaw = Thaw(&disk);
    let history = History::begin(&trio);
    history.goes_on(10).await;
    assert!(disk.freeze());
    assert_ne!(trio.leader_but(0).await, 0);
    history.goes_on(10).await;
    drop(thaw);
    history.goes_on(10).await;
    history.end(&trio).await;
}

const WRITES: u64 = 12_000;

/// More entries than the log keeps; and then the state is written down by all but one.
async fn write_much(trio: &Trio, leader: usize, away: usize) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..64 {
        let mut keys = KvClient::new(trio.channel(leader));
        writers.spawn(async move {
            for number in (writer..WRITES).step_by(64) {
                let (key, value) = (format!("key/{number}").into(), "x".repeat(100).into());
                let put = PutRequest { key, value, ..PutRequest::default() };
                // On a busy machine another may come to lead meanwhile.
                while keys.put(put.clone()).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
    }
    writers.join_all().await;
    for member in (0..3).filter(|member| *member != away) {
        let mut maintenance = MaintenanceClient::new(trio.channel(member));
        maintenance.defragment(DefragmentRequest {}).await.expect("a snapshot");
    }
    trio.says(trio.leader_but(away).await, "bytes of a snapshot go to member").await;
}

fn start_talkative() -> Trio {
    let mut trio = Trio::new();
    trio.set_flags(vec!["--log-level".to_owned(), "debug".to_owned()]);
    trio.run_all();
    trio
}

const LARGE_VALUES: usize = 160;
const LARGE_BYTES: usize = 320 << 10;

/// Values that are more than all else that a server needs.
async fn write_large(trio: &Trio, leader: usize) {
    let mut keys = KvClient::new(trio.channel(leader));
    for number in 0..LARGE_VALUES {
        let (key, value) = (format!("large/{number}").into(), vec![7; LARGE_BYTES].into());
        let put = PutRequest { key, value, ..PutRequest::default() };
        while keys.put(put.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The log does not reach back to it. Neither side has all of it in memory a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_away_for_long_gets_the_state_in_one_piece() {
    let mut trio = start_talkative();
    let away = (trio.leader().await + 1) % 3;
    trio.kill(away);
    let leader = trio.leader().await;
    write_large(&trio, leader).await;
    write_much(&trio, leader, away).await;
    let others = [(away + 1) % 3, (away + 2) % 3];
    let before = others.map(|member| trio.server(member).forget_memory());
    trio.run(away);
    let mut keys = KvClient::new(trio.channel(away));
    let all = RangeRequest {
        key: "key/".into(),
        range_end: "key0".into(),
        count_only: true,
        ..RangeRequest::default()
    };
    let found = async {
        loop {
            if let Ok(found) = keys.range(all.clone()).await {
                return found.into_inner().count;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_mins(1), found).await.expect("it catches up");
    assert_eq!(found.cast_unsigned(), WRITES);
    trio.says(away, "bytes came from the leader").await;
    let all = (LARGE_VALUES * LARGE_BYTES) as u64;
    for (member, before) in others.into_iter().zip(before) {
        let more = trio.server(member).memory()[2].saturating_sub(before);
        assert!(more < all / 2, "of {all} bytes, {more} were in memory while they were sent");
    }
    let [_, program, most] = trio.server(away).memory();
    let most = most - program;
    eprintln!("received {all} bytes with {most}");
    assert!(most < 2 * all, "for {all} bytes, {most} were needed to receive them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_or_waits_at_a_member_that_gets_the_state_in_one_piece_misses_nothing() {
    let trio = start_talkative();
    let leader = trio.leader().await;
    let away = (leader + 1) % 3;
    let create = WatchCreateRequest {
        key: "key/".into(),
        range_end: "key0".into(),
        ..WatchCreateRequest::default()
    };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = tokio::sync::mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.expect("there is room");
    let stream = WatchClient::new(trio.channel(away)).watch(ReceiverStream::new(requests)).await;
    let mut answers = stream.expect("a stream").into_inner();
    assert!(answers.message().await.expect("it goes on").expect("it goes on").created);
    let (lock, mut locks) =
        (|lease| LockRequest { name: "door".into(), lease }, LockClient::new(trio.channel(leader)));
    for id in [1, 2] {
        let request = LeaseGrantRequest { ttl: 600, id };
        LeaseClient::new(trio.channel(leader)).lease_grant(request).await.expect("a lease");
    }
    let key = locks.lock(lock(1)).await.expect("it is free").into_inner().key;
    let mut waits = LockClient::new(trio.channel(away));
    let waiting = tokio::spawn(async move { waits.lock(lock(2)).await });
    let door = RangeRequest { key: "door/2".into(), ..RangeRequest::default() };
    let mut keys = KvClient::new(trio.channel(away));
    while keys.range(door.clone()).await.expect("it serves").into_inner().count < 1 {}
    trio.signal(away, Signal::STOP);
    locks.unlock(UnlockRequest { key }).await.expect("it is held");
    write_much(&trio, leader, away).await;
    trio.signal(away, Signal::CONT);
    let mut last = 0;
    let mut heard = 0;
    let all = async {
        while heard < WRITES {
            let answer = answers.message().await.expect("it goes on").expect("it goes on");
            for event in answer.events {
                let revision = event.kv.expect("a key").mod_revision;
                assert!(last < revision, "in order: {last}, then {revision}");
                (last, heard) = (revision, heard + 1);
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), all).await.expect("all is heard");
    let granted = tokio::time::timeout(Duration::from_mins(1), waiting).await;
    granted.expect("it has its turn").expect("it ends").expect("it is granted");
    trio.says(away, "bytes came from the leader").await;
}
