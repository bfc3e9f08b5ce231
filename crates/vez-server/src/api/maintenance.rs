//! How the server is.

use std::io::{self, Write};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{
    AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, HashKvRequest,
    HashKvResponse, HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse,
    ResponseHeader, SnapshotRequest, SnapshotResponse, StatusRequest, StatusResponse,
    alarm_request::AlarmAction, maintenance_server::Maintenance,
};

use super::Service;
use crate::backup::Sealed;

/// Clients read it to know what they may ask: the API is that of etcd 3.5.
pub(crate) const VERSION: &str = concat!("3.5.0+vez.", env!("CARGO_PKG_VERSION"));
/// So much of a snapshot is in one part; and so many parts wait until they are read.
const PART: usize = 64 * 1024;
const PARTS_MAX: usize = 8;
/// Each takes a thread until it is read, and keeps what it says in memory.
pub(super) const SNAPSHOTS_MAX: usize = 8;

#[tonic::async_trait]
impl Maintenance for Service {
    async fn alarm(
        &self,
        request: Request<AlarmRequest>,
    ) -> Result<Response<AlarmResponse>, Status> {
        if request.into_inner().action() == AlarmAction::Activate {
            return Err(Status::unimplemented("vez raises its alarms itself"));
        }
        Ok(Response::new(AlarmResponse { header: self.header_now(), alarms: Vec::new() }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let leadership = *self.replica.leadership().borrow();
        let (raft_index, raft_applied_index) = self.replica.indices();
        let db_size = self.replica.disk_bytes().cast_signed();
        Ok(Response::new(StatusResponse {
            header: self.header_now(),
            version: VERSION.to_owned(),
            db_size,
            db_size_in_use: db_size,
            leader: leadership.leader.unwrap_or(0),
            raft_index,
            raft_applied_index,
            raft_term: leadership.term,
            errors: Vec::new(),
            is_learner: false,
        }))
    }

    async fn defragment(
        &self,
        _: Request<DefragmentRequest>,
    ) -> Result<Response<DefragmentResponse>, Status> {
        self.replica.snapshot().await.map_err(super::status)?;
        Ok(Response::new(DefragmentResponse { header: self.header_now() }))
    }

    async fn hash(&self, _: Request<HashRequest>) -> Result<Response<HashResponse>, Status> {
        let (revision, hash) = self.replica.read(|state| (state.revision(), state.hash()));
        Ok(Response::new(HashResponse { header: self.header(revision), hash }))
    }

    async fn hash_kv(
        &self,
        request: Request<HashKvRequest>,
    ) -> Result<Response<HashKvResponse>, Status> {
        let asked = request.into_inner().revision;
        self.up_to_date().await?;
        let (revision, compact_revision, hash) = self.replica.read(|state| {
            let at = if asked == 0 { state.revision() } else { asked };
            (state.revision(), state.compacted(), state.hash_at(at))
        });
        let header = self.header(revision);
        Ok(Response::new(HashKvResponse { header, hash: hash?, compact_revision }))
    }

    type SnapshotStream = Pin<Box<dyn Stream<Item = Result<SnapshotResponse, Status>> + Send>>;

    async fn snapshot(
        &self,
        _: Request<SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        let turn = Arc::clone(&self.snapshots).try_acquire_owned().map_err(|_| {
            let why = format!("vez: {SNAPSHOTS_MAX} snapshots are being read already");
            Status::resource_exhausted(why)
        })?;
        self.up_to_date().await?;
        // Taken at one moment, and made bytes of while others go on writing, as fast as it is read.
        let (revision, state) = self.replica.read(|state| (state.revision(), state.freeze()));
        let (told, parts) = mpsc::channel(PARTS_MAX);
        let header = self.header(revision);
        tokio::task::spawn_blocking(move || {
            let sealed = Sealed::new(state);
            let mut parts = Parts { header, left: sealed.length(), part: Vec::new(), told };
            // Whoever hangs up does not need the rest.
            sealed.write(&mut parts).and_then(|()| parts.flush()).ok();
            drop(turn);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(parts))))
    }

    async fn move_leader(
        &self,
        request: Request<MoveLeaderRequest>,
    ) -> Result<Response<MoveLeaderResponse>, Status> {
        let to = request.into_inner().target_id;
        if !self.replica.leadership().borrow().leading {
            return Err(Status::failed_precondition("etcdserver: not leader"));
        }
        if !self.replica.raft().voter_ids().any(|voter| voter == to) {
            return Err(Status::failed_precondition("etcdserver: bad leader transferee"));
        }
        let is_own = to == self.replica.member_id();
        if !is_own && !self.replica.hand_over(Some(to)).await.map_err(super::status)? {
            return Err(Status::unavailable(
                "etcdserver: request timed out, leader transfer took too long",
            ));
        }
        Ok(Response::new(MoveLeaderResponse { header: self.header_now() }))
    }
}

/// Tells somebody what is written, part by part.
struct Parts {
    header: Option<ResponseHeader>,
    left: u64,
    part: Vec<u8>,
    told: mpsc::Sender<Result<SnapshotResponse, Status>>,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let many = bytes.len().min(PART - self.part.len());
        self.part.extend_from_slice(&bytes[..many]);
        if self.part.len() == PART {
            self.flush()?;
        }
        Ok(many)
    }

    fn flush(&mut self) -> io::Result<()> {
        let blob = Bytes::from(mem::take(&mut self.part));
        self.left -= blob.len() as u64;
        let part = SnapshotResponse { header: self.header, remaining_bytes: self.left, blob };
        self.told.blocking_send(Ok(part)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
