//! The data directory: whose it is, and that only one server uses it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rand::RngExt as _;

use crate::chance::Chance;

/// The layout this program writes.
const FORMAT: u64 = 4;
/// The one before had fewer kinds of commands in its log, and is understood.
const UNDERSTOOD: RangeInclusive<u64> = 2..=FORMAT;
const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
const LOG: &str = "log";

#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{} is in use by another server{}", path.display(), process(*pid))]
    Locked { path: PathBuf, pid: Option<u32> },
    #[error("{} cannot be {what}: {error}", path.display())]
    Unusable { path: PathBuf, what: &'static str, error: io::Error },
    #[error("{} has data in format {found}; this program knows format {FORMAT} only", path.display())]
    Format { path: PathBuf, found: u64 },
    #[error("{} belongs to cluster {found:x}, not to {wanted:x}", path.display())]
    OtherCluster { path: PathBuf, found: u64, wanted: u64 },
    #[error("{} belongs to member {found:x}, not to {wanted:x}", path.display())]
    OtherMember { path: PathBuf, found: u64, wanted: u64 },
    #[error("{} holds a log, but {IDENTITY} is missing or cannot be understood", path.display())]
    Nameless { path: PathBuf },
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// Whose data it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) cluster: u64,
    pub(crate) member: u64,
}

/// A directory that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    pub(crate) identity: Identity,
    /// Locked as long as it is open; the system lets go of it even if we are killed.
    _lock: File,
}

impl Directory {
    /// Takes the directory, making it if need be. What is not asked for is as it is, or chosen by
    /// chance when it is made.
    pub(crate) fn open(
        path: &Path,
        cluster: Option<u64>,
        member: Option<u64>,
    ) -> Result<Self, DirectoryError> {
        let unusable =
            |what| move |error| DirectoryError::Unusable { path: path.to_path_buf(), what, error };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable("made"))?;
        let lock = lock(path)?;
        let identity = match identity(path)? {
            Some(found) => found,
            None => {
                let identity = Identity {
                    cluster: cluster.unwrap_or_else(|| Chance.random_range(1..=u64::MAX)),
                    member: member.unwrap_or_else(|| Chance.random_range(1..=u64::MAX)),
                };
                write_identity(path, identity).map_err(unusable("written"))?;
                identity
            }
        };
        let is_current = is_current(path);
        let path = path.to_path_buf();
        if let Some(wanted) = cluster.filter(|wanted| *wanted != identity.cluster) {
            return Err(DirectoryError::OtherCluster { path, found: identity.cluster, wanted });
        }
        if let Some(wanted) = member.filter(|wanted| *wanted != identity.member) {
            return Err(DirectoryError::OtherMember { path, found: identity.member, wanted });
        }
        // Who knew only the format before must not go on with what is written from now on.
        if !is_current && let Err(error) = write_identity(&path, identity) {
            return Err(DirectoryError::Unusable { path, what: "written", error });
        }
        Ok(Self { path, identity, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }
}

/// How much of the disk a directory takes.
pub(crate) fn bytes_of(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = |file: fs::DirEntry| match file.metadata() {
        Ok(found) if found.is_dir() => bytes_of(&file.path()),
        Ok(found) => found.len(),
        // Forgotten meanwhile.
        Err(_) => 0,
    };
    files.map(bytes).sum()
}

fn lock(path: &Path) -> Result<File, DirectoryError> {
    let unusable =
        |error| DirectoryError::Unusable { path: path.to_path_buf(), what: "written", error };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path.join(LOCK)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(DirectoryError::Locked {
                path: path.to_path_buf(),
                pid: pid.trim().parse().ok(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    // For people who ask who it is; the lock is what counts, so a full disk does not matter.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// What the directory says of itself; nothing, if it is new.
pub(crate) fn identity(path: &Path) -> Result<Option<Identity>, DirectoryError> {
    let nameless = || DirectoryError::Nameless { path: path.to_path_buf() };
    let text = match fs::read_to_string(path.join(IDENTITY)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return if path.join(LOG).exists() { Err(nameless()) } else { Ok(None) };
        }
        Err(error) => {
            let path = path.to_path_buf();
            return Err(DirectoryError::Unusable { path, what: "read", error });
        }
    };
    let value = |name: &str, radix| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| u64::from_str_radix(value.trim(), radix).ok()).ok_or_else(nameless)
    };
    match value("format ", 10)? {
        known if UNDERSTOOD.contains(&known) => {}
        found => return Err(DirectoryError::Format { path: path.to_path_buf(), found }),
    }
    Ok(Some(Identity { cluster: value("cluster ", 16)?, member: value("member ", 16)? }))
}

fn is_current(path: &Path) -> bool {
    let text = fs::read_to_string(path.join(IDENTITY));
    text.is_ok_and(|text| text.lines().any(|line| line == format!("format {FORMAT}")))
}

fn write_identity(path: &Path, identity: Identity) -> io::Result<()> {
    let unfinished = path.join("identity.part");
    let mut file = File::create(&unfinished)?;
    let Identity { cluster, member } = identity;
    write!(file, "format {FORMAT}\ncluster {cluster:x}\nmember {member:x}\n")?;
    file.sync_all()?;
    fs::rename(unfinished, path.join(IDENTITY))?;
    File::open(path)?.sync_all()?;
    // The directory itself must be found again, too.
    match path.canonicalize()?.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
