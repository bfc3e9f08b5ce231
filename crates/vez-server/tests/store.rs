//! What was acknowledged is there again; a directory that is not ours, or not whole, is refused.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::sync::{Arc, Mutex};

use vez_server::raft::{Keeping, OpenError, Options, ProposeError, Replica};
use vez_server::store::DirectoryError;

use self::common::{Scratch, open, proposed, put, value};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    let (cluster, member, term) = (replica.cluster_id(), replica.member_id(), replica.term());
    for number in 0..100 {
        assert_eq!(proposed(&replica, &format!("key {number}"), "value").await, 2 + number);
    }
    let hash = replica.read(vez_server::state::State::hash);
    replica.shutdown().await;

    let replica = open(&scratch.data()).await;
    assert_eq!((replica.cluster_id(), replica.member_id()), (cluster, member));
    assert!(term < replica.term(), "each start is a term of its own");
    assert_eq!(replica.read(vez_server::state::State::hash), hash);
    assert_eq!(value(&replica, "key 99"), Some(b"value".to_vec()));
    assert_eq!(proposed(&replica, "key 100", "value").await, 102, "revisions go on");
    replica.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_hear_every_command_in_order_and_see_the_state_after_it() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    proposed(&replica, "before", "").await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    replica.listen(move |state, command, events| {
        assert!(command.is_some());
        ear.lock().unwrap().push((state.revision(), events.len()));
    });
    let proposals = (0..50).map(|number| {
        let replica = replica.clone();
        tokio::spawn(async move { proposed(&replica, &format!("key {number}"), "").await })
    });
    for proposal in proposals.collect::<Vec<_>>() {
        proposal.await.unwrap();
    }
    let expected: Vec<_> = (3..53).map(|revision| (revision, 1)).collect();
    assert_eq!(*heard.lock().unwrap(), expected);
    replica.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_made_at_once_share_their_syncs() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    let before = replica.syncs();
    let proposals = (0..640).map(|number| {
        let replica = replica.clone();
        tokio::spawn(async move { proposed(&replica, &format!("key {}", number % 64), "").await })
    });
    for proposal in proposals.collect::<Vec<_>>() {
        proposal.await.unwrap();
    }
    let syncs = replica.syncs() - before;
    assert!(syncs < 320, "{syncs} syncs for 640 proposals");
    replica.shutdown().await;
}

/// The files, finished ones only.
fn snapshots(scratch: &Scratch) -> Vec<String> {
    let files = fs::read_dir(scratch.data()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("snapshot-")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_takes_the_place_of_the_log_before_it() {
    let scratch = Scratch::new();
    let keeping =
        Keeping { entries_kept: 10, snapshot_entries: 200, snapshot_fold: 0, ..Keeping::default() };
    let options = Options { keeping, ..Options::new(scratch.data()) };
    let replica = Replica::open(options.clone()).await.unwrap();
    for number in 0..1000 {
        proposed(&replica, &format!("key {}", number % 7), format!("value {number}")).await;
    }
    let hash = replica.read(vez_server::state::State::hash);
    replica.shutdown().await;
    assert_eq!(snapshots(&scratch).len(), 1, "older ones are removed");

    let replica = Replica::open(options.clone()).await.unwrap();
    assert_eq!(replica.read(vez_server::state::State::hash), hash);
    assert_eq!(replica.read(vez_server::state::State::revision), 1001);
    replica.shutdown().await;

    // Without it there is no way back to the state: that must be said, not papered over.
    let name = snapshots(&scratch).remove(0);
    let path = scratch.data().join(&name);
    let whole = fs::read(&path).unwrap();
    for at in [0, 9, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&path, flipped).unwrap();
        let error = Replica::open(options.clone()).await.unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
    }
    fs::remove_file(&path).unwrap();
    let error = Replica::open(options.clone()).await.unwrap_err();
    assert!(matches!(error, OpenError::Gap { .. }), "{error}");
    fs::write(&path, whole).unwrap();
    let replica = Replica::open(options).await.unwrap();
    assert_eq!(replica.read(vez_server::state::State::hash), hash);
    replica.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_due_by_bytes_too() {
    let scratch = Scratch::new();
    let keeping = Keeping { snapshot_bytes: 100_000, ..Keeping::default() };
    let options = Options { keeping, ..Options::new(scratch.data()) };
    let replica = Replica::open(options).await.unwrap();
    // It is written beside the proposals, so it may take some more of them.
    for number in 0..1000 {
        proposed(&replica, &format!("key {}", number % 20), vec![7; 10_000]).await;
        if !snapshots(&scratch).is_empty() {
            assert!(8 < number, "one was written after {number} proposals already");
            replica.shutdown().await;
            return;
        }
    }
    panic!("no snapshot was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_has_one_server() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    let error = Replica::open(Options::new(scratch.data())).await.unwrap_err();
    let text = error.to_string();
    let pid = format!("(process {})", std::process::id());
    assert!(text.contains("in use by another server") && text.contains(&pid), "{text}");
    proposed(&replica, "key", "the first goes on").await;
    replica.shutdown().await;
    open(&scratch.data()).await.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_others_is_refused() {
    let scratch = Scratch::new();
    let options = Options { cluster: Some(0xa), member: Some(0xb), ..Options::new(scratch.data()) };
    Replica::open(options.clone()).await.unwrap().shutdown().await;
    let mode = fs::metadata(scratch.data()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    let other = Options { cluster: Some(0xc), ..options.clone() };
    let error = Replica::open(other).await.unwrap_err().to_string();
    assert!(error.ends_with("belongs to cluster a, not to c"), "{error}");
    let other = Options { member: Some(0xd), ..options.clone() };
    let error = Replica::open(other).await.unwrap_err().to_string();
    assert!(error.ends_with("belongs to member b, not to d"), "{error}");

    let identity = scratch.data().join("identity");
    let text = fs::read_to_string(&identity).unwrap();
    fs::write(&identity, text.replace("format 4", "format 5")).unwrap();
    let error = Replica::open(options.clone()).await.unwrap_err().to_string();
    assert!(error.contains("format 5"), "{error}");
    fs::remove_file(&identity).unwrap();
    let error = Replica::open(options.clone()).await.unwrap_err();
    assert!(matches!(error, OpenError::Directory(DirectoryError::Nameless { .. })), "{error}");
    // Those before are understood, and are none any more once this one was written to them.
    for before in ["format 2", "format 3"] {
        fs::write(&identity, text.replace("format 4", before)).unwrap();
        Replica::open(options.clone()).await.unwrap().shutdown().await;
        assert_eq!(fs::read_to_string(&identity).unwrap(), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_written_is_refused() {
    // Not even root may make files there.
    let error = Replica::open(Options::new("/proc/vez")).await.unwrap_err().to_string();
    assert!(error.starts_with("/proc/vez cannot be made: "), "{error}");
    let scratch = Scratch::new();
    fs::create_dir(scratch.data()).unwrap();
    fs::set_permissions(scratch.data(), fs::Permissions::from_mode(0o500)).unwrap();
    match Replica::open(Options::new(scratch.data())).await {
        Err(error) => assert!(error.to_string().contains("cannot be written: "), "{error}"),
        // Root may write anywhere.
        Ok(replica) => replica.shutdown().await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_with_a_flipped_bit_is_refused_and_named() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    for number in 0..20 {
        proposed(&replica, &format!("key {number}"), "a value that can be found").await;
    }
    replica.shutdown().await;
    let path = scratch.data().join("log/0000000000000001");
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|part| part == b"key 10").unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_at(b"\xff", at as u64).unwrap();
    let error = Replica::open(Options::new(scratch.data())).await.unwrap_err().to_string();
    assert!(error.contains("log/0000000000000001 is damaged at byte"), "{error}");
    fs::write(&path, bytes).unwrap();
    let replica = open(&scratch.data()).await;
    assert_eq!(replica.read(vez_server::state::State::revision), 21);
    replica.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_says_so() {
    let scratch = Scratch::new();
    let replica = open(&scratch.data()).await;
    replica.shutdown().await;
    assert_eq!(replica.propose(put("key", "")).await, Err(ProposeError::Stopping));
    assert_eq!(replica.linearizable().await, Err(ProposeError::Stopping));
    replica.shutdown().await;
}
