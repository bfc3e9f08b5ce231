//! Elections: who stands first in line leads.

use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::{
    Compare, PutRequest, RequestOp, ResponseHeader, TxnRequest, TxnResponse, compare, request_op,
};
use vez_api::log::{Left, Reason, command::Command};
use vez_api::mvccpb::KeyValue;
use vez_api::v3electionpb::{
    CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse, ProclaimRequest,
    ProclaimResponse, ResignRequest, ResignResponse, election_server::Election,
};

use super::Service;
use crate::hub::{Mailbox, Span};

#[tonic::async_trait]
impl Election for Service {
    async fn campaign(
        &self,
        request: Request<CampaignRequest>,
    ) -> Result<Response<CampaignResponse>, Status> {
        let CampaignRequest { name, lease, value } = request.into_inner();
        let (mut place, before) = self.stand_in_line(&name, lease, value.clone()).await?;
        if before.is_some_and(|before| before.value != value) {
            self.say(&place.key, place.since, place.lease, value).await?;
            place.was_written();
        }
        let header = place.turn().await?;
        let leader =
            LeaderKey { name, key: place.key.clone(), rev: place.since, lease: place.lease };
        place.keep();
        Ok(Response::new(CampaignResponse { header, leader: Some(leader) }))
    }

    async fn proclaim(
        &self,
        request: Request<ProclaimRequest>,
    ) -> Result<Response<ProclaimResponse>, Status> {
        let ProclaimRequest { leader, value } = request.into_inner();
        let LeaderKey { key, rev, lease, .. } = leader.ok_or_else(without_key)?;
        let header = self.say(&key, rev, lease, value).await?;
        Ok(Response::new(ProclaimResponse { header }))
    }

    async fn leader(
        &self,
        request: Request<LeaderRequest>,
    ) -> Result<Response<LeaderResponse>, Status> {
        self.up_to_date().await?;
        let prefix = prefix(&request.into_inner().name);
        let found = self.replica.read(|state| state.first(&prefix).cloned());
        let kv = found.ok_or_else(|| Status::unknown("election: no leader"))?;
        Ok(Response::new(LeaderResponse { header: self.header_now(), kv: Some(kv) }))
    }

    type ObserveStream = Pin<Box<dyn Stream<Item = Result<LeaderResponse, Status>> + Send>>;

    /// An observer hears the newest leader; what a leader said and took back before the observer
    /// was ready for it, it does not hear.
    async fn observe(
        &self,
        request: Request<LeaderRequest>,
    ) -> Result<Response<Self::ObserveStream>, Status> {
        let prefix = prefix(&request.into_inner().name);
        let (tell, heard) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move { service.follow_leaders(&prefix, &tell).await });
        Ok(Response::new(Box::pin(ReceiverStream::new(heard))))
    }

    async fn resign(
        &self,
        request: Request<ResignRequest>,
    ) -> Result<Response<ResignResponse>, Status> {
        let LeaderKey { key, rev, .. } = request.into_inner().leader.ok_or_else(without_key)?;
        let Left { header, .. } = self.release(&key, rev, Reason::Asked).await?;
        Ok(Response::new(ResignResponse { header }))
    }
}

impl Service {
    /// Changes what a leader says, if it still is the one that was elected then.
    async fn say(
        &self,
        key: &Bytes,
        since: i64,
        lease: i64,
        value: Bytes,
    ) -> Result<Option<ResponseHeader>, Status> {
        let put = PutRequest { key: key.clone(), value, lease, ..PutRequest::default() };
        let is_still_there = Compare {
            result: compare::CompareResult::Equal.into(),
            target: compare::CompareTarget::Create.into(),
            key: key.clone(),
            target_union: Some(compare::TargetUnion::CreateRevision(since)),
            range_end: Bytes::new(),
        };
        let request = TxnRequest {
            compare: vec![is_still_there],
            success: vec![RequestOp { request: Some(request_op::Request::RequestPut(put)) }],
            failure: Vec::new(),
        };
        self.fits(&request)?;
        let response: TxnResponse = self.propose(Command::Txn(request)).await?;
        if !response.succeeded {
            return Err(Status::unknown("election: not leader"));
        }
        Ok(response.header)
    }

    async fn follow_leaders(
        &self,
        prefix: &Bytes,
        tell: &mpsc::Sender<Result<LeaderResponse, Status>>,
    ) {
        let mut told = None;
        // Room for one: that something changed is all there is to know.
        let changed = Mailbox::new(1);
        loop {
            let (leader, registration) = self.replica.read(|state| {
                let registration = self.hub.join(Span::prefix(prefix), 0, &changed);
                (state.first(prefix).cloned(), registration)
            });
            let mark = |kv: &KeyValue| (kv.key.clone(), kv.mod_revision);
            let is_news = leader.as_ref().is_some_and(|kv| told != Some(mark(kv)));
            if is_news && let Some(kv) = leader {
                told = Some(mark(&kv));
                let response = LeaderResponse { header: self.header_now(), kv: Some(kv) };
                if tell.send(Ok(response)).await.is_err() {
                    return self.hub.leave(&registration);
                }
            }
            tokio::select! {
                biased;
                () = tell.closed() => return self.hub.leave(&registration),
                () = changed.filled() => drop(changed.take()),
            }
            self.hub.leave(&registration);
        }
    }
}

fn prefix(name: &[u8]) -> Bytes {
    Bytes::from([name, b"/"].concat())
}

fn without_key() -> Status {
    Status::invalid_argument("\"leader\" field must be provided")
}
