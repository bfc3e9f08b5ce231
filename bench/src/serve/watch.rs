//! Very many who watch the same keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::watch_client::WatchClient;
use vez_api::etcdserverpb::{PutRequest, WatchCreateRequest, WatchRequest, watch_request};

use super::client::channel;
use super::servers::Server;

const CONNECTIONS: usize = 20;
const WRITERS: usize = 8;

/// The watchers, connected once and used again and again.
pub(crate) struct Watchers {
    seen: Arc<AtomicU64>,
    /// Dropped, they go.
    _tasks: JoinSet<anyhow::Result<()>>,
}

impl Watchers {
    pub(crate) async fn gather(server: &Server, number: usize) -> anyhow::Result<Self> {
        let seen = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (ask, asked) = mpsc::channel(64);
            let mut client = WatchClient::new(channel(&server.address()).await?);
            let opened = client.watch(ReceiverStream::new(asked));
            let request = WatchCreateRequest {
                key: "watched/".into(),
                range_end: "watched0".into(),
                ..WatchCreateRequest::default()
            };
            let union = watch_request::RequestUnion::CreateRequest(request);
            let request = WatchRequest { request_union: Some(union) };
            ask.send(request.clone()).await?;
            let mut answers = opened.await?.into_inner();
            answers.message().await?.context("the stream ended")?;
            for _ in 1..number / CONNECTIONS {
                ask.send(request.clone()).await?;
                answers.message().await?.context("the stream ended")?;
            }
            let seen = Arc::clone(&seen);
            tasks.spawn(async move {
                let _stays_open = ask;
                while let Some(answer) = answers.message().await? {
                    seen.fetch_add(answer.events.len() as u64, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Ok(Self { seen, _tasks: tasks })
    }

    /// Events that all watchers together are told a second, while some write as fast as they can.
    pub(crate) async fn told(&self, server: &Server, span: Duration) -> anyhow::Result<f64> {
        let over = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let mut keys = KvClient::new(channel(&server.address()).await?);
            let over = Arc::clone(&over);
            writers.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let key = format!("watched/{writer}").into();
                    let request = PutRequest { key, value: "x".into(), ..PutRequest::default() };
                    keys.put(request).await?;
                }
                anyhow::Ok(())
            });
        }
        // What was written too fast to be told at once comes first.
        tokio::time::sleep(span / 4).await;
        let (before, since) = (self.seen.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(span).await;
        let seen = self.seen.load(Ordering::Relaxed) - before;
        let rate = seen as f64 / since.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        while let Some(done) = writers.join_next().await {
            done??;
        }
        self.rest().await;
        Ok(rate)
    }

    /// Returns when nothing more is told.
    async fn rest(&self) {
        let mut last = u64::MAX;
        while last != self.seen.load(Ordering::Relaxed) {
            last = self.seen.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}
