//! What is asked is put to the log.

use std::pin::pin;

use futures_util::{Stream, StreamExt as _};
use openraft::errors::{ClientWriteError, Fatal};
use vez_api::log::Command;

use super::{Haste, ProposeError, Replica};
use crate::state::Response;
use crate::store::{Answer, LogId, Proposal, Types};

/// The answer, and which entry holds the command.
pub(crate) type Proposed = Result<(Response, u64), ProposeError>;

impl Replica {
    /// Returns the answer once the command is durable and applied. While the disk hangs nothing
    /// is taken: what waits for a disk must not pile up.
    pub async fn propose(&self, command: Command) -> Result<Response, ProposeError> {
        self.propose_here(Proposal::new(command), Haste::Now).await.map(|(response, _)| response)
    }

    pub(crate) async fn propose_here(&self, proposal: Proposal, haste: Haste) -> Proposed {
        if let Some(so_far) = self.hangs() {
            return Err(ProposeError::Hangs(so_far));
        }
        let mut outcomes = pin!(self.propose_all([(proposal, haste)]));
        outcomes.next().await.unwrap_or(Err(ProposeError::Stopping))
    }

    /// Has many written, with whatever else is written; says of each what became of it, one after
    /// the other.
    pub(crate) fn propose_all(
        &self,
        proposals: impl IntoIterator<Item = (Proposal, Haste)>,
    ) -> impl Stream<Item = Proposed> + Send + 'static {
        let replica = self.clone();
        let put = move |proposals| {
            let replica = replica.clone();
            async move { replica.put(proposals).await }
        };
        let told = self.inner.together.join(proposals, put);
        futures_util::stream::iter(told)
            .then(async |told| told.await.unwrap_or(Err(ProposeError::Stopping)))
    }

    /// Puts many to the log together; says of each what became of it, one after the other.
    async fn put(&self, proposals: Vec<Proposal>) -> impl Stream<Item = Proposed> + Send + use<> {
        let many = proposals.len();
        let written = match self.hangs() {
            Some(so_far) => Err(ProposeError::Hangs(so_far)),
            None => {
                let written = self.raft().client_write_many(proposals).await;
                written.map_err(|fatal| self.stopped(&fatal))
            }
        };
        // Whoever stops says so once, for all that are left.
        let (written, rest) = match written {
            Ok(written) => (written.left_stream(), self.stopped(&Fatal::Stopped)),
            Err(error) => (futures_util::stream::empty().right_stream(), error),
        };
        let replica = self.clone();
        let outcomes = written.map(move |written| match written {
            Ok(Ok(written)) => answer(written.response, written.log_id),
            Ok(Err(error)) => Err(unwritten(error)),
            Err(fatal) => Err(replica.stopped(&fatal)),
        });
        outcomes.chain(futures_util::stream::repeat(Err(rest))).take(many)
    }
}

fn answer(answer: Answer, id: LogId) -> Proposed {
    Ok((answer.expect("a command has an answer")?, id.index))
}

fn unwritten(error: ClientWriteError<Types>) -> ProposeError {
    match error {
        ClientWriteError::ForwardToLeader(to) => ProposeError::NotLeader {
            leader: to.leader_id,
            address: to.leader_node.map(|node| node.addr),
        },
        _ => ProposeError::Unknown,
    }
}
