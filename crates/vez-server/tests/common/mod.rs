//! Directories that go away, and commands worth proposing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use vez_api::etcdserverpb::PutRequest;
use vez_api::log::{Command, command};
use vez_server::raft::{Options, Replica};
use vez_server::state::Response;

/// A directory that is removed at the end of the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The server's directory, not there yet.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn put(key: &str, value: impl Into<Vec<u8>>) -> Command {
    let request = PutRequest {
        key: key.to_owned().into(),
        value: value.into().into(),
        ..PutRequest::default()
    };
    command::Command::Put(request).into()
}

/// The revision at which the key was put.
pub(crate) async fn proposed(replica: &Replica, key: &str, value: impl Into<Vec<u8>>) -> i64 {
    let answer = replica.propose(put(key, value)).await.unwrap();
    let Response::Put(answer) = answer else { panic!("{answer:?} is not for a put") };
    answer.header.unwrap().revision
}

pub(crate) fn value(replica: &Replica, key: &str) -> Option<Vec<u8>> {
    replica.read(|state| state.get(key.as_bytes()).map(|found| found.value.to_vec()))
}

pub(crate) async fn open(directory: &Path) -> Replica {
    Replica::open(Options::new(directory)).await.unwrap()
}
