//! All that the service remembers in one file, to be kept elsewhere.
//!
//! `vezbackup`, a version byte, the length of the state, the state, zeros up to a multiple of 512,
//! and the SHA-256 of all before it. So far from a multiple of 512 etcd's own client expects the
//! end of a snapshot to be, and saves ours, too.
//!
//! **Invariant:** what is restored is exactly what was saved, or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use openraft::impls::BasicNode;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN, digest};

use crate::state::{DecodeError, Frozen, State};
use crate::store::directory::{Directory, DirectoryError};
use crate::store::snapshot::Snapshots;
use crate::store::{LogId, Members, SnapshotMeta, StoredMembers};

const MAGIC: &[u8; 9] = b"vezbackup";
const VERSION: u8 = 1;
const BLOCK: u64 = 512;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("it is no snapshot of vez")]
    NotABackup,
    #[error("it has version {0}, and this program knows version {VERSION} only")]
    Version(u8),
    #[error("it is damaged or cut short: its checksum is wrong")]
    Checksum,
    #[error(transparent)]
    State(#[from] DecodeError),
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("{} is there already; expected a directory that is not", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("{} cannot be written: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// A state as a file to be kept, which is never there as a whole.
pub(crate) struct Sealed {
    state: Frozen,
    state_bytes: u64,
}

impl Sealed {
    pub(crate) fn new(state: Frozen) -> Self {
        let state_bytes = state.length();
        Self { state, state_bytes }
    }

    /// All before the checksum.
    fn body(&self) -> u64 {
        let head = MAGIC.len() + size_of_val(&VERSION) + size_of_val(&self.state_bytes);
        (head as u64 + self.state_bytes).next_multiple_of(BLOCK)
    }

    pub(crate) fn length(&self) -> u64 {
        self.body() + SHA256_OUTPUT_LEN as u64
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut out = Summed { out, sum: Context::new(&SHA256), written: 0 };
        out.write_all(MAGIC)?;
        out.write_all(&[VERSION])?;
        out.write_all(&self.state_bytes.to_be_bytes())?;
        self.state.write(&mut out)?;
        let zeros = self.body() - out.written;
        io::copy(&mut io::repeat(0).take(zeros), &mut out)?;
        out.out.write_all(out.sum.finish().as_ref())
    }
}

/// Sums up what is written.
struct Summed<'o, W> {
    out: &'o mut W,
    sum: Context,
    written: u64,
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let many = self.out.write(bytes)?;
        self.sum.update(&bytes[..many]);
        self.written += many as u64;
        Ok(many)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The state in a file, if it is whole.
pub fn unseal(whole: &[u8]) -> Result<State, BackupError> {
    let rest = whole.strip_prefix(MAGIC).ok_or(BackupError::NotABackup)?;
    let (body, checksum) =
        whole.split_last_chunk::<SHA256_OUTPUT_LEN>().ok_or(BackupError::Checksum)?;
    let is_whole = digest(&SHA256, body).as_ref() == checksum;
    match rest.first() {
        Some(&VERSION) if is_whole => {}
        // A later version may end otherwise.
        Some(&version) if version != VERSION => return Err(BackupError::Version(version)),
        _ => return Err(BackupError::Checksum),
    }
    let (length, rest) = rest[1..].split_first_chunk().ok_or(BackupError::Checksum)?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok();
    let state = length.and_then(|length| rest.get(..length)).ok_or(BackupError::Checksum)?;
    Ok(State::decode(state)?)
}

/// A new directory of a new cluster of one, which goes on from this state: durable when it returns.
/// Nothing is left if it fails.
pub fn restore(state: &State, path: &Path) -> Result<(), RestoreError> {
    if path.symlink_metadata().is_ok() {
        return Err(RestoreError::Exists(path.to_owned()));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let unfinished = path.with_file_name(name);
    let made = fill(state, &unfinished).and_then(|()| {
        // Over an empty directory that somebody made meanwhile, too; not over anything else.
        fs::rename(&unfinished, path)
            .and_then(|()| sync_parent(path))
            .map_err(|error| RestoreError::Write { path: path.to_owned(), error })
    });
    if made.is_err() {
        // Nothing more can be done about a part that cannot be removed.
        fs::remove_dir_all(&unfinished).ok();
    }
    made
}

fn fill(state: &State, path: &Path) -> Result<(), RestoreError> {
    let directory = Directory::open(path, None, None)?;
    let member = directory.identity.member;
    // As if it had been all there when the cluster was made.
    let begun = LogId::new_term_index(0, 0);
    let nodes = BTreeMap::from([(member, BasicNode::default())]);
    let members = Members::new(vec![BTreeSet::from([member])], nodes);
    let written = members.map_err(io::Error::other).and_then(|members| {
        let last_membership = StoredMembers::new(Some(begun), members);
        let meta = SnapshotMeta { last_log_id: Some(begun), last_membership };
        Snapshots::new(path).write(&meta, &state.freeze()).map(drop)
    });
    written.map_err(|error| RestoreError::Write { path: path.to_owned(), error })
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.canonicalize()?.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
