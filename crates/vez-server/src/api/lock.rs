//! Locks whose line the server keeps.

use bytes::Bytes;
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{DeleteRangeRequest, DeleteRangeResponse};
use vez_api::log::command::Command;
use vez_api::v3lockpb::{
    LockRequest, LockResponse, UnlockRequest, UnlockResponse, lock_server::Lock,
};

use super::Service;
use crate::state::validate;

#[tonic::async_trait]
impl Lock for Service {
    async fn lock(&self, request: Request<LockRequest>) -> Result<Response<LockResponse>, Status> {
        let LockRequest { name, lease } = request.into_inner();
        let (place, _) = self.stand_in_line(&name, lease, Bytes::new()).await?;
        let header = place.turn().await?;
        let key = place.key.clone();
        place.keep();
        Ok(Response::new(LockResponse { header, key }))
    }

    async fn unlock(
        &self,
        request: Request<UnlockRequest>,
    ) -> Result<Response<UnlockResponse>, Status> {
        let key = request.into_inner().key;
        let delete = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
        validate::delete_range(&delete)?;
        let response: DeleteRangeResponse = self.propose(Command::DeleteRange(delete)).await?;
        Ok(Response::new(UnlockResponse { header: response.header }))
    }
}
