//! Who belongs to the cluster.

use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
    MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MemberUpdateRequest, MemberUpdateResponse, cluster_server::Cluster,
};
use vez_api::peer::change_request::{Add, Change, Update};

use super::{Service, status};
use crate::cluster::Changed;

#[tonic::async_trait]
impl Cluster for Service {
    async fn member_list(
        &self,
        request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        if request.into_inner().linearizable {
            self.up_to_date().await?;
        }
        Ok(Response::new(MemberListResponse { header: self.header_now(), members: self.members() }))
    }

    async fn member_add(
        &self,
        request: Request<MemberAddRequest>,
    ) -> Result<Response<MemberAddResponse>, Status> {
        let MemberAddRequest { peer_urls, is_learner } = request.into_inner();
        let added = self.change(Change::Add(Add { peer_urls, is_learner })).await?.member;
        let (header, members) = (self.header_now(), self.members());
        let member = members.iter().find(|member| member.id == added).cloned();
        Ok(Response::new(MemberAddResponse { header, member, members }))
    }

    async fn member_remove(
        &self,
        request: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        self.change(Change::Remove(request.into_inner().id)).await?;
        let (header, members) = (self.header_now(), self.members());
        Ok(Response::new(MemberRemoveResponse { header, members }))
    }

    async fn member_update(
        &self,
        request: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        let MemberUpdateRequest { id: member, peer_urls } = request.into_inner();
        self.change(Change::Update(Update { member, peer_urls })).await?;
        let (header, members) = (self.header_now(), self.members());
        Ok(Response::new(MemberUpdateResponse { header, members }))
    }

    async fn member_promote(
        &self,
        request: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        self.change(Change::Promote(request.into_inner().id)).await?;
        let (header, members) = (self.header_now(), self.members());
        Ok(Response::new(MemberPromoteResponse { header, members }))
    }
}

impl Service {
    pub(crate) fn members(&self) -> Vec<Member> {
        if self.replica.has_peers() {
            return self.replica.members();
        }
        vec![Member {
            id: self.replica.member_id(),
            name: self.member.name.clone(),
            peer_urls: self.member.peer_urls.clone(),
            client_urls: self.member.client_urls.clone(),
            is_learner: false,
        }]
    }

    async fn change(&self, change: Change) -> Result<Changed, Status> {
        if !self.replica.has_peers() {
            return Err(Status::failed_precondition(
                "vez: no other member could reach this one; start it with --listen-peer-urls",
            ));
        }
        self.replica.change_anywhere(change).await.map_err(status)
    }
}
