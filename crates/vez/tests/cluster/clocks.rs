//! Members whose clocks on the wall are set, by days and each for itself: nothing depends on them.

use std::fs;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;
use vez_api::etcdserverpb::{LeaseGrantRequest, LeaseTimeToLiveRequest, lease_client::LeaseClient};

use crate::faults::chance;
use crate::history::History;
use crate::server::directory;
use crate::trio::Trio;
use crate::wall_clock;

const DAY: i64 = 86_400;

/// Whole seconds; -1 if it is over.
async fn left(trio: &Trio, member: usize, id: i64) -> i64 {
    let look = LeaseTimeToLiveRequest { id, keys: false };
    loop {
        let asked = LeaseClient::new(trio.channel(member)).lease_time_to_live(look).await;
        if let Ok(answer) = asked {
            return answer.into_inner().ttl;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_are_set_end_no_lease_early_keep_none_and_let_nobody_in() {
    let mut chance = chance("clocks");
    let place = directory();
    fs::create_dir_all(&place).expect("a directory");
    let clocks = [0, 1, 2].map(|member| place.join(format!("clock-{member}")));
    let set = |member: usize, offset: i64| {
        fs::write(&clocks[member], format!("{offset:+}")).expect("a file");
    };
    let mut trio = Trio::new();
    for (member, clock) in clocks.iter().enumerate() {
        set(member, 0);
        let Some(variables) = wall_clock::read_from(clock) else { return };
        trio.set_environment(member, variables);
    }
    trio.run_all();
    let leader = trio.leader().await;
    let history = History::begin_at(&trio, Duration::from_millis(5));
    history.goes_on(10).await;
    let grant = |ttl, id| {
        let mut leases = LeaseClient::new(trio.channel(leader));
        async move { leases.lease_grant(LeaseGrantRequest { ttl, id }).await.expect("a lease") }
    };
    grant(600, 1).await;
    let granted = Instant::now();
    grant(5, 2).await;
    // Ahead, back, and each another way.
    for _ in 0..20 {
        set(chance.random_range(0..3), chance.random_range(-DAY..DAY));
        history.goes_on(1).await;
    }
    assert!(590 <= left(&trio, 0, 1).await);
    while left(&trio, leader, 2).await != -1 {
        set(chance.random_range(0..3), chance.random_range(-DAY..DAY));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lived = granted.elapsed();
    assert!((5..25).contains(&lived.as_secs()), "five seconds became {lived:?}");
    // Who leads next counts by its own clock, which says another day.
    set((leader + 1) % 3, 3 * DAY);
    set((leader + 2) % 3, -3 * DAY);
    trio.kill(leader);
    trio.leader_but(leader).await;
    assert!(590 <= left(&trio, (leader + 1) % 3, 1).await, "it has its full time again");
    trio.run(leader);
    history.goes_on(10).await;
    history.end(&trio).await;
    fs::remove_dir_all(&place).expect("it is ours");
}
