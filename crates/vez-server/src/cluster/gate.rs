//! Where other members come in.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use openraft::raft::TransferLeaderRequest;
use openraft::storage::Snapshot;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::{Interceptor, Routes};
use tonic::{Request, Response, Status, Streaming};
use vez_api::etcdserverpb::LeaseTimeToLiveRequest;
use vez_api::peer::peer_server::{Peer, PeerServer};
use vez_api::peer::reception_server::ReceptionServer;
use vez_api::peer::{
    AppendRequest, AppendResponse, ChangeRequest, ChangeResponse, ProposeRequest, ProposeResponse,
    ReadIndexRequest, ReadIndexResponse, RenewRequest, RenewResponse, SnapshotPart,
    SnapshotResponse, TimeToLiveResponse, TransferRequest, TransferResponse, VoteRequest,
    VoteResponse,
};

use super::handover::Stage;
use super::link::{CLUSTER, FROM, TO, WINDOW, WORD_BYTES};
use super::reception::Desk;
use super::words;
use crate::api::Service;
use crate::door::Caller;
use crate::raft::Replica;
use crate::store::SnapshotMeta;
use crate::store::record::{self, Damage};
use crate::store::snapshot::Kept;

/// A snapshot that is announced as larger than this is not waited for.
const SNAPSHOT_BYTES: u64 = 16 << 30;

/// When a leader was last heard.
#[derive(Debug)]
pub(crate) struct Heard(Mutex<Instant>);

impl Default for Heard {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Heard {
    fn now(&self) {
        *locked(&self.0) = Instant::now();
    }

    pub(crate) fn ago(&self) -> Duration {
        locked(&self.0).elapsed()
    }
}

/// What other members may ask.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(super) service: Service,
    heard: Arc<Heard>,
}

impl Gate {
    fn routes(service: Service, token: Arc<str>) -> Routes {
        let desk = Desk { replica: service.replica.clone(), token };
        let check = Check(service.replica.clone());
        let heard = service.replica.heard();
        let gate = PeerServer::new(Self { service, heard })
            .max_decoding_message_size(WORD_BYTES)
            .max_encoding_message_size(WORD_BYTES);
        let gate = tonic::service::interceptor::InterceptedService::new(gate, check);
        Routes::default().add_service(gate).add_service(ReceptionServer::new(desk))
    }
}

/// Hears other members until it is told to stop.
pub(crate) async fn serve(
    service: Service,
    token: Arc<str>,
    peers: ReceiverStream<io::Result<Caller>>,
) {
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .add_routes(Gate::routes(service, token))
        .serve_with_incoming(peers);
    if let Err(error) = served.await {
        tracing::error!("a door for other members closed: {error}");
    }
}

/// Who is of another cluster, or takes us for another, is told so.
#[derive(Clone)]
struct Check(Replica);

impl Interceptor for Check {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let id = |name| {
            let text = request.metadata().get(name).and_then(|value| value.to_str().ok());
            text.and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or_default()
        };
        if *self.0.stage().borrow() == Stage::Left {
            return Err(Status::unavailable("this member has stopped"));
        }
        let (own, member) = (self.0.cluster_id(), self.0.member_id());
        let refusal = if !request.metadata().contains_key(CLUSTER) {
            "it is of another version of vez; members of one cluster must be of the same".to_owned()
        } else if id(CLUSTER) != own {
            format!(
                "this is cluster {own:x}, not {:x}: were the members started with different \
                 --initial-cluster or --initial-cluster-token?",
                id(CLUSTER)
            )
        } else if id(TO) != member {
            format!("this is member {member:x}, not {:x}", id(TO))
        } else {
            return Ok(request);
        };
        let from = request.remote_addr().map_or_else(String::new, |peer| format!(" at {peer}"));
        tracing::warn!("member {:x}{from} is refused: {refusal}", id(FROM));
        Err(Status::failed_precondition(refusal))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn senseless(damage: Damage) -> Status {
    Status::invalid_argument(format!("what a member said makes no sense: {damage}"))
}

fn stopped(error: impl std::fmt::Display) -> Status {
    Status::unavailable(error.to_string())
}

pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Peer for Gate {
    type AppendStream = Answers<AppendResponse>;

    async fn append(
        &self,
        request: Request<Streaming<AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        let heard = Arc::clone(&self.heard);
        let stage = self.service.replica.stage().subscribe();
        let until = stage.clone();
        // Which of those that are not answered yet are notices, the first one first.
        let notices = Arc::new(Mutex::new(VecDeque::new()));
        let asked = Arc::clone(&notices);
        // It ends with the connection, or with us; what went wrong, the other side sees by itself.
        let words = (request.into_inner(), stage);
        let requests = futures_util::stream::unfold(words, move |(mut words, mut stage)| {
            let (heard, asked) = (Arc::clone(&heard), Arc::clone(&asked));
            async move {
                let word = tokio::select! {
                    biased;
                    _ = stage.wait_for(|stage| *stage == Stage::Left) => return None,
                    word = words.message() => word.ok()??,
                };
                heard.now();
                locked(&asked).push_back(word.is_notice);
                let request = words::to_append(&word).inspect_err(|damage| {
                    tracing::error!("entries from the leader cannot be used: {damage}");
                });
                Some((request.ok()?, (words, stage)))
            }
        });
        let answers = self.service.replica.raft().stream_append(requests);
        let answers = answers.filter_map(move |answer| {
            // Whoever wants to leave waits for the last answer.
            let _ = &until;
            let is_notice = locked(&notices).pop_front().unwrap_or(false);
            let is_news = !is_notice || !matches!(answer, Ok(Ok(_)));
            let answer = answer.map(|answer| words::appended(&answer)).map_err(stopped);
            std::future::ready(is_news.then_some(answer))
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn vote(&self, request: Request<VoteRequest>) -> Result<Response<VoteResponse>, Status> {
        let request = request.into_inner();
        let is_question = request.is_question;
        let request = words::to_vote_request(request).map_err(senseless)?;
        let raft = self.service.replica.raft();
        let voted =
            if is_question { raft.pre_vote(request).await } else { raft.vote(request).await };
        Ok(Response::new(words::voted(&voted.map_err(stopped)?)))
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotPart>>,
    ) -> Result<Response<SnapshotResponse>, Status> {
        let mut parts = request.into_inner();
        let head = parts.message().await?.and_then(|part| part.head);
        let head = head.ok_or_else(|| Status::invalid_argument("a snapshot without a head"))?;
        let vote = words::to_vote(head.ballot).map_err(senseless)?;
        let meta = record::decode_meta(&head.meta).map_err(senseless)?;
        if SNAPSHOT_BYTES < head.length {
            return Err(Status::invalid_argument(format!("{} bytes are too many", head.length)));
        }
        let snapshot = self.gather(parts, meta.clone(), head.length).await?;
        tracing::info!("a snapshot of {} bytes came from the leader", snapshot.length());
        let installed = self.service.replica.raft();
        let installed = installed.install_full_snapshot(vote, Snapshot { meta, snapshot }).await;
        let ballot = Some(words::ballot(&installed.map_err(stopped)?.vote));
        Ok(Response::new(SnapshotResponse { ballot }))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferRequest>,
    ) -> Result<Response<TransferResponse>, Status> {
        if *self.service.replica.stage().borrow() != Stage::Stays {
            let refusal = "this member is about to stop".to_owned();
            return Ok(Response::new(TransferResponse { refusal }));
        }
        let TransferRequest { from, to, last } = request.into_inner();
        let from = words::to_vote(from).map_err(senseless)?;
        let request = TransferLeaderRequest::new(from, to, last.map(words::to_log_id));
        let taken = self.service.replica.raft().handle_transfer_leader(request).await;
        let refusal = taken.map_err(stopped)?.err();
        let refusal = refusal.map_or_else(String::new, |error| error.to_string());
        Ok(Response::new(TransferResponse { refusal }))
    }

    type ProposeStream = Answers<ProposeResponse>;

    async fn propose(
        &self,
        request: Request<Streaming<ProposeRequest>>,
    ) -> Result<Response<Self::ProposeStream>, Status> {
        Ok(Response::new(self.hear(request.into_inner())))
    }

    async fn read_index(
        &self,
        _: Request<ReadIndexRequest>,
    ) -> Result<Response<ReadIndexResponse>, Status> {
        Ok(Response::new(self.read_index_here().await))
    }

    async fn renew(
        &self,
        request: Request<RenewRequest>,
    ) -> Result<Response<RenewResponse>, Status> {
        Ok(Response::new(self.renew_here(&request.into_inner().leases).await))
    }

    async fn change(
        &self,
        request: Request<ChangeRequest>,
    ) -> Result<Response<ChangeResponse>, Status> {
        Ok(Response::new(self.change_here(request.into_inner()).await))
    }

    async fn time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<TimeToLiveResponse>, Status> {
        Ok(Response::new(self.time_to_live_here(&request.into_inner()).await))
    }
}

impl Gate {
    /// All parts, of a length that was announced, in a file.
    async fn gather(
        &self,
        mut parts: Streaming<SnapshotPart>,
        meta: SnapshotMeta,
        length: u64,
    ) -> Result<Kept, Status> {
        let shared = self.service.replica.shared();
        let mut draft = shared.receive(meta, length).await.map_err(unwritten)?;
        while let Some(part) = parts.message().await? {
            self.heard.now();
            draft = shared.go_on(draft, &part.data).await.map_err(unwritten)?;
        }
        shared.finish(draft).await.map_err(unwritten)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn unwritten(error: io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::InvalidData => Status::data_loss(error.to_string()),
        _ => Status::unavailable(format!("a snapshot cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::raft::Options;

    #[tokio::test]
    async fn members_are_heard_that_know_the_cluster_this_member_and_the_same_words() {
        let directory = std::env::temp_dir().join(format!("vez-gate-{}", std::process::id()));
        let options = Options { cluster: Some(0xc), member: Some(7), ..Options::new(&directory) };
        let replica = Replica::open(options).await.unwrap();
        let mut check = Check(replica.clone());
        let mut said = |head: &[(&'static str, &'static str)]| {
            let mut request = Request::new(());
            for (name, value) in head {
                request.metadata_mut().insert(*name, value.parse().unwrap());
            }
            check.call(request).err().map(|status| status.message().to_owned())
        };
        assert_eq!(said(&[(CLUSTER, "c"), (FROM, "8"), (TO, "7")]), None);
        for (head, refusal) in [
            ([(CLUSTER, "c"), (FROM, "8"), (TO, "9")], "this is member 7, not 9"),
            ([(CLUSTER, "d"), (FROM, "8"), (TO, "7")], "this is cluster c, not d"),
            ([("vez-cluster", "c"), (FROM, "8"), (TO, "7")], "another version of vez"),
        ] {
            let why = said(&head).unwrap_or_default();
            assert!(why.contains(refusal), "{why}");
        }
        replica.shutdown().await;
        fs::remove_dir_all(directory).unwrap();
    }
}
