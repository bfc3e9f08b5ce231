//! Stopped in good order and started again: nobody loses a lease, a lock or a place in line.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};
use vez_client::{Client, Options};

use crate::server::{Server, directory, serve};

fn terminate(server: &Server) {
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("it has one");
    kill_process(id, Signal::TERM).expect("it runs");
}

/// SIGTERM, and the same again.
async fn restart(mut server: Server) -> Server {
    terminate(&server);
    tokio::task::spawn_blocking(move || {
        assert_eq!(server.wait().code(), Some(0));
        let address = server.address.clone();
        let directory = server.keep();
        Server::vez_at(&directory, &address, &[])
    })
    .await
    .expect("it starts again")
}

fn channel(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).expect("an address").connect_lazy()
}

async fn in_line(keys: &mut KvClient<Channel>, name: &str) -> usize {
    let all = RangeRequest {
        key: format!("{name}/").into(),
        range_end: format!("{name}0").into(),
        ..RangeRequest::default()
    };
    keys.range(all).await.map_or(0, |found| found.into_inner().kvs.len())
}

/// Puts a growing number until told to stop, and remembers the last that was acknowledged.
async fn write(address: String, acknowledged: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    let mut keys = KvClient::new(channel(&address));
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        let value = number.to_string();
        let put = PutRequest { key: "n".into(), value: value.into(), ..PutRequest::default() };
        match keys.put(put).await {
            Ok(_) => acknowledged.store(number, Ordering::SeqCst),
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_hold_and_those_in_line_keep_their_places() {
    let mut server = Server::vez();
    let address = server.address.clone();
    let client = Client::connect([address.clone()], Options::default()).await.expect("it listens");
    let mut keys = KvClient::new(channel(&address));
    let (acknowledged, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let load = tokio::spawn(write(address.clone(), acknowledged.clone(), is_over.clone()));
    let session = client.session(Duration::from_secs(20)).await.expect("a lease");
    let mut guard = session.lock("door").await.expect("it is free");
    let (tell, mut granted) = tokio::sync::mpsc::channel(8);
    for number in 0..3 {
        let session = client.session(Duration::from_secs(20)).await.expect("a lease");
        let tell = tell.clone();
        tokio::spawn(async move {
            let guard = session.lock("door").await.expect("its turn comes");
            tell.send((number, guard)).await.expect("somebody hears");
        });
        while in_line(&mut keys, "door").await < number + 2 {}
    }
    for expected in 0..3 {
        server = restart(server).await;
        assert!(granted.try_recv().is_err(), "nobody gets in while it is held");
        assert!(session.is_alive());
        let fence = guard.fence();
        guard.release().await.expect("it was held all the time");
        let (number, next) = granted.recv().await.expect("the next in line");
        assert_eq!(number, expected);
        assert!(fence < next.fence());
        guard = next;
    }
    is_over.store(true, Ordering::Relaxed);
    load.await.expect("it ends");
    let get = RangeRequest { key: "n".into(), ..RangeRequest::default() };
    let found = keys.range(get).await.expect("it serves").into_inner().kvs;
    let found: u64 = String::from_utf8_lossy(&found[0].value).parse().expect("a number");
    assert!(acknowledged.load(Ordering::SeqCst) <= found);
    assert!(0 < found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_in_a_line_that_the_server_keeps_find_their_places_again() {
    use vez_api::etcdserverpb::{LeaseGrantRequest, lease_client::LeaseClient};
    let server = Server::vez();
    let address = server.address.clone();
    let (mut keys, locks) = (KvClient::new(channel(&address)), LockClient::new(channel(&address)));
    let mut leases = LeaseClient::new(channel(&address));
    let ask = |lease| {
        let (mut locks, request) = (locks.clone(), LockRequest { name: "door".into(), lease });
        async move { locks.lock(request).await }
    };
    let mut waiting = Vec::new();
    // So many that, if places were given up while the server stops, some would be.
    for id in 1..=20 {
        leases.lease_grant(LeaseGrantRequest { ttl: 600, id }).await.expect("a lease");
        waiting.push(tokio::spawn(ask(id)));
        while in_line(&mut keys, "door").await < waiting.len() {}
    }
    let server = restart(server).await;
    for (number, waiting) in waiting.into_iter().enumerate() {
        assert_eq!(waiting.await.expect("it ends").is_ok(), number == 0);
    }
    // Whoever was sent away has not gone: as many are there as before.
    let there = loop {
        match in_line(&mut keys, "door").await {
            0 => {}
            there => break there,
        }
    };
    assert_eq!(there, 20);
    // Asking in another order changes nothing: each has its place already.
    let third = tokio::spawn(ask(3));
    let second = tokio::spawn(ask(2));
    let unlock = UnlockRequest { key: "door/1".into() };
    LockClient::new(channel(&address)).unlock(unlock).await.expect("it is held");
    second.await.expect("it ends").expect("it is its turn");
    assert!(!third.is_finished());
    drop(server);
}

#[test]
fn whoever_started_it_is_told_when_it_is_ready_and_when_it_stops() {
    let place = directory();
    std::fs::create_dir_all(&place).expect("a directory");
    // The name of a socket is short.
    let socket = std::env::temp_dir().join(format!("vez-notify-{}", std::process::id()));
    let ear = UnixDatagram::bind(&socket).expect("it can be made");
    ear.set_read_timeout(Some(Duration::from_mins(1))).expect("it may be set");
    let hear = || {
        let mut bytes = [0; 200];
        let length = ear.recv(&mut bytes).expect("it speaks");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let process = serve(&place, "127.0.0.1:0")
        .env("NOTIFY_SOCKET", &socket)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut server = Server::started(process, Path::new(&place));
    let ready = hear();
    assert!(ready.starts_with("READY=1\n") && ready.contains(&server.address), "{ready}");
    terminate(&server);
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(server.wait().code(), Some(0));
    std::fs::remove_file(socket).ok();
}
