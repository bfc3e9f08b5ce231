//! What happens to keys, heard without a gap.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};
use vez_api::etcdserverpb::watch_client::WatchClient;
use vez_api::etcdserverpb::watch_create_request::FilterType;
use vez_api::etcdserverpb::{
    WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion,
};
use vez_api::mvccpb::{Event, event::EventType};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::{Error, is_transient};
use crate::wire;

/// Listens to a key or a range of keys from a revision on; goes on elsewhere when it breaks off.
pub(crate) struct Watch {
    client: Client,
    request: WatchCreateRequest,
    stream: Option<Open>,
    backoff: Backoff,
}

struct Open {
    endpoint: usize,
    answers: Streaming<WatchResponse>,
    /// The server ends the watch when this end is closed.
    _requests: mpsc::Sender<WatchRequest>,
}

/// Why a watch cannot go on.
pub(crate) enum Deaf {
    /// What it was to hear next is not kept any more: look, then listen from there.
    Compacted,
    Failed(Error),
}

impl Watch {
    pub(crate) fn new(client: Client, key: Bytes, range_end: Bytes, from: i64) -> Self {
        let request = WatchCreateRequest {
            key,
            range_end,
            start_revision: from,
            ..WatchCreateRequest::default()
        };
        Self { client, request, stream: None, backoff: Backoff::new() }
    }

    pub(crate) fn only_deletions(mut self) -> Self {
        self.request.filters = vec![FilterType::Noput.into()];
        self
    }

    /// The next events, at least one. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, Deaf> {
        loop {
            let Some(open) = &mut self.stream else {
                self.open().await?;
                continue;
            };
            let client = self.client.clone();
            let answer = tokio::select! {
                biased;
                answer = open.answers.message() => answer,
                // Whoever else noticed that this endpoint does not answer.
                () = client.moved(open.endpoint) => {
                    self.stream = None;
                    continue;
                }
            };
            match answer {
                Ok(Some(answer)) if answer.compact_revision > 0 => return Err(Deaf::Compacted),
                Ok(Some(answer)) if answer.canceled => {
                    let _ = self.broken(&Status::unavailable(answer.cancel_reason)).await;
                }
                Ok(Some(answer)) if answer.events.is_empty() => self.backoff.reset(),
                Ok(Some(answer)) => {
                    self.backoff.reset();
                    let last = answer.events.iter().filter_map(|event| event.kv.as_ref());
                    let last = last.map(|kv| kv.mod_revision).max().unwrap_or_default();
                    self.request.start_revision = self.request.start_revision.max(last + 1);
                    return Ok(answer.events);
                }
                Ok(None) => self.broken(&Status::unavailable("the watch ended")).await?,
                Err(status) => self.broken(&status).await?,
            }
        }
    }

    async fn open(&mut self) -> Result<(), Deaf> {
        let (endpoint, channel) = self.client.channel();
        let (send, receive) = mpsc::channel(1);
        let create = RequestUnion::CreateRequest(self.request.clone());
        // There is room for one, and nobody has closed it.
        let _ = send.try_send(WatchRequest { request_union: Some(create) });
        let mut request = Request::new(ReceiverStream::new(receive));
        // A member that is cut off from the others is to say so, not to be silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let mut client = WatchClient::new(channel);
        let patience: Duration = self.client.options().request_timeout;
        match timeout(patience, client.watch(request)).await {
            Ok(Ok(answers)) => {
                let answers = answers.into_inner();
                self.stream = Some(Open { endpoint, answers, _requests: send });
                Ok(())
            }
            Ok(Err(status)) => {
                self.client.move_on(endpoint);
                self.broken(&status).await
            }
            Err(_) => {
                self.client.move_on(endpoint);
                self.broken(&Status::unavailable("no answer")).await
            }
        }
    }

    /// Makes ready for another attempt, if there is any sense in one.
    async fn broken(&mut self, status: &Status) -> Result<(), Deaf> {
        if let Some(open) = self.stream.take() {
            self.client.move_on(open.endpoint);
        }
        if !is_transient(status) {
            return Err(Deaf::Failed(Error::Refused(status.clone())));
        }
        self.backoff.pause().await;
        Ok(())
    }
}

pub(crate) fn is_deletion(event: &Event) -> bool {
    event.r#type == i32::from(EventType::Delete)
}

/// Until a key that was there at a revision, created at another, is there no more.
pub(crate) async fn until_deleted(
    client: &Client,
    key: &Bytes,
    created: i64,
    mut seen: i64,
) -> Result<(), Error> {
    loop {
        let mut watch =
            Watch::new(client.clone(), key.clone(), Bytes::new(), seen + 1).only_deletions();
        match watch.next().await {
            Ok(events) if events.iter().any(is_deletion) => return Ok(()),
            Err(Deaf::Failed(error)) => return Err(error),
            Ok(_) | Err(Deaf::Compacted) => (),
        }
        let range = client.persist_range(wire::one(key)).await?;
        seen = range.header.map_or(seen, |header| header.revision);
        if wire::head(Some(range)).is_none_or(|kv| kv.create_revision != created) {
            return Ok(());
        }
    }
}
