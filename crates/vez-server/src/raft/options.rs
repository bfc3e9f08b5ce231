use std::path::PathBuf;

use crate::cluster::Timing;
use crate::store::Disk;

/// How a member is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Made if it is not there, readable for its owner only.
    pub directory: PathBuf,
    /// Which cluster and which member the directory must belong to; chosen when it is made, if
    /// nothing is asked for.
    pub cluster: Option<u64>,
    pub member: Option<u64>,
    pub keeping: Keeping,
    pub timing: Timing,
    pub disk: Disk,
}

/// How much of the log there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// A snapshot is written, and the log before it forgotten, after so many entries, if they are
    /// also so many times as many as the keys and changes that it would have to hold; and after so
    /// many bytes in any case.
    pub snapshot_entries: u64,
    pub snapshot_fold: u64,
    pub snapshot_bytes: u64,
    /// How many entries before a snapshot stay in the log, for members that lag behind.
    pub entries_kept: u64,
}

impl Default for Keeping {
    fn default() -> Self {
        Self {
            snapshot_entries: 100_000,
            snapshot_fold: 2,
            snapshot_bytes: 64 << 20,
            entries_kept: 5_000,
        }
    }
}

impl Options {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            cluster: None,
            member: None,
            keeping: Keeping::default(),
            timing: Timing::default(),
            disk: Disk::default(),
        }
    }
}
