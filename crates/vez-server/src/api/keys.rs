//! Keys: read, written, compared, forgotten.

use prost::Message;
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse, kv_server::Kv,
};
use vez_api::log::command::Command;

use super::Service;
use crate::state::validate;

#[tonic::async_trait]
impl Kv for Service {
    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        let request = request.into_inner();
        validate::range(&request)?;
        if !request.serializable {
            self.up_to_date().await?;
        }
        let mut response = self.replica.read(|state| state.range(&request))?;
        self.sign(&mut response.header);
        Ok(Response::new(response))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let request = request.into_inner();
        validate::put(&request)?;
        self.fits(&request)?;
        self.propose(Command::Put(request)).await.map(Response::new)
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let request = request.into_inner();
        validate::delete_range(&request)?;
        self.fits(&request)?;
        self.propose(Command::DeleteRange(request)).await.map(Response::new)
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let request = request.into_inner();
        validate::txn(&request)?;
        self.fits(&request)?;
        if validate::is_read_only(&request) {
            self.up_to_date().await?;
            let mut response = self.replica.read(|state| state.read_txn(&request))?;
            self.sign(&mut response.header);
            return Ok(Response::new(response));
        }
        self.propose(Command::Txn(request)).await.map(Response::new)
    }

    async fn compact(
        &self,
        request: Request<CompactionRequest>,
    ) -> Result<Response<CompactionResponse>, Status> {
        self.propose(Command::Compact(request.into_inner())).await.map(Response::new)
    }
}

impl Service {
    pub(super) fn fits(&self, request: &impl Message) -> Result<(), Status> {
        if self.limits.request_bytes < request.encoded_len() {
            return Err(Status::invalid_argument("etcdserver: request is too large"));
        }
        Ok(())
    }
}
