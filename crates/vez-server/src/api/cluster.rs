//! Who belongs to the cluster.

use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
    MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MemberUpdateRequest, MemberUpdateResponse, cluster_server::Cluster,
};

use super::Service;

#[tonic::async_trait]
impl Cluster for Service {
    async fn member_list(
        &self,
        request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        if request.into_inner().linearizable {
            self.up_to_date().await?;
        }
        let members = vec![Member {
            id: self.replica.member_id(),
            name: self.member.name.clone(),
            peer_urls: self.member.peer_urls.clone(),
            client_urls: self.member.client_urls.clone(),
            is_learner: false,
        }];
        Ok(Response::new(MemberListResponse { header: self.header_now(), members }))
    }

    async fn member_add(
        &self,
        _: Request<MemberAddRequest>,
    ) -> Result<Response<MemberAddResponse>, Status> {
        Err(alone())
    }

    async fn member_remove(
        &self,
        _: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        Err(alone())
    }

    async fn member_update(
        &self,
        _: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        Err(alone())
    }

    async fn member_promote(
        &self,
        _: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        Err(alone())
    }
}

fn alone() -> Status {
    Status::unimplemented("vez serves as a cluster of one; its membership cannot be changed")
}
