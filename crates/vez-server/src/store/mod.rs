//! What lasts: the log, the vote, the snapshots, and the lock on the directory they are in.
//!
//! **Invariant:** what was called durable is there after any crash; what cannot be read back is
//! refused, never guessed.

pub(crate) mod directory;
pub(crate) mod disk;
pub(crate) mod engine;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod record;
pub(crate) mod snapshot;
pub(crate) mod writer;

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use openraft::impls::leader_id_std;
use openraft::impls::{BasicNode, EntryPayload};
use openraft::type_config::alias;
use prost::Message as _;
use vez_api::log::Command;
use vez_api::log::command::Command as Kind;

pub use self::directory::DirectoryError;
pub use self::disk::{Disk, Latency};
pub use self::engine::EngineError;
pub use self::record::Damage;
pub use self::snapshot::SnapshotError;

use crate::runtime::Runtime;
use crate::state::{Error, Response};

openraft::declare_raft_types!(
    /// What the replicated log is made of. A term has one leader, as in the paper and in etcd.
    pub Types:
        D = Proposal,
        R = Option<Result<Response, Error>>,
        NodeId = u64,
        Node = BasicNode,
        Term = u64,
        LeaderId = leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = Runtime,
);

pub(crate) type Entry = alias::EntryOf<Types>;
pub(crate) type LogId = alias::LogIdOf<Types>;
pub(crate) type Vote = alias::VoteOf<Types>;
pub(crate) type Payload = EntryPayload<Proposal, u64, BasicNode>;
pub(crate) type Members = openraft::Membership<u64, BasicNode>;
pub(crate) type StoredMembers = alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<Types>;
pub(crate) type Answer = Option<Result<Response, Error>>;

/// A command on its way through the log. Shared, because the log, the disk and the state each
/// look at it; and also as bytes, because the disk and each other member want it so.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal(Arc<Content>);

#[derive(Debug)]
struct Content {
    command: Command,
    encoded: Bytes,
    mark: Option<Mark>,
    /// The whole entry as it is written down, and where in the log that is: made once, for the
    /// disk, for the memory and for each other member.
    record: OnceLock<(LogId, Bytes)>,
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        (&self.command, self.mark) == (&other.command, other.mark)
    }
}

/// By which a member that had another write something knows it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Never 0, and nobody else's: neither another member's nor that of its own earlier life.
    pub(crate) asker: u64,
    pub(crate) number: u64,
}

impl Mark {
    /// Nothing, if nobody wants to know it again.
    pub(crate) fn new(asker: u64, number: u64) -> Option<Self> {
        (asker != 0).then_some(Self { asker, number })
    }
}

impl Proposal {
    pub fn new(command: Command) -> Self {
        let encoded = command.encode_to_vec().into();
        Self(Arc::new(Content { command, encoded, mark: None, record: OnceLock::new() }))
    }

    pub(crate) fn decode(encoded: Bytes, mark: Option<Mark>) -> Result<Self, Damage> {
        let command = Command::decode(encoded.clone())?;
        if command.command.is_none() {
            return Err(Damage::Content("it holds a command that is not known here".to_owned()));
        }
        Ok(Self(Arc::new(Content { command, encoded, mark, record: OnceLock::new() })))
    }

    /// The record of the entry with this id; made by `make`, unless that was done before.
    fn record(&self, id: LogId, make: impl Fn() -> Bytes) -> Bytes {
        let (of, record) = self.0.record.get_or_init(|| (id, make()));
        // What was put to the log once more has another place there.
        if *of == id { record.clone() } else { make() }
    }

    /// As it was found written down.
    fn with_record(self, id: LogId, record: &Bytes) -> Self {
        self.record(id, || record.clone());
        self
    }

    pub(crate) fn command(&self) -> &Command {
        &self.0.command
    }

    pub(crate) fn encoded(&self) -> &Bytes {
        &self.0.encoded
    }

    pub(crate) fn mark(&self) -> Option<Mark> {
        self.0.mark
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.command().command {
            Some(Kind::Put(_)) => "put",
            Some(Kind::DeleteRange(_)) => "delete",
            Some(Kind::Txn(_)) => "txn",
            Some(Kind::Compact(_)) => "compact",
            Some(Kind::LeaseGrant(_)) => "grant",
            Some(Kind::LeaseRevoke(_)) => "revoke",
            Some(Kind::Take(_)) => "take",
            Some(Kind::Leave(_)) => "leave",
            None => "nothing",
        })
    }
}
