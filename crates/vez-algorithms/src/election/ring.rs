//! What algorithms on rings share: whom to prefer, and which way a message goes.

use serde::{Deserialize, Serialize};
use vez_core::{Ctx, NodeId, Protocol, Winner};

/// Whether the largest or the smallest uid is to lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    #[default]
    Max,
    Min,
}

impl Pick {
    /// What to compare in place of uids, so that the larger always wins.
    pub fn rank(self, uid: u64) -> u64 {
        match self {
            Self::Max => uid,
            Self::Min => !uid,
        }
    }

    pub fn winner(self) -> Winner {
        match self {
            Self::Max => Winner::Largest,
            Self::Min => Winner::Smallest,
        }
    }
}

/// Which way round a message goes. It says so itself: in a ring of two both ways lead to the same
/// process, and the sender alone does not tell from which side a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Way {
    /// From `i` to `i + 1`.
    Right,
    Left,
}

impl Way {
    pub const BOTH: [Self; 2] = [Self::Right, Self::Left];

    /// The neighbour on this way.
    pub fn ahead<P: Protocol>(self, ctx: &Ctx<'_, P>) -> NodeId {
        match self {
            Self::Right => ctx.next(),
            Self::Left => ctx.topology().prev(ctx.me()),
        }
    }

    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Right => Self::Left,
            Self::Left => Self::Right,
        }
    }
}
