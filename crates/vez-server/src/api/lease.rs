//! Leases: what is tied to one goes when its time is over.

use std::collections::BTreeSet;
use std::pin::Pin;

use rand::RngExt as _;
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus,
    LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server::Lease,
};
use vez_api::log::command::Command;

use super::{Service, status};
use crate::chance::Chance;

/// Answers that wait for the transport: clients with many leases ask for many at a time.
const ANSWERS: usize = 128;

#[tonic::async_trait]
impl Lease for Service {
    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        self.grant(request.into_inner()).await.map(Response::new)
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        self.propose(Command::LeaseRevoke(request.into_inner())).await.map(Response::new)
    }

    type LeaseKeepAliveStream =
        Pin<Box<dyn Stream<Item = Result<LeaseKeepAliveResponse, Status>> + Send>>;

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let (tell, heard) = mpsc::channel(ANSWERS);
        let service = self.clone();
        tokio::spawn(async move { service.keep_alive(request.into_inner(), &tell).await });
        Ok(Response::new(Box::pin(ReceiverStream::new(heard))))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let mut answer = self.time_to_live(request.into_inner()).await.map_err(status)?;
        self.sign(&mut answer.header);
        Ok(Response::new(answer))
    }

    async fn lease_leases(
        &self,
        _: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        self.up_to_date().await?;
        let leases = self.replica.read(|state| {
            state.leases().map(|lease| LeaseStatus { id: lease.id }).collect::<Vec<_>>()
        });
        Ok(Response::new(LeaseLeasesResponse { header: self.header_now(), leases }))
    }
}

impl Service {
    /// What is left to a lease by this node's clock.
    pub(crate) fn look_at_lease(
        &self,
        &LeaseTimeToLiveRequest { id, keys }: &LeaseTimeToLiveRequest,
    ) -> LeaseTimeToLiveResponse {
        let left = self.lessor.left(id);
        let found = self.replica.read(|state| {
            let lease = state.lease(id)?;
            let keys = if keys { lease.keys().cloned().collect() } else { Vec::new() };
            Some((lease.ttl, keys))
        });
        let header = self.header_now();
        let (ttl, granted_ttl, keys) = match (left, found) {
            (Some(left), Some((granted, keys))) => (left, granted, keys),
            _ => (-1, 0, Vec::new()),
        };
        LeaseTimeToLiveResponse { header, id, ttl, granted_ttl, keys }
    }

    /// Renews what is asked for; and says of what it renewed, unasked, that it ended.
    async fn keep_alive(
        &self,
        mut requests: Streaming<LeaseKeepAliveRequest>,
        tell: &mpsc::Sender<Result<LeaseKeepAliveResponse, Status>>,
    ) {
        let (ear, mut ends) = mpsc::unbounded_channel();
        let mut kept = BTreeSet::new();
        loop {
            let answer = tokio::select! {
                biased;
                () = tell.closed() => return,
                Some(id) = ends.recv() => {
                    kept.remove(&id);
                    LeaseKeepAliveResponse { header: self.header_now(), id, ttl: 0 }
                }
                request = requests.message() => {
                    let Ok(Some(LeaseKeepAliveRequest { id })) = request else { return };
                    // The header first: a client must not see a renewal later than the end.
                    let header = self.header_now();
                    if !kept.contains(&id) && self.hear_of_end(id, &ear) {
                        kept.insert(id);
                    }
                    match self.renew(id).await {
                        Ok(ttl) => LeaseKeepAliveResponse { header, id, ttl },
                        // Another node may know better: the client should ask there.
                        Err(error) => {
                            tell.send(Err(status(error))).await.ok();
                            return;
                        }
                    }
                }
            };
            if tell.send(Ok(answer)).await.is_err() {
                return;
            }
        }
    }

    /// Has `ear` told when a lease ends, if there is one.
    fn hear_of_end(&self, id: i64, ear: &mpsc::UnboundedSender<i64>) -> bool {
        // Nothing is applied meanwhile: it cannot end unheard.
        self.replica.read(|state| state.lease(id).is_some() && self.lessor.watch(id, ear))
    }

    pub(super) async fn grant(
        &self,
        mut request: LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, Status> {
        let many = self.replica.read(|state| state.leases().len());
        if self.limits.leases <= many {
            return Err(Status::resource_exhausted(format!(
                "vez: there are {many} leases, and no more are allowed"
            )));
        }
        if request.id == 0 {
            request.id = Chance.random_range(1..=i64::MAX);
        }
        self.propose(Command::LeaseGrant(request)).await
    }
}
