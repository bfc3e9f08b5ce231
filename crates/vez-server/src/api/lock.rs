//! Locks whose line the server keeps.

use bytes::Bytes;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{DeleteRangeRequest, DeleteRangeResponse};
use vez_api::log::{Left, Reason, command::Command};
use vez_api::v3lockpb::{
    LockRequest, LockResponse, UnlockRequest, UnlockResponse, lock_server::Lock,
};

use super::Service;
use crate::state::validate;

/// The name under which a grant's fence is told, beside the answer. Whoever says it when he unlocks
/// releases that grant only, however late or often; etcd's request has a key and nothing else, and
/// a lock that is taken again with the same lease has the same key again.
const FENCE: &str = "vez-fence";

fn fence(said: &MetadataMap) -> Result<Option<i64>, Status> {
    let Some(said) = said.get(FENCE) else { return Ok(None) };
    let fence = said.to_str().ok().and_then(|said| said.parse().ok()).filter(|fence| 0 < *fence);
    fence.map(Some).ok_or_else(|| Status::invalid_argument("vez-fence: expected a whole number"))
}

#[tonic::async_trait]
impl Lock for Service {
    async fn lock(&self, request: Request<LockRequest>) -> Result<Response<LockResponse>, Status> {
        let LockRequest { name, lease } = request.into_inner();
        let (place, _) = self.stand_in_line(&name, lease, Bytes::new()).await?;
        let header = place.turn().await?;
        let (key, fence) = (place.key.clone(), place.since);
        place.keep();
        let mut response = Response::new(LockResponse { header, key });
        let mut fence = MetadataValue::from(fence);
        // Never the same twice: a compressor that remembered it would only search longer for it.
        fence.set_sensitive(true);
        response.metadata_mut().insert(FENCE, fence);
        Ok(response)
    }

    async fn unlock(
        &self,
        request: Request<UnlockRequest>,
    ) -> Result<Response<UnlockResponse>, Status> {
        let fence = fence(request.metadata())?;
        let key = request.into_inner().key;
        if let Some(fence) = fence {
            let Left { header, .. } = self.release(&key, fence, Reason::Asked).await?;
            return Ok(Response::new(UnlockResponse { header }));
        }
        let delete = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
        validate::delete_range(&delete)?;
        let response: DeleteRangeResponse = self.propose(Command::DeleteRange(delete)).await?;
        Ok(Response::new(UnlockResponse { header: response.header }))
    }
}
