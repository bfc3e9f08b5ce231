//! Who belongs to a cluster, and who does not.

use std::process::Output;
use std::time::Duration;

use tokio::time::Instant;
use vez_api::etcdserverpb::{
    MemberRemoveRequest, PutRequest, RangeRequest, cluster_client::ClusterClient,
    kv_client::KvClient,
};

use crate::history::History;
use crate::server::is_there;
use crate::trio::{NAMES, Trio};

#[track_caller]
fn works(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `vez member list` says of somebody: number, name, role and so on.
fn listed(trio: &Trio, name: &str) -> Option<Vec<String>> {
    let list = works(&trio.vez(&["member", "list"]));
    let lines = list.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    lines.into_iter().find(|words| words.get(1).is_some_and(|found| found == name))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until somebody is called so, and has this role.
async fn until_role(trio: &Trio, name: &str, roles: &[&str]) {
    let is_so = || {
        let words = listed(trio, name);
        words.is_some_and(|words| roles.contains(&words[2].as_str()))
    };
    until(&format!("{name} is one of {roles:?}"), is_so).await;
}

/// Waits until each of the first three has said where clients find it, which is the last thing
/// that members have to write.
pub(crate) async fn until_all_are_known(trio: &Trio) {
    let is_known = |name: &&str| listed(trio, name).is_some_and(|words| words[6] != "-");
    until("all say where they are", || NAMES[..3].iter().all(&is_known)).await;
}

async fn put(trio: &Trio, member: usize, key: &'static str) {
    let put = PutRequest { key: key.into(), ..PutRequest::default() };
    KvClient::new(trio.channel(member)).put(put).await.expect("there is a majority");
}

async fn has(trio: &Trio, member: usize, key: &'static str) -> bool {
    let get = RangeRequest { key: key.into(), ..RangeRequest::default() };
    let found = KvClient::new(trio.channel(member)).range(get).await;
    found.is_ok_and(|found| found.into_inner().count == 1)
}

#[tokio::test]
async fn members_make_themselves_known_without_a_complaint() {
    for _ in 0..3 {
        let trio = Trio::start().await;
        let names = &NAMES[..3];
        until("all are known by name", || names.iter().all(|name| listed(&trio, name).is_some()))
            .await;
        for (member, name) in names.iter().enumerate() {
            let said = trio.said(member);
            assert!(!said.contains("ERROR"), "{name}: {said}");
        }
    }
}

#[tokio::test]
async fn a_member_with_another_token_is_refused_with_a_reason() {
    let mut trio = Trio::start().await;
    trio.kill(2);
    trio.lose(2);
    let cluster = trio.initial_cluster();
    trio.run_with(2, &["--initial-cluster", &cluster, "--initial-cluster-token", "another"]);
    trio.says(2, "were the members started with different --initial-cluster").await;
    let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
    let refused = KvClient::new(trio.channel(2)).range(get).await.expect_err("it is alone");
    assert_eq!(refused.message(), "etcdserver: no leader");
    trio.kill(2);
    put(&trio, 0, "others").await;
}

/// These are the steps of docs/cluster.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_machine_is_replaced_step_by_step_while_others_go_on() {
    let mut trio = Trio::start().await;
    for name in &NAMES[..3] {
        until_role(&trio, name, &["leader", "follower"]).await;
    }
    let history = History::begin(&trio);
    history.goes_on(10).await;
    let dead = trio.leader().await;
    trio.kill(dead);
    trio.lose(dead);
    trio.leader().await;
    let id = listed(&trio, NAMES[dead]).expect("it still belongs to them").swap_remove(0);
    works(&trio.vez(&["member", "remove", &id]));
    assert_eq!(listed(&trio, NAMES[dead]), None);
    let url = trio.peer_url(3);
    let said = works(&trio.vez(&["member", "add", &url, "--name", NAMES[3]]));
    let command = said.lines().last().expect("it says how to start it");
    let flags: Vec<_> = command.split_whitespace().skip_while(|word| *word != NAMES[3]).collect();
    trio.run_with(3, &flags[1..]);
    until_role(&trio, NAMES[3], &["follower", "leader"]).await;
    history.goes_on(10).await;
    let stay: Vec<_> = (0..4).filter(|member| *member != dead).collect();
    history.end_at(&trio, &stay).await;
    // The new one counts: without another, it is half of a majority.
    let other = (0..3).find(|member| *member != dead).expect("two are left");
    trio.kill(other);
    trio.leader().await;
    put(&trio, 3, "after").await;
}

#[tokio::test]
async fn a_removed_member_ends_and_does_not_come_back() {
    let mut trio = Trio::start().await;
    for name in &NAMES[..3] {
        until_role(&trio, name, &["leader", "follower"]).await;
    }
    let leader = trio.leader().await;
    let id = listed(&trio, NAMES[leader]).expect("it leads").swap_remove(0);
    works(&trio.vez(&["member", "remove", &id]));
    assert!(!trio.ended(leader).await.success());
    trio.says(leader, "this member has been removed from the cluster").await;
    put(&trio, trio.leader().await, "after").await;
    trio.run(leader);
    assert!(!trio.ended(leader).await.success());
    // Two are left, of which none may go while the other does not answer.
    let (leader, other) = {
        let leader = trio.leader().await;
        let others = (0..3).filter(|member| *member != leader);
        let mut others = others.filter(|member| listed(&trio, NAMES[*member]).is_some());
        (leader, others.next().expect("two are left"))
    };
    let id = listed(&trio, NAMES[leader]).expect("it leads").swap_remove(0);
    trio.kill(other);
    let why = refused(&trio.vez(&["member", "remove", &id]));
    assert!(!why.is_empty());
}

#[tokio::test]
async fn a_learner_votes_when_it_is_promoted_and_a_member_may_move() {
    let mut trio = Trio::start().await;
    for name in &NAMES[..3] {
        until_role(&trio, name, &["leader", "follower"]).await;
    }
    put(&trio, 0, "before").await;
    let url = trio.peer_url(3);
    let why = refused(&trio.vez(&["member", "add", &trio.peer_url(1)]));
    assert!(why.contains("Peer URLs already exists"), "{why}");
    let said = works(&trio.vez(&["member", "add", &url, "--learner", "--name", NAMES[3]]));
    let id = said.split(' ').nth(1).expect("it has a number").to_owned();
    let why = refused(&trio.vez(&["member", "promote", &id]));
    assert!(why.contains("in sync with leader"), "{why}");
    let cluster = format!("{},{}={url}", trio.initial_cluster(), NAMES[3]);
    let state = "--initial-cluster-state";
    trio.run_with(3, &["--initial-cluster", &cluster, state, "existing"]);
    until_role(&trio, NAMES[3], &["learner"]).await;
    assert!(has(&trio, 3, "before").await, "a learner has what the others have");
    works(&trio.vez(&["member", "promote", &id]));
    until_role(&trio, NAMES[3], &["follower", "leader"]).await;
    let why = refused(&trio.vez(&["member", "promote", &id]));
    assert!(why.contains("can only promote a learner"), "{why}");
    let why = refused(&trio.vez(&["member", "promote", "1"]));
    assert!(why.contains("member not found"), "{why}");
    // It moves: what it was told at first does not count any more.
    trio.kill(3);
    let moved = trio.peer_url(9);
    works(&trio.vez(&["member", "update", &id, &moved]));
    trio.run_with(3, &["--listen-peer-urls", &moved]);
    put(&trio, 0, "moved").await;
    let found = async { while !has(&trio, 3, "moved").await {} };
    tokio::time::timeout(Duration::from_mins(1), found).await.expect("it is found");
}

/// What `vez member list` says of whom etcdctl calls by this number.
fn line_of(trio: &Trio, id: &str) -> Option<String> {
    let list = works(&trio.vez(&["member", "list"]));
    let id = format!("{:016x}", u64::from_str_radix(id, 16).expect("a number"));
    list.lines().find(|line| line.starts_with(&id)).map(str::to_owned)
}

#[tokio::test]
async fn etcdctl_adds_a_learner_lets_it_vote_says_where_it_is_and_removes_it() {
    if !is_there("etcdctl") {
        return;
    }
    let mut trio = Trio::start().await;
    for name in &NAMES[..3] {
        until_role(&trio, name, &["leader", "follower"]).await;
    }
    put(&trio, 0, "before").await;
    let (name, url, moved) = (NAMES[3], trio.peer_url(3), trio.peer_url(9));
    let at = |url: &str| format!("--peer-urls={url}");
    let said = works(&trio.etcdctl(&["member", "add", name, &at(&url), "--learner"]));
    let id = said.split_whitespace().nth(1).expect("it has a number");
    let line = line_of(&trio, id).expect("it belongs to them");
    assert!(line.contains(" learner ") && line.contains(&url), "{line}");
    let why = refused(&trio.etcdctl(&["member", "promote", id]));
    assert!(why.contains("in sync with leader"), "{why}");
    works(&trio.etcdctl(&["member", "update", id, &at(&moved)]));
    let line = line_of(&trio, id).expect("it belongs to them");
    assert!(line.contains(&moved) && !line.contains(&url), "{line}");
    let cluster = format!("{},{name}={moved}", trio.initial_cluster());
    let state = "--initial-cluster-state";
    trio.run_with(3, &["--initial-cluster", &cluster, state, "existing"]);
    until_role(&trio, name, &["learner"]).await;
    assert!(has(&trio, 3, "before").await, "a learner has what the others have");
    works(&trio.etcdctl(&["member", "promote", id]));
    until_role(&trio, name, &["follower", "leader"]).await;
    works(&trio.etcdctl(&["member", "remove", id]));
    assert!(!trio.ended(3).await.success());
    assert_eq!(line_of(&trio, id), None);
    put(&trio, 0, "after").await;
}

/// They listen everywhere, which is not where anybody could be told to come.
#[tokio::test]
async fn members_are_found_where_they_say_and_not_where_they_listen() {
    let mut trio = Trio::new();
    // Who listens everywhere is in the way of all others at that port: these are below those that
    // the system gives to whoever asks for any, and other tests that run now have other ones.
    let first = 24_000 + std::process::id() % 2_600 * 3;
    let ports = [first, first + 1, first + 2];
    let peers = ports.map(|port| format!("http://{}:{port}", trio.host));
    let members = NAMES.iter().zip(&peers).map(|(name, peer)| format!("{name}={peer}"));
    let cluster = members.collect::<Vec<_>>().join(",");
    let client = |member: usize| format!("http://{}.example.com:2379", NAMES[member]);
    for (member, (port, peer)) in ports.iter().zip(&peers).enumerate() {
        let listen = format!("http://0.0.0.0:{port}");
        let mut flags = vec!["--insecure", "--initial-cluster", &cluster];
        flags.extend(["--listen-peer-urls", &listen, "--initial-advertise-peer-urls", peer]);
        let client = client(member);
        flags.extend(["--advertise-client-urls", &client]);
        trio.run_with(member, &flags);
    }
    until_all_are_known(&trio).await;
    for (member, peer) in peers.iter().enumerate() {
        let words = listed(&trio, NAMES[member]).expect("it is known");
        assert_eq!(words[3..], ["peers", peer, "clients", &client(member)]);
    }
    put(&trio, 0, "together").await;
    for member in 0..3 {
        assert!(has(&trio, member, "together").await);
    }
}

#[tokio::test]
async fn one_server_with_its_data_grows_to_two_and_nobody_joins_uninvited() {
    let mut trio = Trio::new();
    trio.run_with(0, &[]);
    put(&trio, 0, "alone").await;
    let (own, next) = (trio.peer_url(0), trio.peer_url(1));
    let why = refused(&trio.vez(&["member", "add", &next]));
    assert!(why.contains("--listen-peer-urls"), "{why}");
    trio.end(0);
    trio.run_with(0, &["--listen-peer-urls", &own]);
    until_role(&trio, NAMES[0], &["leader"]).await;
    until("it is known where it is", || {
        listed(&trio, NAMES[0]).is_some_and(|words| words.contains(&own))
    })
    .await;
    let said = works(&trio.vez(&["member", "add", &next, "--name", NAMES[1]]));
    let command = said.lines().last().expect("it says how to start it");
    let flags: Vec<_> = command.split_whitespace().skip_while(|word| *word != NAMES[1]).collect();
    trio.run_with(1, &flags[1..]);
    until_role(&trio, NAMES[1], &["follower"]).await;
    assert!(has(&trio, 1, "alone").await);
    put(&trio, 1, "together").await;
    assert!(has(&trio, 0, "together").await);
    // Two members: without the other's door, this one does not believe itself alone.
    trio.kill(0);
    trio.kill(1);
    let mut command = crate::server::serve_at(&trio.directory(0), &trio.client_url(0));
    let output = command.output().expect("it runs");
    assert!(refused(&output).contains("it is one of 2"));
}

#[test]
fn every_mistake_about_other_members_is_said() {
    let check = |flags: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vez"));
        command.args(["serve", "--check-config"]).args(flags.split(' '));
        command.output().expect("it runs")
    };
    let own = "--initial-cluster default=http://127.0.0.1:2380";
    let said = works(&check(&format!("{own},b=http://10.0.0.2:2380")));
    assert!(said.contains("one of 2"), "{said}");
    for (flags, expected) in [
        ("--initial-cluster a=http://127.0.0.1:1", "which is called default (--name)"),
        ("--initial-cluster default=127.0.0.1:1", "expected NAME=http://HOST:PORT"),
        ("--initial-cluster default=http://10.0.0.1:2380", "--insecure"),
        ("--initial-cluster default=https://127.0.0.1:2380", "expected --peer-cert-file"),
        ("--initial-advertise-peer-urls http://127.0.0.1:1", "expected --initial-cluster"),
        (&format!("{own} --initial-advertise-peer-urls http://127.0.0.1:1"), "what --initial-"),
        (&format!("{own} --peer-client-cert-auth"), "expected --peer-cert-file"),
        (&format!("{own} --peer-cert-file x"), "come together"),
        ("--election-timeout 200", "five times --heartbeat-interval"),
        ("--heartbeat-interval 0", "at least 1"),
        ("--heartbeat-interval 1 --election-timeout 5", "50 to 50000"),
    ] {
        let output = check(flags);
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let why = refused(&output);
        assert!(why.contains(expected), "{flags}: {why}");
    }
}

/// Removes the leader, or one that follows, by asking itself.
async fn removes_itself(is_leader: bool) {
    let mut trio = Trio::start().await;
    until_all_are_known(&trio).await;
    let leader = trio.leader().await;
    let member = if is_leader { leader } else { (leader + 1) % 3 };
    let (id, _) = trio.status(member).await.expect("it runs");
    let mut members = ClusterClient::new(trio.channel(member));
    let answer = members.member_remove(MemberRemoveRequest { id }).await;
    assert!(!trio.ended(member).await.success());
    assert_eq!(listed(&trio, NAMES[member]), None);
    answer.expect("it was done, and is said to be");
}

#[tokio::test]
async fn a_follower_that_is_asked_to_remove_itself_says_that_it_was_done() {
    removes_itself(false).await;
}

#[tokio::test]
async fn a_leader_that_is_asked_to_remove_itself_says_that_it_was_done() {
    removes_itself(true).await;
}
