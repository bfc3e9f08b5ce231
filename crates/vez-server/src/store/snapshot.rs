//! Snapshots: one file each, written beside the others and renamed when it is whole, so that at
//! every moment the newest file that is there under its name is one that can be read.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::SnapshotMeta;
use super::record::{self, Damage};

const MAGIC: &[u8; 8] = b"vezsnap1";
const PREFIX: &str = "snapshot-";
const UNFINISHED: &str = "snapshot.part";

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is damaged: {damage}; restore the directory from a backup", path.display())]
    Damaged { path: PathBuf, damage: Damage },
}

/// Where a server's snapshots are.
#[derive(Clone, Debug)]
pub(crate) struct Snapshots {
    directory: PathBuf,
    /// Held while one is written; true once none may be any more.
    closed: Arc<Mutex<bool>>,
}

/// A snapshot as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) meta: SnapshotMeta,
    pub(crate) state: Bytes,
}

impl Snapshots {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), closed: Arc::default() }
    }

    /// Waits for the one being written; none is from then on, because the directory may soon be
    /// somebody else's.
    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Durable when it returns; the ones before it are gone then.
    pub(crate) fn write(&self, meta: &SnapshotMeta, state: &[u8]) -> io::Result<()> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(io::Error::other("the server has stopped"));
        }
        let unfinished = self.directory.join(UNFINISHED);
        let mut file = File::create(&unfinished)?;
        let head = record::encode_meta(meta);
        let mut checksum = crc32fast::Hasher::new();
        let head_length = (head.len() as u64).to_be_bytes();
        let length = (state.len() as u64).to_be_bytes();
        for part in [MAGIC, &head_length, &head[..], &length, state] {
            checksum.update(part);
            file.write_all(part)?;
        }
        file.write_all(&checksum.finalize().to_be_bytes())?;
        file.sync_all()?;
        let index = meta.last_log_id.map_or(0, |id| id.index);
        let path = self.directory.join(format!("{PREFIX}{index:020}"));
        fs::rename(&unfinished, &path)?;
        File::open(&self.directory)?.sync_all()?;
        for old in self.list()?.into_iter().filter(|old| *old != path) {
            fs::remove_file(old)?;
        }
        Ok(())
    }

    /// The newest that can be read. A damaged one is passed over if an older is whole: whether
    /// the log still reaches back to that one is for the caller to see.
    pub(crate) fn newest(&self) -> Result<Option<Kept>, SnapshotError> {
        let read = |error| SnapshotError::Read { path: self.directory.clone(), error };
        let mut first_trouble = None;
        for path in self.list().map_err(read)?.into_iter().rev() {
            match load(&path) {
                Ok(kept) => return Ok(Some(kept)),
                Err(error) => {
                    tracing::error!("{error}");
                    first_trouble.get_or_insert(error);
                }
            }
        }
        first_trouble.map_or(Ok(None), Err)
    }

    /// Oldest first.
    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
                found.push(entry.path());
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

fn load(path: &Path) -> Result<Kept, SnapshotError> {
    let bytes = fs::read(path);
    let bytes = bytes.map_err(|error| SnapshotError::Read { path: path.to_path_buf(), error })?;
    parse(&bytes.into())
        .map_err(|damage| SnapshotError::Damaged { path: path.to_path_buf(), damage })
}

fn parse(bytes: &Bytes) -> Result<Kept, Damage> {
    let short = || Damage::Content("it ends too early".to_owned());
    let (body, checksum) = bytes.split_last_chunk().ok_or_else(short)?;
    if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
        return Err(Damage::Checksum);
    }
    let rest = body.strip_prefix(MAGIC);
    let rest = rest.ok_or_else(|| Damage::Content("it is no snapshot".to_owned()))?;
    let (head, rest) = part(rest).ok_or_else(short)?;
    let (state, rest) = part(rest).ok_or_else(short)?;
    if !rest.is_empty() {
        return Err(Damage::Content("it goes on too long".to_owned()));
    }
    Ok(Kept { meta: record::decode_meta(head)?, state: bytes.slice_ref(state) })
}

/// Bytes with their length in front, and what follows them.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)
}
