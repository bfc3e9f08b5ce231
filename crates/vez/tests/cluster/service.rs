//! Every member serves every client.

use std::process::Command;
use std::time::Duration;

use tokio_stream::wrappers::ReceiverStream;
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseTimeToLiveRequest, PutRequest, RangeRequest,
    WatchCreateRequest, WatchRequest, kv_client::KvClient, lease_client::LeaseClient,
    watch_client::WatchClient, watch_request,
};
use vez_api::v3electionpb::{CampaignRequest, election_client::ElectionClient};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};
use vez_client::{Client, Options};

use crate::members::until_all_are_known;
use crate::server::is_there;
use crate::trio::Trio;

fn etcdctl(trio: &Trio, member: usize, args: &[&str]) -> String {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &trio.client_url(member)])
        .args(args)
        .output()
        .expect("etcdctl can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcdctl_writes_at_one_member_and_reads_at_another() {
    if !is_there("etcdctl") {
        return;
    }
    let trio = Trio::start().await;
    for member in 0..3 {
        let (key, next) = (format!("key/{member}"), (member + 1) % 3);
        etcdctl(&trio, member, &["put", &key, "value"]);
        let found = etcdctl(&trio, next, &["get", &key, "--print-value-only"]);
        assert_eq!(found, "value\n");
        assert!(etcdctl(&trio, member, &["lock", "door", "echo", "inside"]).contains("inside"));
        let told = etcdctl(&trio, next, &["del", "key/", "--prefix"]);
        assert_eq!(told, "1\n");
    }
}

#[tokio::test]
async fn a_lease_is_granted_here_kept_alive_there_and_looked_at_elsewhere() {
    let trio = Trio::start().await;
    for member in 0..3 {
        let [here, there, elsewhere] = [0, 1, 2].map(|turn| trio.channel((member + turn) % 3));
        let id = 7 + i64::try_from(member).expect("a small number");
        LeaseClient::new(here)
            .lease_grant(LeaseGrantRequest { ttl: 2, id })
            .await
            .expect("a lease");
        let (keep, requests) = tokio::sync::mpsc::channel(4);
        let stream = LeaseClient::new(there).lease_keep_alive(ReceiverStream::new(requests)).await;
        let mut answers = stream.expect("a stream").into_inner();
        let mut next = async || {
            let answer = answers.message().await.expect("it goes on").expect("it goes on");
            (answer.id, answer.ttl)
        };
        keep.send(LeaseKeepAliveRequest { id }).await.expect("there is room");
        assert_eq!(next().await, (id, 2));
        let look = LeaseTimeToLiveRequest { id, keys: true };
        let left = LeaseClient::new(elsewhere.clone()).lease_time_to_live(look).await;
        let left = left.expect("it is there").into_inner();
        assert!((1..=2).contains(&left.ttl) && left.granted_ttl == 2, "{left:?}");
        keep.send(LeaseKeepAliveRequest { id: 99 }).await.expect("there is room");
        assert_eq!(next().await, (99, 0));
        // Not kept alive any more, it ends by the leader's clock; whoever kept it alive is told.
        assert_eq!(next().await, (id, 0));
        let left = LeaseClient::new(elsewhere).lease_time_to_live(look).await;
        assert_eq!(left.expect("an answer").into_inner().ttl, -1);
    }
}

#[tokio::test]
async fn who_waits_at_one_member_has_its_turn_when_another_leaves_at_another() {
    let trio = Trio::start().await;
    let mut fence = 0;
    for member in 0..3 {
        let [here, there] = [0, 1].map(|turn| trio.channel((member + turn) % 3));
        for id in [1, 2] {
            let id = id + 10 * i64::try_from(member).expect("a small number");
            let request = LeaseGrantRequest { ttl: 60, id };
            LeaseClient::new(here.clone()).lease_grant(request).await.expect("a lease");
        }
        let lease = 10 * i64::try_from(member).expect("a small number");
        let lock = |channel, lease| async move {
            let request = LockRequest { name: "door".into(), lease };
            let granted = LockClient::new(channel).lock(request).await.expect("a turn");
            let fence = granted.metadata().get("vez-fence").and_then(|text| text.to_str().ok());
            let fence: i64 = fence.and_then(|text| text.parse().ok()).expect("a fence");
            (granted.into_inner().key, fence)
        };
        let (key, first) = lock(here.clone(), lease + 1).await;
        assert!(fence < first);
        let waiting = tokio::spawn(lock(there.clone(), lease + 2));
        let all = RangeRequest {
            key: "door/".into(),
            range_end: "door0".into(),
            count_only: true,
            ..RangeRequest::default()
        };
        let mut keys = KvClient::new(here.clone());
        while keys.range(all.clone()).await.expect("it serves").into_inner().count < 2 {}
        assert!(!waiting.is_finished());
        LockClient::new(here).unlock(UnlockRequest { key }).await.expect("it is held");
        let (key, second) = waiting.await.expect("it ends");
        assert!(first < second);
        fence = second;
        LockClient::new(there).unlock(UnlockRequest { key }).await.expect("it is held");
    }
    let stand = CampaignRequest { name: "throne".into(), lease: 0, value: "x".into() };
    for member in 0..3 {
        let mut elections = ElectionClient::new(trio.channel(member));
        let stand = CampaignRequest { name: format!("throne{member}").into(), ..stand.clone() };
        elections.campaign(stand).await.expect("nobody else stands");
    }
}

#[tokio::test]
async fn a_watcher_at_one_member_hears_what_is_written_at_the_others() {
    let trio = Trio::start().await;
    let create =
        WatchCreateRequest { key: "k".into(), start_revision: 1, ..WatchCreateRequest::default() };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = tokio::sync::mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.expect("there is room");
    let stream = WatchClient::new(trio.channel(0)).watch(ReceiverStream::new(requests)).await;
    let mut answers = stream.expect("a stream").into_inner();
    for member in [0, 1, 2, 1, 0] {
        let value = member.to_string();
        let put = PutRequest { key: "k".into(), value: value.into(), ..PutRequest::default() };
        KvClient::new(trio.channel(member)).put(put).await.expect("a put");
    }
    let mut heard = String::new();
    while heard.len() < 5 {
        let answer = answers.message().await.expect("it goes on").expect("it goes on");
        for event in answer.events {
            heard.push_str(std::str::from_utf8(&event.kv.expect("a key").value).expect("a text"));
        }
    }
    assert_eq!(heard, "01210");
}

#[tokio::test]
async fn our_client_has_its_turn_through_every_member() {
    let trio = Trio::start().await;
    let mut fence = 0;
    for member in 0..3 {
        let client = Client::connect([trio.client_url(member)], Options::default()).await;
        let session = client.expect("it listens").session(Duration::from_secs(5)).await;
        let guard = session.expect("a lease").lock("door").await.expect("it is free");
        assert!(fence < guard.fence());
        fence = guard.fence();
        guard.release().await.expect("it is ours");
    }
}

#[tokio::test]
async fn reads_and_keep_alives_write_nothing() {
    let trio = Trio::start().await;
    until_all_are_known(&trio).await;
    let leader = trio.leader().await;
    let grant = LeaseGrantRequest { ttl: 600, id: 7 };
    LeaseClient::new(trio.channel(leader)).lease_grant(grant).await.expect("a lease");
    let before = trio.term_and_index(leader).await;
    for member in 0..3 {
        let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
        let mut keys = KvClient::new(trio.channel(member));
        for _ in 0..10 {
            keys.range(get.clone()).await.expect("it serves");
        }
        let (keep, requests) = tokio::sync::mpsc::channel(1);
        keep.send(LeaseKeepAliveRequest { id: 7 }).await.expect("there is room");
        let mut leases = LeaseClient::new(trio.channel(member));
        let stream = leases.lease_keep_alive(ReceiverStream::new(requests)).await;
        let answer = stream.expect("a stream").into_inner().message().await;
        assert_eq!(answer.expect("it goes on").expect("it goes on").ttl, 600);
    }
    assert_eq!(trio.term_and_index(leader).await, before);
}
