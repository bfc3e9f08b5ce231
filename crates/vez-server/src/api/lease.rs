//! Leases: what is tied to one goes when its time is over.

use std::pin::Pin;

use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus,
    LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server::Lease,
};
use vez_api::log::command::Command;

use super::Service;

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
        let service = self.clone();
        let answers = request.into_inner().map(move |request| {
            let LeaseKeepAliveRequest { id } = request?;
            // The header first: a client must not see a renewal later than the end of the lease.
            let header = service.header_now();
            let ttl = service.lessor.renew(id).unwrap_or(0);
            Ok(LeaseKeepAliveResponse { header, id, ttl })
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let LeaseTimeToLiveRequest { id, keys } = request.into_inner();
        self.up_to_date().await?;
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
        Ok(Response::new(LeaseTimeToLiveResponse { header, id, ttl, granted_ttl, keys }))
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
            request.id = rand::random_range(1..=i64::MAX);
        }
        self.propose(Command::LeaseGrant(request)).await
    }
}
