//! Very many who watch the same keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use bytes::Buf as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use tokio::task::JoinSet;
use vez_api::etcdserverpb::{
    PutRequest, PutResponse, WatchCreateRequest, WatchRequest, watch_request,
};

use super::servers::Server;
use super::wire::Wire;

const CONNECTIONS: usize = 20;
const WRITERS: usize = 8;
/// The number of `events` in a `WatchResponse`.
const EVENTS_TAG: u32 = 11;

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
        let request = WatchCreateRequest {
            key: "watched/".into(),
            range_end: "watched0".into(),
            ..WatchCreateRequest::default()
        };
        let union = watch_request::RequestUnion::CreateRequest(request);
        let request = WatchRequest { request_union: Some(union) };
        for _ in 0..CONNECTIONS {
            let mut wire = Wire::connect(&server.address()).await?;
            let watch = wire.open("/etcdserverpb.Watch/Watch", &request).await?;
            wire.message(watch).await?;
            for _ in 1..number / CONNECTIONS {
                wire.tell(watch, &request).await?;
                wire.message(watch).await?;
            }
            let seen = Arc::clone(&seen);
            tasks.spawn(async move {
                loop {
                    let events = events_in(wire.message(watch).await?)?;
                    seen.fetch_add(events, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { seen, _tasks: tasks })
    }

    /// Events that all watchers together are told a second, while some write as fast as they can.
    pub(crate) async fn told(&self, server: &Server, span: Duration) -> anyhow::Result<f64> {
        let over = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let mut wire = Wire::connect(&server.address()).await?;
            let over = Arc::clone(&over);
            writers.spawn(async move {
                let key = format!("watched/{writer}").into();
                let request = PutRequest { key, value: "x".into(), ..PutRequest::default() };
                while !over.load(Ordering::Relaxed) {
                    let _: PutResponse = wire.call("/etcdserverpb.KV/Put", &request).await?;
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

/// How many events an answer tells. They are counted and not read: what is measured is who tells.
fn events_in(mut answer: &[u8]) -> anyhow::Result<u64> {
    let mut events = 0;
    while !answer.is_empty() {
        match decode_key(&mut answer)? {
            (tag, WireType::LengthDelimited) => {
                let length = usize::try_from(decode_varint(&mut answer)?)?;
                if answer.len() < length {
                    bail!("an answer is cut off");
                }
                answer.advance(length);
                events += u64::from(tag == EVENTS_TAG);
            }
            (_, WireType::Varint) => drop(decode_varint(&mut answer)?),
            (tag, kind) => bail!("field {tag} is of kind {kind:?}"),
        }
    }
    Ok(events)
}
