//! Clients of a service whose pages are looked at.

use std::time::Duration;

use tokio::task::JoinHandle;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest, kv_client::KvClient,
    lease_client::LeaseClient,
};
use vez_api::v3electionpb::{CampaignRequest, election_client::ElectionClient};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};

use crate::client::Lab;

#[derive(Clone)]
pub(crate) struct Clients(Channel);

impl Clients {
    pub(crate) async fn of(lab: &Lab) -> Self {
        let channel = Channel::from_shared(format!("http://{}", lab.clients)).expect("an address");
        Self(channel.connect().await.expect("it listens"))
    }

    pub(crate) async fn lease(&self, id: i64, ttl: i64) {
        let request = LeaseGrantRequest { ttl, id };
        LeaseClient::new(self.0.clone()).lease_grant(request).await.expect("a lease");
    }

    pub(crate) async fn revoke(&self, id: i64) {
        let request = LeaseRevokeRequest { id };
        LeaseClient::new(self.0.clone()).lease_revoke(request).await.expect("it is there");
    }

    /// Asks for a lock, and gets it some time; the key is what comes back.
    pub(crate) fn lock(&self, name: &str, lease: i64) -> JoinHandle<Result<String, tonic::Status>> {
        let mut locks = LockClient::new(self.0.clone());
        let request = LockRequest { name: name.to_owned().into(), lease };
        tokio::spawn(async move {
            let granted = locks.lock(request).await?.into_inner();
            Ok(String::from_utf8_lossy(&granted.key).into_owned())
        })
    }

    pub(crate) async fn locked(&self, name: &str, lease: i64) -> String {
        self.lock(name, lease).await.expect("it ends").expect("it is granted")
    }

    pub(crate) async fn unlock(&self, key: &str) {
        let request = UnlockRequest { key: key.to_owned().into() };
        LockClient::new(self.0.clone()).unlock(request).await.expect("it is unlocked");
    }

    pub(crate) async fn campaign(&self, name: &str, lease: i64, value: &str) {
        let (name, value) = (name.to_owned().into(), value.to_owned().into());
        let request = CampaignRequest { name, lease, value };
        ElectionClient::new(self.0.clone()).campaign(request).await.expect("it leads");
    }

    /// A key in a queue as `vez lock` makes it.
    pub(crate) async fn stand(&self, name: &str, lease: i64, value: &str) {
        let key = format!("{name}/{lease:x}").into();
        let request =
            PutRequest { key, value: value.to_owned().into(), lease, ..PutRequest::default() };
        KvClient::new(self.0.clone()).put(request).await.expect("it is put");
    }

    /// Returns when so many keys are in a queue.
    pub(crate) async fn until_standing(&self, name: &str, expected: i64) {
        let (key, range_end) = (format!("{name}/").into(), format!("{name}0").into());
        let all = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        let mut keys = KvClient::new(self.0.clone());
        let there = async {
            while keys.range(all.clone()).await.expect("it answers").into_inner().count != expected
            {
            }
        };
        tokio::time::timeout(Duration::from_secs(30), there).await.expect("they come or go");
    }
}
