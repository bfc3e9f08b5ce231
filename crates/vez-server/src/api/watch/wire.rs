//! Answers on their way out: events that many hear of are encoded once, and copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes};
use futures_util::StreamExt as _;
use futures_util::stream::Peekable;
use prost::Message as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service as Serves, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use vez_api::etcdserverpb::{ResponseHeader, WatchRequest, WatchResponse, watch_server};

use crate::api::Service;

pub(crate) enum Answer {
    Plain(WatchResponse),
    /// Nothing but events, as [`crate::hub::Batch::encoded`] says them.
    Events {
        header: Option<ResponseHeader>,
        watch_id: i64,
        events: Bytes,
    },
}

impl Answer {
    fn encode(&self, out: &mut EncodeBuf<'_>) -> Result<(), prost::EncodeError> {
        match self {
            Self::Plain(answer) => answer.encode(out),
            Self::Events { header, watch_id, events } => {
                let events_only = WatchResponse {
                    header: *header,
                    watch_id: *watch_id,
                    ..WatchResponse::default()
                };
                events_only.encode(out)?;
                out.put_slice(events);
                Ok(())
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire;

impl Codec for Wire {
    type Encode = Answer;
    type Decode = WatchRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Wire {
    type Item = Answer;
    type Error = Status;

    fn encode(&mut self, answer: Answer, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        answer.encode(out).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Wire {
    type Item = WatchRequest;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<WatchRequest>, Status> {
        let request = WatchRequest::decode(bytes);
        request.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

type Answered<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The service of watches, like the generated one but for its codec.
#[derive(Clone)]
pub(crate) struct WatchDoor(pub(crate) Service);

impl NamedService for WatchDoor {
    const NAME: &'static str = watch_server::SERVICE_NAME;
}

impl StreamingService<WatchRequest> for WatchDoor {
    type Response = Answer;
    type ResponseStream = Peekable<ReceiverStream<Result<Answer, Status>>>;
    type Future = Answered<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<WatchRequest>>) -> Self::Future {
        let service = self.0.clone();
        let needs_leader = request.metadata().get("hasleader").is_some_and(|said| said == "true");
        let mut watched = service.watch(request.into_inner(), needs_leader).peekable();
        Box::pin(async move {
            // Whoever has a stream takes it that its first watch is heard from then on, as with
            // etcd, which begins an answer with its first message.
            Pin::new(&mut watched).peek().await;
            Ok(Response::new(watched))
        })
    }
}

impl Serves<http::Request<tonic::body::Body>> for WatchDoor {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Answered<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let door = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/etcdserverpb.Watch/Watch" {
                let why = format!("vez does not offer {}", request.uri().path());
                return Ok(Status::unimplemented(why).into_http());
            }
            Ok(Grpc::new(Wire).streaming(door, request).await)
        })
    }
}
