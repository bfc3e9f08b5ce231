//! Networks that fall apart, in part and in one direction only, and bad ones.

use std::time::Duration;

use rand::RngExt as _;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    LeaseGrantRequest, PutRequest, RangeRequest, StatusRequest, kv_client::KvClient,
    lease_client::LeaseClient, maintenance_client::MaintenanceClient,
};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::faults::chance;
use crate::history::History;
use crate::net::{Badness, Net};
use crate::trio::Trio;

/// The two that are not this one.
fn others(of: usize) -> [usize; 2] {
    [(of + 1) % 3, (of + 2) % 3]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_replaced_and_follows_when_it_is_back() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    for _ in 0..2 {
        let leader = trio.leader().await;
        for other in others(leader) {
            trio.net().part(leader, other);
        }
        trio.leader_but(leader).await;
        history.goes_on(5).await;
        trio.net().heal();
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

/// Cuts something near the leader, twice: all goes on meanwhile, and afterwards.
async fn goes_on_with(cut: impl Fn(&Net, usize)) {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    for _ in 0..2 {
        cut(trio.net(), trio.leader().await);
        history.goes_on(3).await;
        trio.net().heal();
        history.goes_on(3).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_hears_nobody_any_more_is_in_nobodys_way() {
    goes_on_with(|net, leader| others(leader).into_iter().for_each(|from| net.cut(from, leader)))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_nobody_hears_any_more_is_in_nobodys_way() {
    goes_on_with(|net, leader| others(leader).into_iter().for_each(|to| net.cut(leader, to))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_and_a_follower_that_meet_only_through_the_other_one_are_in_nobodys_way() {
    goes_on_with(|net, leader| net.part(leader, others(leader)[0])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_was_cut_off_deposes_nobody_when_it_is_back() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let away = (trio.leader().await + 1) % 3;
    for peer in others(away) {
        trio.net().part(away, peer);
    }
    // Several times, it would stand for election meanwhile, if it were let.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let leader = trio.leader_but(away).await;
    let (term, _) = trio.term_and_index(leader).await;
    trio.net().heal();
    let put = PutRequest { key: "k".into(), ..PutRequest::default() };
    KvClient::new(trio.channel(leader)).put(put).await.expect("it still leads");
    let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
    let mut keys = KvClient::new(trio.channel(away));
    let found = async { while keys.range(get.clone()).await.is_err() {} };
    tokio::time::timeout(Duration::from_mins(1), found).await.expect("it is back");
    assert_eq!(trio.leader().await, leader);
    assert_eq!(trio.term_and_index(leader).await.0, term, "nobody stood for election");
    assert_eq!(trio.term_and_index(away).await.0, term, "and it knows that");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_cut_in_whichever_direction_nobody_is_told_anything_wrong() {
    let mut chance = chance("cuts");
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    for _ in 0..8 {
        let one = chance.random_range(0..3);
        let other = others(one)[chance.random_range(0..2)];
        match chance.random_range(0..4) {
            // One that is heard, and does not hear; the other way round; a pair that meets only
            // through the third; and everybody alone.
            0 => others(one).into_iter().for_each(|from| trio.net().cut(from, one)),
            1 => others(one).into_iter().for_each(|to| trio.net().cut(one, to)),
            2 => trio.net().part(one, other),
            _ => (0..3).for_each(|one| trio.net().part(one, (one + 1) % 3)),
        }
        let time = chance.random_range(100..2_500);
        tokio::time::sleep(Duration::from_millis(time)).await;
        trio.net().heal();
        history.goes_on(3).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_bad_network_it_is_slow_and_right() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let how = Badness { delay_ms: 5, jitter_ms: 4, loss_percent: 2, swift_percent: 20 };
    if !trio.net().worsen(&how) {
        return;
    }
    let history = History::begin(&trio);
    history.goes_on(20).await;
    history.end(&trio).await;
}

/// A place in line, or the lock itself: with its fence.
async fn lock(channel: Channel, lease: i64) -> Result<i64, Status> {
    let request = LockRequest { name: "door".into(), lease };
    let granted = LockClient::new(channel).lock(request).await?;
    let fence = granted.metadata().get("vez-fence").and_then(|text| text.to_str().ok());
    Ok(fence.and_then(|text| text.parse().ok()).expect("a fence"))
}

/// The revision at which somebody took a place; 0 if nobody has it.
async fn since(channel: &Channel, lease: i64) -> i64 {
    let get = RangeRequest { key: format!("door/{lease:x}").into(), ..RangeRequest::default() };
    let found = KvClient::new(channel.clone()).range(get).await.expect("it serves").into_inner();
    found.kvs.first().map_or(0, |found| found.create_revision)
}

/// Three in line: the first at the leader, the second at a follower, the third at the other one.
async fn line_up(
    trio: &Trio,
    [leader, away, other]: [usize; 3],
) -> JoinHandle<Result<i64, Status>> {
    let channel = trio.channel(leader);
    for id in [1, 2, 3] {
        let request = LeaseGrantRequest { ttl: 600, id };
        LeaseClient::new(channel.clone()).lease_grant(request).await.expect("a lease");
    }
    lock(channel.clone(), 1).await.expect("it is free");
    let second = tokio::spawn(lock(trio.channel(away), 2));
    while since(&channel, 2).await == 0 {}
    tokio::spawn(lock(trio.channel(other), 3));
    while since(&channel, 3).await == 0 {}
    second
}

async fn unlock_first(trio: &Trio, at: usize) {
    let request = UnlockRequest { key: "door/1".into() };
    LockClient::new(trio.channel(at)).unlock(request).await.expect("it is held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_a_member_that_is_cut_off_is_told_and_finds_its_place_elsewhere() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let leader = trio.leader().await;
    let [away, other] = others(leader);
    let second = line_up(&trio, [leader, away, other]).await;
    for peer in others(away) {
        trio.net().part(away, peer);
    }
    let told = tokio::time::timeout(Duration::from_secs(10), second).await.expect("soon");
    let told = told.expect("it ends").expect_err("it cannot know whose turn it is");
    assert_eq!(told.message(), "etcdserver: no leader");
    let channel = trio.channel(leader);
    let place = since(&channel, 2).await;
    let again = tokio::spawn(lock(trio.channel(other), 2));
    unlock_first(&trio, leader).await;
    assert_eq!(again.await.expect("it ends").expect("its turn"), place, "before the third");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_given_up_at_a_member_that_is_cut_off_releases_nobody_later() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let leader = trio.leader().await;
    let [away, other] = others(leader);
    let second = line_up(&trio, [leader, away, other]).await;
    for peer in others(away) {
        trio.net().part(away, peer);
    }
    // It leaves the line when it can, which is not yet; what it said at first goes astray.
    second.abort();
    let get = RangeRequest { key: "door/2".into(), ..RangeRequest::default() };
    KvClient::new(trio.channel(away)).range(get).await.expect_err("it is alone");
    let again = tokio::spawn(lock(trio.channel(other), 2));
    unlock_first(&trio, leader).await;
    let fence = again.await.expect("it ends").expect("its turn");
    let leader = trio.leader().await;
    let index = async || {
        let mut maintenance = MaintenanceClient::new(trio.channel(leader));
        let status = maintenance.status(StatusRequest {}).await.expect("it serves");
        status.into_inner().raft_applied_index
    };
    let before = index().await;
    trio.net().heal();
    // Now it leaves: that is all there is to be written.
    let left = async { while index().await == before {} };
    tokio::time::timeout(Duration::from_mins(1), left).await.expect("it wants to leave");
    assert_eq!(since(&trio.channel(leader), 2).await, fence, "the lock is still held");
}
