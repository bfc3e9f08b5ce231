use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// Address of a process: a dense index, `0..n`.
///
/// Addresses say where a message goes. What an election *compares*, and what people see, is
/// [`Ctx::uid`](crate::Ctx::uid), which need not follow address order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// An ordered set, so that walking it is the same walk everywhere.
pub type NodeSet = BTreeSet<NodeId>;

/// Election epoch. `0` means the algorithm has no notion of terms.
pub type Term = u64;

/// A Lamport timestamp: logical time, ties broken by process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub time: u64,
    pub node: NodeId,
}

/// A fencing token: every grant's is larger than all before it, so that a resource can refuse a
/// holder that a newer grant has overtaken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Fence {
    /// Who counts: the term of the coordinator, the epoch of the token. `0` if that never changes.
    pub term: Term,
    pub count: u64,
}

impl Fence {
    /// The fence of an algorithm with one counter for all time.
    pub fn plain(count: u64) -> Self {
        Self { term: 0, count }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.term {
            0 => write!(f, "{}", self.count),
            term => write!(f, "{term}.{}", self.count),
        }
    }
}

impl Serialize for Fence {
    /// For people a number, or `term.count` where there are terms. On the wire, both fields.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return (self.term, self.count).serialize(serializer);
        }
        match self.term {
            0 => serializer.serialize_u64(self.count),
            _ => serializer.collect_str(self),
        }
    }
}
