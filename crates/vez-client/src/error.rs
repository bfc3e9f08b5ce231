use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};

use crate::place::Entry;

/// What can come of asking.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address that cannot be used.
    #[error("endpoint `{endpoint}`: {why}")]
    Endpoint { endpoint: String, why: String },
    /// Certificates that cannot be used.
    #[error(transparent)]
    Tls(#[from] vez_tls::Error),
    /// Nobody answered, at none of the endpoints. Whether anything was done is not known.
    #[error("cannot reach {endpoints}: {why}")]
    Unreachable { endpoints: String, why: String },
    /// The server answered that it will not.
    #[error("refused: {}", .0.message())]
    Refused(Status),
    /// Somebody else has it, and one did not want to wait.
    #[error("held by {0}")]
    Held(Entry),
    /// One's turn did not come in the time one was ready to wait.
    #[error("not granted within {0:?}")]
    TooLong(Duration),
    /// What one had, or waited with, is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A session stands in a queue once: the key is made of the name and the lease.
    #[error("this session holds `{0}` or waits for it already")]
    Busy(String),
}

/// Why a session, a lock or a leadership is over without having been given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The server says that there is no such lease any more.
    Expired,
    /// No keep-alive was answered for so long that the lease may be about to end.
    Silent,
    /// The key was deleted by somebody else.
    Deleted,
    /// The session was closed.
    Closed,
}

impl Lost {
    /// One word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Silent => "silent",
            Self::Deleted => "deleted",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease has expired",
            Self::Silent => "the server was silent for as long as the lease lasts",
            Self::Deleted => "the key was deleted",
            Self::Closed => "the session was closed",
        })
    }
}

/// Whether it may be otherwise with another attempt, or at another endpoint.
pub(crate) fn is_transient(status: &Status) -> bool {
    let of_the_connection = std::error::Error::source(status).is_some();
    let transient = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled];
    // What a channel says that is being closed.
    let not_ready = status.code() == Code::Unknown && status.message().contains("not ready");
    of_the_connection || not_ready || transient.contains(&status.code())
}
