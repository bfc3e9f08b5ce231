//! What processes say to each other in an election by majority.

use serde::{Deserialize, Serialize};
use vez_core::Term;

/// Each carries the sender's term; the first two the term that may come after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    PreVoteReq { term: Term },
    PreVote { term: Term },
    VoteReq { term: Term },
    Vote { term: Term },
    Heartbeat { term: Term },
    HeartbeatAck { term: Term },
    Refuse { term: Term },
}

impl Message {
    /// The term the sender is in, or would be in.
    pub(super) fn term(&self) -> Term {
        let (Self::PreVoteReq { term }
        | Self::PreVote { term }
        | Self::VoteReq { term }
        | Self::Vote { term }
        | Self::Heartbeat { term }
        | Self::HeartbeatAck { term }
        | Self::Refuse { term }) = self;
        *term
    }
}
