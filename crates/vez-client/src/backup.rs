//! All that a service remembers, as it comes.

use bytes::Bytes;
use tokio::time::timeout;
use tonic::Streaming;
use vez_api::etcdserverpb::maintenance_client::MaintenanceClient;
use vez_api::etcdserverpb::{SnapshotRequest, SnapshotResponse};

use crate::client::Client;
use crate::error::Error;

/// A snapshot under way; see [`Client::backup`].
#[derive(Debug)]
pub struct Backup {
    client: Client,
    parts: Streaming<SnapshotResponse>,
}

impl Client {
    /// Asks for all that the service remembers at one moment, in its own format.
    pub async fn backup(&self) -> Result<Backup, Error> {
        let ask = |channel| async move {
            MaintenanceClient::new(channel).snapshot(SnapshotRequest {}).await
        };
        let parts = self.call(ask).await?.response;
        Ok(Backup { client: self.clone(), parts })
    }
}

impl Backup {
    /// The next bytes; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let patience = self.client.options().request_timeout;
        match timeout(patience, self.parts.message()).await {
            Ok(Ok(part)) => Ok(part.map(|part| part.blob)),
            Ok(Err(status)) => Err(Error::Refused(status)),
            Err(_) => Err(self.client.unreachable(format!("no more within {patience:?}"))),
        }
    }
}
