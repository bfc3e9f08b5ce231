//! Who belongs to the cluster, changed.

use vez_api::etcdserverpb::cluster_client::ClusterClient;
use vez_api::etcdserverpb::{
    Member, MemberAddRequest, MemberPromoteRequest, MemberRemoveRequest, MemberUpdateRequest,
};

use crate::client::Client;
use crate::error::Error;

/// A member as the cluster knows it, and all of them.
#[derive(Clone, Debug)]
pub struct Joined {
    pub id: u64,
    /// By name, which is empty for those that were never started, with their URLs.
    pub members: Vec<(String, Vec<String>)>,
}

impl Client {
    /// Makes room for a member that will be at these URLs. A learner gets everything and does not
    /// vote; another one begins as a learner, too, where the service is vez, and votes as soon as
    /// it has caught up.
    pub async fn add_member(
        &self,
        peer_urls: Vec<String>,
        is_learner: bool,
    ) -> Result<Joined, Error> {
        let request = MemberAddRequest { peer_urls, is_learner };
        let ask = |channel| {
            let request = request.clone();
            async move { ClusterClient::new(channel).member_add(request).await }
        };
        let answer = self.call(ask).await?.response;
        let member = |member: Member| (member.name, member.peer_urls);
        Ok(Joined {
            id: answer.member.unwrap_or_default().id,
            members: answer.members.into_iter().map(member).collect(),
        })
    }

    /// From now on it votes.
    pub async fn promote_member(&self, id: u64) -> Result<(), Error> {
        let ask = |channel| async move {
            ClusterClient::new(channel).member_promote(MemberPromoteRequest { id }).await
        };
        self.call(ask).await.map(|_| ())
    }

    /// Others find it there from now on.
    pub async fn update_member(&self, id: u64, peer_urls: Vec<String>) -> Result<(), Error> {
        let request = MemberUpdateRequest { id, peer_urls };
        let ask = |channel| {
            let request = request.clone();
            async move { ClusterClient::new(channel).member_update(request).await }
        };
        self.call(ask).await.map(|_| ())
    }

    /// It does not belong to the cluster any more, and never will again under this number.
    pub async fn remove_member(&self, id: u64) -> Result<(), Error> {
        let ask = |channel| async move {
            ClusterClient::new(channel).member_remove(MemberRemoveRequest { id }).await
        };
        self.call(ask).await.map(|_| ())
    }
}
