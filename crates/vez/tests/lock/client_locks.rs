//! Locks as programs use them, through the client crate, with every server there is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::transport::Channel;
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest};
use vez_client::{Client, Error, Lost, Options, Session, SessionOptions};

use crate::server::{Server, with_each};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a story; whoever waits for ever fails it.
fn play(name: &str, story: impl AsyncFn(&mut Server, Client) + Copy) {
    with_each(&format!("client-{name}"), |server| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = connect(server).await;
            timeout(PATIENCE * 2, story(server, client)).await.expect("it ends");
        });
    });
}

async fn connect(server: &Server) -> Client {
    Client::connect([server.endpoint()], Options::default()).await.unwrap()
}

/// The plain API.
async fn raw(server: &Server) -> KvClient<Channel> {
    let endpoint = Channel::from_shared(server.endpoint()).unwrap();
    KvClient::new(endpoint.connect().await.unwrap())
}

async fn keys(server: &Server) -> usize {
    let mut raw = raw(server).await;
    let all = RangeRequest {
        key: b"\0".as_slice().into(),
        range_end: b"\0".as_slice().into(),
        ..RangeRequest::default()
    };
    raw.range(all).await.unwrap().into_inner().kvs.len()
}

/// Until there are so many keys.
async fn until_keys(server: &Server, count: usize) {
    let there = async {
        while keys(server).await != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, there).await.expect("the keys come or go");
}

/// A request of its own session, waiting; until its key is there.
async fn waiter(
    server: &Server,
    client: &Client,
    name: &'static str,
    place: usize,
) -> (Session, tokio::task::JoinHandle<Result<vez_client::LockGuard, Error>>) {
    let session = client.session(TTL).await.unwrap();
    let asking = session.clone();
    let task = tokio::spawn(async move { asking.lock(name).await });
    until_keys(server, place).await;
    (session, task)
}

#[test]
fn grants_go_in_the_order_of_asking_and_fences_grow() {
    play("order", async |server, client| {
        let first = client.session(TTL).await.unwrap().lock("door").await.unwrap();
        let (_, second) = waiter(server, &client, "door", 2).await;
        let (_, third) = waiter(server, &client, "door", 3).await;
        let fence = first.fence();
        first.release().await.unwrap();
        let second = second.await.unwrap().unwrap();
        assert!(!third.is_finished());
        assert!(second.fence() > fence);
        let fence = second.fence();
        second.release().await.unwrap();
        let third = third.await.unwrap().unwrap();
        assert!(third.fence() > fence);
        let key = format!("door/{:x}", third.lease());
        assert_eq!(third.key(), key.as_bytes());
        third.release().await.unwrap();
        assert_eq!(keys(server).await, 0);
    });
}

#[test]
fn who_waits_is_told_who_holds_and_how_many_are_ahead() {
    play("told", async |server, client| {
        let holder = client.session(TTL).await.unwrap().lock("door").value("anna").await.unwrap();
        let (_, second) = waiter(server, &client, "door", 2).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let session = client.session(TTL).await.unwrap();
        let request = session.lock("door").on_wait(move |waiting| {
            telling.lock().unwrap().push((waiting.ahead, waiting.holder.to_string()));
        });
        let until_told = async |count| {
            while told.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let third = tokio::spawn(request.into_future());
        until_told(1).await;
        holder.release().await.unwrap();
        let second = second.await.unwrap().unwrap();
        let lease = format!("lease {:x}", second.lease());
        until_told(2).await;
        second.release().await.unwrap();
        third.await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(*told.lock().unwrap(), [(2, "anna".to_owned()), (1, lease)]);
    });
}

#[test]
fn a_try_that_fails_names_the_holder_and_never_stands_in_the_queue() {
    play("try", async |server, client| {
        let holder = client.session(TTL).await.unwrap().try_lock("door").value("anna").await;
        let holder = holder.unwrap();
        let session = client.session(TTL).await.unwrap();
        match session.try_lock("door").await {
            Err(Error::Held(entry)) => assert_eq!(entry.to_string(), "anna"),
            other => panic!("{other:?}"),
        }
        let revision = server.etcdctl_output(&["get", "x", "-w", "json"]);
        session.try_lock("door").await.unwrap_err();
        // Nothing was written, so nobody behind was kept waiting by it.
        assert_eq!(server.etcdctl_output(&["get", "x", "-w", "json"]), revision);
        holder.release().await.unwrap();
        session.try_lock("door").await.unwrap().release().await.unwrap();
    });
}

#[test]
fn who_waited_too_long_or_stopped_waiting_leaves_no_key_and_may_ask_again() {
    play("too-long", async |server, client| {
        let holder = client.session(TTL).await.unwrap().lock("door").await.unwrap();
        let session = client.session(TTL).await.unwrap();
        let short = Duration::from_millis(200);
        match session.lock("door").within(short).await {
            Err(Error::TooLong(within)) => assert_eq!(within, short),
            other => panic!("{other:?}"),
        }
        until_keys(server, 1).await;
        // Dropped at whatever moment: before it is sent, on the way, and while waiting.
        for millis in [0, 1, 2, 5, 20, 50] {
            let waiting = session.lock(format!("door-{millis}")).into_future();
            let _ = timeout(Duration::from_millis(millis), waiting).await;
            let waiting = session.lock("door").into_future();
            let _ = timeout(Duration::from_millis(millis), waiting).await;
            until_keys(server, 1).await;
        }
        assert!(session.is_alive());
        holder.release().await.unwrap();
        session.lock("door").await.unwrap().release().await.unwrap();
    });
}

#[test]
fn a_session_stands_in_a_queue_once() {
    play("once", async |_, client| {
        let session = client.session(TTL).await.unwrap();
        let guard = session.lock("door").await.unwrap();
        assert!(matches!(session.lock("door").await, Err(Error::Busy(name)) if name == "door"));
        let other = session.lock("window").await.unwrap();
        guard.release().await.unwrap();
        let again = session.lock("door").await.unwrap();
        again.release().await.unwrap();
        other.release().await.unwrap();
    });
}

#[test]
fn a_dropped_guard_releases_even_when_its_owner_panics() {
    play("panic", async |server, client| {
        let session = client.session(TTL).await.unwrap();
        drop(session.lock("door").await.unwrap());
        until_keys(server, 0).await;
        let holding = session.clone();
        let broken = tokio::spawn(async move {
            let _guard = holding.lock("door").await.unwrap();
            panic!("on purpose");
        });
        assert!(broken.await.unwrap_err().is_panic());
        until_keys(server, 0).await;
        let guard = session.lock("door").await.unwrap();
        drop((guard, session));
        until_keys(server, 0).await;
        let leases = async { while client.leases(9).await.unwrap().0 > 0 {} };
        timeout(PATIENCE, leases).await.expect("the lease goes with the last who has it");
    });
}

#[test]
fn a_late_release_never_touches_a_newer_grant() {
    play("late", async |server, client| {
        let session = client.session(TTL).await.unwrap();
        let guard = session.lock("door").await.unwrap();
        let key = guard.key().clone();
        let mut raw = raw(server).await;
        let delete = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
        raw.delete_range(delete).await.unwrap();
        let put = PutRequest { key, lease: session.lease(), ..PutRequest::default() };
        raw.put(put).await.unwrap();
        assert!(matches!(guard.release().await, Err(Error::Lost(Lost::Deleted))));
        assert_eq!(keys(server).await, 1, "the newer one is still there");
        assert!(matches!(session.lock("door").await.unwrap().release().await, Ok(())));
    });
}

#[test]
fn a_holder_learns_at_once_that_its_key_or_its_lease_is_gone() {
    play("gone", async |server, client| {
        let session = client.session(TTL).await.unwrap();
        let guard = session.lock("door").await.unwrap();
        let key = String::from_utf8(guard.key().to_vec()).unwrap();
        let asked = Instant::now();
        server.etcdctl_output(&["del", &key]);
        assert_eq!(guard.lost().await, Lost::Deleted, "also what happened before one listens");
        let guard = session.lock("window").await.unwrap();
        let lost = tokio::spawn(async move { guard.lost().await });
        server.etcdctl_output(&["lease", "revoke", &format!("{:x}", session.lease())]);
        assert!([Lost::Deleted, Lost::Expired].contains(&lost.await.unwrap()));
        assert!(asked.elapsed() < TTL / 3, "not only with the next keep-alive");
        assert_eq!(session.lost().await, Lost::Expired);
        assert!(matches!(session.lock("door").await, Err(Error::Lost(_))));
    });
}

#[test]
fn whose_lease_has_ended_while_waiting_is_not_granted_anything() {
    play("expired", async |server, client| {
        let holder = client.session(TTL).await.unwrap().lock("door").await.unwrap();
        let (session, waiting) = waiter(server, &client, "door", 2).await;
        server.etcdctl_output(&["lease", "revoke", &format!("{:x}", session.lease())]);
        holder.release().await.unwrap();
        assert!(matches!(waiting.await.unwrap(), Err(Error::Lost(_))));
        assert_eq!(keys(server).await, 0);
    });
}

#[test]
fn a_silent_server_loses_the_lock_before_it_can_give_it_away() {
    play("silent", async |server, client| {
        let ttl = Duration::from_secs(6);
        let early = Duration::from_secs(2);
        let session = client.session(SessionOptions { ttl, early }).await.unwrap();
        assert_eq!(session.ttl(), ttl);
        let guard = session.lock("door").await.unwrap();
        // Past the first keep-alive, so that it is seen to count.
        tokio::time::sleep(ttl / 2).await;
        server.freeze();
        let frozen = Instant::now();
        assert_eq!(guard.lost().await, Lost::Silent);
        let after = frozen.elapsed();
        let silence = ttl.saturating_sub(early);
        assert!(after <= silence + Duration::from_millis(200), "{after:?}");
        assert!(after >= silence / 3, "it was kept alive before: {after:?}");
        assert!(!session.is_alive());
        server.thaw();
        assert!(matches!(guard.release().await, Err(Error::Lost(Lost::Silent))));
        drop(session);
        until_keys(server, 0).await;
    });
}

#[test]
fn a_lease_is_kept_alive_for_as_long_as_it_is_wanted() {
    play("kept", async |server, client| {
        let ttl = Duration::from_secs(2);
        let guard = client.session(ttl).await.unwrap().lock("door").await.unwrap();
        let lost = timeout(3 * ttl, guard.lost()).await;
        assert!(lost.is_err(), "{lost:?}");
        assert_eq!(keys(server).await, 1);
        guard.release().await.unwrap();
    });
}

#[test]
fn a_crash_of_the_server_loses_nothing_while_the_lease_lives() {
    play("crash", async |server, client| {
        let session = client.session(TTL).await.unwrap();
        let guard = session.lock("door").await.unwrap();
        let (_, waiting) = waiter(server, &client, "door", 2).await;
        server.crash_and_restart();
        until_keys(server, 2).await;
        assert!(session.is_alive());
        let lost = timeout(session.ttl() / 2, guard.lost()).await;
        assert!(lost.is_err(), "{lost:?}");
        let fence = guard.fence();
        guard.release().await.unwrap();
        let next = waiting.await.unwrap().unwrap();
        assert!(next.fence() > fence);
        next.release().await.unwrap();
    });
}

#[test]
fn another_endpoint_is_used_when_one_is_dead() {
    play("failover", async |server, _| {
        let dead = {
            let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            taken.local_addr().unwrap().to_string()
        };
        let endpoints = [format!("http://{dead}"), server.endpoint()];
        let client = Client::connect(endpoints, Options::default()).await.unwrap();
        client.session(TTL).await.unwrap().lock("door").await.unwrap().release().await.unwrap();
        let nobody = Client::connect([dead.clone()], Options::default()).await;
        match nobody.err() {
            Some(Error::Unreachable { endpoints, .. }) => assert_eq!(endpoints, dead),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn an_address_that_makes_no_sense_is_named() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (endpoint, why) in [
        ("ftp://host:1", "endpoint `ftp://host:1`: expected http://HOST:PORT or https://HOST:PORT"),
        ("host", "endpoint `host`: expected http://HOST:PORT or https://HOST:PORT"),
        (
            "https://host:1",
            "endpoint `https://host:1`: expected a certificate of who vouches for the server",
        ),
    ] {
        let refused = runtime.block_on(Client::connect([endpoint], Options::default())).err();
        assert_eq!(refused.map(|error| error.to_string()).as_deref(), Some(why));
    }
}

#[test]
fn what_there_is_can_be_seen() {
    play("survey", async |server, client| {
        let anna = client.session(TTL).await.unwrap();
        let guard = anna.lock("doors/front").value("anna").await.unwrap();
        let (bert, _waiting) = waiter(server, &client, "doors/front", 2).await;
        server.etcdctl_output(&["put", "doors/front/paint", "green"]);
        server.etcdctl_output(&["put", "unrelated", "1"]);
        let queues = client.queues("").await.unwrap();
        assert_eq!(queues.len(), 1);
        assert_eq!(queues[0].name, "doors/front");
        let entries: Vec<_> = queues[0].entries.iter().map(|entry| entry.lease).collect();
        assert_eq!(entries, [anna.lease(), bert.lease()]);
        assert_eq!(queues[0].entries[0].fence, guard.fence());
        assert_eq!(client.queues("window").await.unwrap(), []);
        let (total, leases) = client.leases(100).await.unwrap();
        assert_eq!((total, leases.len()), (2, 2));
        assert!(leases.iter().all(|lease| lease.keys.len() == 1 && lease.granted == TTL));
        let (_, members) = client.members().await.unwrap();
        assert_eq!(members.len(), 1);
        assert!(members[0].is_leader);
    });
}
