//! The way to the other members. A cluster of one has none, so nobody can be reached.

use std::io;

use bytes::Bytes;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::impls::BasicNode;
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;

use crate::store::{Types, Vote};

pub(crate) struct Peers;

/// A member that is not there.
pub(crate) struct Nobody {
    member: u64,
}

impl Nobody {
    fn error(&self) -> Unreachable<Types> {
        let text =
            format!("member {:x} cannot be reached: a cluster of one has no peers", self.member);
        Unreachable::new(&io::Error::new(io::ErrorKind::NotConnected, text))
    }
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Nobody;

    async fn new_client(&mut self, member: u64, _node: &BasicNode) -> Nobody {
        Nobody { member }
    }
}

impl RaftNetworkV2<Types> for Nobody {
    type SnapshotData = Bytes;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        Err(RPCError::Unreachable(self.error()))
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Err(RPCError::Unreachable(self.error()))
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: SnapshotOf<Types, Bytes>,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        Err(StreamingError::Unreachable(self.error()))
    }
}
