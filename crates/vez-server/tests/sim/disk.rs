//! A server's disk: files that are really there, and the time that it takes to write them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use vez_server::chance::Chance;
use vez_server::store::Latency;

/// A folder that is gone when this is. In memory where that can be had: nothing here is to
/// survive this process.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vez-sim-{}-{number}", std::process::id());
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(place.join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// How long a write takes at most, in milliseconds, when nothing is wrong.
pub(crate) const USUAL: u64 = 30;

/// How long a write takes at most, in milliseconds.
#[derive(Debug)]
pub(crate) struct Slowness(AtomicU64);

impl Default for Slowness {
    fn default() -> Self {
        Self(AtomicU64::new(USUAL))
    }
}

impl Slowness {
    pub(crate) fn set(&self, most: u64) {
        self.0.store(most, Ordering::Relaxed);
    }
}

impl Latency for Slowness {
    fn next(&self) -> [Duration; 2] {
        let most = self.0.load(Ordering::Relaxed);
        [(); 2].map(|()| Duration::from_millis(Chance.random_range(0..=most / 2)))
    }
}
