//! What clients may ask, one file a service.

mod cluster;
mod election;
mod keys;
mod lease;
mod lock;
mod maintenance;
mod queue;
mod sharing;
pub(crate) mod unary;
mod watch;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::service::Routes;
use tonic::{Code, Status};
use vez_api::etcdserverpb::{
    CompactionResponse, DeleteRangeResponse, LeaseGrantResponse, LeaseRevokeResponse, PutResponse,
    ResponseHeader, TxnResponse, cluster_server::ClusterServer, kv_server::KvServer,
    lease_server::LeaseServer, maintenance_server::MaintenanceServer,
};
use vez_api::log::{self, Left, Taken};
use vez_api::v3electionpb::election_server::ElectionServer;
use vez_api::v3lockpb::lock_server::LockServer;

pub(crate) use self::maintenance::VERSION;

use self::maintenance::SNAPSHOTS_MAX;
use self::sharing::Sharing;
use crate::hub::Hub;
use crate::lessor::Lessor;
use crate::raft::{Haste, ProposeError, Replica};
use crate::serve::Limits;
use crate::state::Response;

/// What every service needs; cheap to clone.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) replica: Replica,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lessor: Arc<Lessor>,
    pub(crate) limits: Limits,
    pub(crate) member: Member,
    sharing: Sharing,
    /// One turn for each that may be read at a time.
    snapshots: Arc<Semaphore>,
}

/// How this node is called and reached.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) peer_urls: Vec<String>,
    pub(crate) client_urls: Vec<String>,
}

impl std::ops::Deref for Service {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Service {
    pub(crate) fn new(
        replica: Replica,
        hub: Arc<Hub>,
        lessor: Arc<Lessor>,
        limits: Limits,
        member: Member,
    ) -> Self {
        let (sharing, snapshots) = (Sharing::default(), Arc::new(Semaphore::new(SNAPSHOTS_MAX)));
        Self(Arc::new(Shared { replica, hub, lessor, limits, member, sharing, snapshots }))
    }

    /// All services, and a sentence for whoever asks for another.
    pub(crate) fn routes(&self) -> Routes {
        let most = self.request_max();
        let routes = Routes::default()
            .add_service(KvServer::new(self.clone()).max_decoding_message_size(most))
            .add_service(watch::WatchDoor(self.clone()))
            .add_service(LeaseServer::new(self.clone()))
            .add_service(LockServer::new(self.clone()))
            .add_service(ElectionServer::new(self.clone()).max_decoding_message_size(most))
            .add_service(ClusterServer::new(self.clone()))
            .add_service(MaintenanceServer::new(self.clone()));
        Routes::from(routes.into_axum_router().fallback(not_here))
    }

    /// The longest request that is taken at all. What is allowed is checked by size in bytes, with
    /// a sentence; this only keeps a client from filling the memory first.
    pub(crate) fn request_max(&self) -> usize {
        self.limits.request_bytes + 512 * 1024
    }

    /// Puts a command to the log; the answer comes when it is durable.
    async fn propose<A: Answer>(&self, command: impl Into<log::Command>) -> Result<A, Status> {
        self.write(command, Haste::Now).await
    }

    /// The same for somebody who will not be answered yet.
    async fn write<A: Answer>(
        &self,
        command: impl Into<log::Command>,
        haste: Haste,
    ) -> Result<A, Status> {
        let written = self.replica.propose_anywhere(command.into(), haste);
        let response = written.await.map_err(status)?;
        let mut answer = A::of(response)
            .ok_or_else(|| Status::internal("a command was answered as something else"))?;
        self.sign(answer.header());
        Ok(answer)
    }

    /// Waits until what this node knows is at least what anybody was told before.
    async fn up_to_date(&self) -> Result<(), Status> {
        self.replica.up_to_date().await.map_err(status)
    }

    fn header(&self, revision: i64) -> Option<ResponseHeader> {
        let mut header = Some(ResponseHeader { revision, ..ResponseHeader::default() });
        self.sign(&mut header);
        header
    }

    fn header_now(&self) -> Option<ResponseHeader> {
        self.header(self.replica.read(crate::state::State::revision))
    }

    /// The state says the revision; who answers is said here.
    fn sign(&self, header: &mut Option<ResponseHeader>) {
        let header = header.get_or_insert_default();
        header.cluster_id = self.replica.cluster_id();
        header.member_id = self.replica.member_id();
        header.raft_term = self.replica.term();
    }
}

/// What a command is answered with.
trait Answer: Sized {
    fn of(response: Response) -> Option<Self>;
    fn header(&mut self) -> &mut Option<ResponseHeader>;
}

macro_rules! answers {
    ($($kind:ident: $answer:ty),* $(,)?) => {
        $(impl Answer for $answer {
            fn of(response: Response) -> Option<Self> {
                match response {
                    Response::$kind(answer) => Some(answer),
                    _ => None,
                }
            }

            fn header(&mut self) -> &mut Option<ResponseHeader> {
                &mut self.header
            }
        })*
    };
}

answers! {
    Put: PutResponse,
    DeleteRange: DeleteRangeResponse,
    Txn: TxnResponse,
    Compact: CompactionResponse,
    LeaseGrant: LeaseGrantResponse,
    LeaseRevoke: LeaseRevokeResponse,
    Take: Taken,
    Leave: Left,
}

/// In etcd's words where it has some, because clients match on them.
pub(crate) fn status(error: ProposeError) -> Status {
    match error {
        ProposeError::Refused { code, text } => Status::new(Code::from(code), text),
        ProposeError::State(error) => error.into(),
        ProposeError::NotLeader { .. } => Status::unavailable("etcdserver: not leader"),
        ProposeError::Unknown => Status::unavailable("etcdserver: leader changed"),
        ProposeError::NoMajority => Status::unavailable("etcdserver: no leader"),
        ProposeError::Hangs(_) | ProposeError::Late => {
            Status::unavailable("etcdserver: request timed out")
        }
        ProposeError::Stopping => Status::unavailable("etcdserver: server stopped"),
        ProposeError::DiskOfOne(error) => {
            Status::unavailable(format!("vez: this member cannot write ({error})"))
        }
        ProposeError::Disk(error) => Status::new(
            Code::ResourceExhausted,
            format!("etcdserver: mvcc: database space exceeded ({error})"),
        ),
    }
}

/// What is asked for does not exist here: said in a sentence, as gRPC says it.
async fn not_here(
    uri: tonic::codegen::http::Uri,
) -> tonic::codegen::http::Response<tonic::body::Body> {
    Status::unimplemented(format!("vez does not offer {}", uri.path())).into_http()
}
