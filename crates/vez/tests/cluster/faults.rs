//! Members that die, hang and come back, while clients are at work.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tonic::Code;
use vez_api::etcdserverpb::{
    DefragmentRequest, PutRequest, RangeRequest, kv_client::KvClient,
    maintenance_client::MaintenanceClient,
};

use crate::history::History;
use crate::trio::Trio;

/// Chance that can be had again: `VEZ_SEED=… cargo test --test cluster NAME`.
fn chance(test: &str) -> StdRng {
    let seed = std::env::var("VEZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| rand::rng().next_u64());
    println!("{test}: VEZ_SEED={seed}");
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
        println!("killed: no write for {:?}", history.longest_gap());
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
        for member in 0..3 {
            trio.kill(member);
        }
        for member in 0..3 {
            trio.run(member);
        }
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
        println!("stopped: no write for {:?}", history.longest_gap());
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
    let mut trio = Trio::start().await;
    let history = History::begin(&trio);
    history.goes_on(20).await;
    for _ in 0..3 {
        history.longest_gap();
        let leader = trio.leader().await;
        trio.end(leader);
        // It had ended only when another led.
        assert_ne!(trio.leader().await, leader);
        history.goes_on(5).await;
        println!("handed over: no write for {:?}", history.longest_gap());
        trio.run(leader);
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test]
async fn without_a_majority_nothing_is_written_and_that_is_said_soon() {
    let mut trio = Trio::start().await;
    let put = |value: &'static str| PutRequest {
        key: "k".into(),
        value: value.into(),
        ..PutRequest::default()
    };
    KvClient::new(trio.channel(0)).put(put("before")).await.expect("all are there");
    trio.kill(1);
    trio.kill(2);
    let mut keys = KvClient::new(trio.channel(0));
    let soon = Duration::from_secs(5);
    for _ in 0..2 {
        let refused = tokio::time::timeout(soon, keys.put(put("alone"))).await;
        let refused = refused.expect("soon").expect_err("nobody agrees");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
        let refused = tokio::time::timeout(soon, keys.range(get.clone())).await;
        let refused = refused.expect("soon").expect_err("others may know better");
        assert_eq!(refused.message(), "etcdserver: no leader");
        let get = RangeRequest { serializable: true, ..get };
        let found = keys.range(get).await.expect("what it has, it says").into_inner();
        assert_eq!(found.kvs[0].value, "before");
    }
    trio.run(1);
    trio.leader().await;
    keys.put(put("after")).await.expect("two are a majority");
}

/// A member that was away for so long that the log does not reach back to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_away_for_long_gets_the_state_in_one_piece() {
    const WRITES: u64 = 12_000;
    let mut trio = Trio::new();
    trio.set_flags(vec!["--log-level".to_owned(), "debug".to_owned()]);
    trio.run_all();
    let away = (trio.leader().await + 1) % 3;
    trio.kill(away);
    let leader = trio.leader().await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..64 {
        let mut keys = KvClient::new(trio.channel(leader));
        writers.spawn(async move {
            for number in (writer..WRITES).step_by(64) {
                let (key, value) = (format!("key/{number}").into(), "x".repeat(100).into());
                keys.put(PutRequest { key, value, ..PutRequest::default() }).await.expect("a put");
            }
        });
    }
    writers.join_all().await;
    for member in (0..3).filter(|member| *member != away) {
        let mut maintenance = MaintenanceClient::new(trio.channel(member));
        maintenance.defragment(DefragmentRequest {}).await.expect("a snapshot");
    }
    trio.says(leader, "bytes of a snapshot go to member").await;
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
    let found = tokio::time::timeout(Duration::from_secs(60), found).await.expect("it catches up");
    assert_eq!(found.cast_unsigned(), WRITES);
    trio.says(away, "bytes came from the leader").await;
}
