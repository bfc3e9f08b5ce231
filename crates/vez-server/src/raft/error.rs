//! What may go wrong with a member.

use std::path::PathBuf;
use std::time::Duration;

use crate::state;
use crate::store::directory::DirectoryError;
use crate::store::engine::EngineError;
use crate::store::snapshot::SnapshotError;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Log(#[from] EngineError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("{} holds a log from entry {from} on, but no whole snapshot of what was before; restore it from a backup", directory.display())]
    Gap { directory: PathBuf, from: u64 },
    #[error("the member cannot be started: {0}")]
    Start(String),
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProposeError {
    #[error("this member is not the leader")]
    NotLeader { leader: Option<u64>, address: Option<String> },
    /// The leader changed meanwhile: the command may have been applied, or may still be.
    #[error("the leader changed before the command was agreed upon")]
    Unknown,
    #[error("a majority of the members cannot be reached")]
    NoMajority,
    /// The command may have been applied, or may still be.
    #[error("it took too long")]
    Late,
    /// By the leader, in its words.
    #[error("{text}")]
    Refused { code: i32, text: String },
    #[error("the server is stopping")]
    Stopping,
    /// Nothing is written any more, until the server is started again.
    #[error("nothing can be written: {0}")]
    Disk(String),
    /// The same of one of several, of whom others may have the command, and can be asked.
    #[error("this member cannot write: {0}")]
    DiskOfOne(String),
    /// The command was not taken, and never will be.
    #[error("the disk hangs: nothing has been written for {0:?}")]
    Hangs(Duration),
    #[error(transparent)]
    State(#[from] state::Error),
}
