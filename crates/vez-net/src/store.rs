//! What must survive a crash, in a directory of the process's own.
//!
//! **Invariant:** the file holds one whole state or the one before it, whatever happens when.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::wire::digest;

pub(crate) struct Store {
    directory: PathBuf,
    /// Held for as long as the process lives: nobody else may use the directory.
    _lock: File,
    saved: Saved,
    is_first: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Saved {
    life: u64,
    durable: Vec<u8>,
    check: u64,
}

impl Saved {
    fn sum(&self) -> u64 {
        let text = String::from_utf8_lossy(&self.durable);
        digest(&[&self.life.to_string(), &text, &self.durable.len().to_string()])
    }
}

impl Store {
    /// Opens the directory for a new life of the process, and writes that life down.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let lock = OpenOptions::new().create(true).append(true).open(directory.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::WouldBlock, "another process uses it")
            }
            TryLockError::Error(error) => error,
        })?;
        let found = match fs::read(directory.join("state")) {
            Ok(bytes) => Some(read(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_first = found.is_none();
        let last = found.as_ref().map_or(0, |saved| saved.life);
        let life = (last + 1).max(clock::now().as_micros() as u64);
        let durable = found.map(|saved| saved.durable).unwrap_or_default();
        let saved = Saved { life, durable, check: 0 };
        let mut store = Self { directory: directory.to_owned(), _lock: lock, saved, is_first };
        store.write()?;
        Ok(store)
    }

    pub(crate) fn life(&self) -> u64 {
        self.saved.life
    }

    /// What the last life left; `None` in the first.
    pub(crate) fn left(&self) -> Option<&[u8]> {
        (!self.is_first).then_some(&self.saved.durable)
    }

    pub(crate) fn save(&mut self, durable: Vec<u8>) -> io::Result<()> {
        self.saved.durable = durable;
        self.write()
    }

    /// Whole, on the disk, and under its name, before anybody hears of it.
    fn write(&mut self) -> io::Result<()> {
        self.saved.check = self.saved.sum();
        let bytes = postcard::to_allocvec(&self.saved).expect("plain data");
        let part = self.directory.join("state.part");
        let mut file = File::create(&part)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&part, self.directory.join("state"))?;
        File::open(&self.directory)?.sync_all()
    }
}

fn read(bytes: &[u8]) -> io::Result<Saved> {
    let saved: Option<Saved> = postcard::from_bytes(bytes).ok();
    saved
        .filter(|saved| saved.check == saved.sum())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "what it saved is damaged"))
}

#[cfg(test)]
mod tests {
    use super::Store;

    fn scratch(name: &str) -> std::path::PathBuf {
        let directory =
            std::env::temp_dir().join(format!("vez-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    #[test]
    fn the_next_life_finds_what_the_last_one_saved_and_is_a_later_one() {
        let directory = scratch("next");
        let mut store = Store::open(&directory).unwrap();
        assert_eq!(store.left(), None);
        store.save(vec![1, 2, 3]).unwrap();
        let life = store.life();
        drop(store);
        let store = Store::open(&directory).unwrap();
        assert_eq!(store.left(), Some(&[1, 2, 3][..]));
        assert!(life < store.life());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn two_processes_never_share_a_directory() {
        let directory = scratch("share");
        let _store = Store::open(&directory).unwrap();
        let error = Store::open(&directory).err().unwrap();
        assert_eq!(error.to_string(), "another process uses it");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn damage_is_noticed() {
        let directory = scratch("damage");
        let mut store = Store::open(&directory).unwrap();
        store.save(vec![7; 40]).unwrap();
        drop(store);
        let path = directory.join("state");
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            assert!(Store::open(&directory).is_err(), "byte {at}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
