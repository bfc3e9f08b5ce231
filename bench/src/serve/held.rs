//! Very many locks that are held, each under a lease of its own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::{LeaseGrantRequest, LeaseKeepAliveRequest, RangeRequest};
use vez_api::v3lockpb::LockRequest;
use vez_api::v3lockpb::lock_client::LockClient;

use super::client::channel;
use super::servers::Server;

const CONNECTIONS: usize = 16;
/// Requests under way on each connection while the locks are taken.
const AT_A_TIME: usize = 8;
/// Each lease is kept alive after a third of its time, and that is watched for all of it.
const TTL_SECONDS: i64 = 60;
const EVERY: Duration = Duration::from_secs(20);
const WATCHED: Duration = Duration::from_mins(1);
/// etcd's own client looks so often which are due, and asks for those at once.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) struct Held {
    pub(crate) megabytes: f64,
    /// Of one processor, while all leases are kept alive.
    pub(crate) keeping: f64,
    /// From the start after SIGKILL until all locks are seen.
    pub(crate) back_seconds: f64,
}

pub(crate) async fn measure(server: &mut Server, number: usize) -> anyhow::Result<Held> {
    let (mut keepers, mut tell) = (JoinSet::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let (one, told) = mpsc::unbounded_channel();
        keepers.spawn(keep_alive(LeaseClient::new(channel(&server.address()).await?), told));
        tell.push(one);
    }
    take(server, number, &tell).await?;
    let megabytes = server.resident_megabytes()?;
    let (before, since) = (server.worked()?, Instant::now());
    tokio::select! {
        Some(ended) = keepers.join_next() => ended??,
        () = tokio::time::sleep(WATCHED) => {}
    }
    let keeping = (server.worked()? - before) / since.elapsed().as_secs_f64();
    drop(tell);
    while let Some(ended) = keepers.join_next().await {
        ended??;
    }
    let since = Instant::now();
    server.crash()?;
    server.restart()?;
    while count(server).await.ok() != i64::try_from(number).ok() {
        ensure!(since.elapsed() < Duration::from_mins(2), "not all locks came back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(Held { megabytes, keeping, back_seconds: since.elapsed().as_secs_f64() })
}

/// Takes locks, each with a lease of its own, of which keepers are told.
async fn take(
    server: &Server,
    number: usize,
    tell: &[mpsc::UnboundedSender<i64>],
) -> anyhow::Result<()> {
    let mut tasks = JoinSet::new();
    for (connection, tell) in tell.iter().enumerate() {
        let channel = channel(&server.address()).await?;
        for lane in 0..AT_A_TIME {
            let mut leases = LeaseClient::new(channel.clone());
            let mut locks = LockClient::new(channel.clone());
            let tell = tell.clone();
            tasks.spawn(async move {
                let first = connection * AT_A_TIME + lane;
                for lock in (first..number).step_by(CONNECTIONS * AT_A_TIME) {
                    let request = LeaseGrantRequest { ttl: TTL_SECONDS, id: 0 };
                    let lease = leases.lease_grant(request).await?.into_inner().id;
                    tell.send(lease)?;
                    let name = format!("held/{lock}").into();
                    locks.lock(LockRequest { name, lease }).await?;
                }
                anyhow::Ok(())
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Keeps alive what it is told of, over one stream, until nobody can tell it of more.
async fn keep_alive(
    mut client: LeaseClient<Channel>,
    mut told: mpsc::UnboundedReceiver<i64>,
) -> anyhow::Result<()> {
    let (ask, asked) = mpsc::channel(1);
    let asking = async move {
        let (mut kept, mut look) = (VecDeque::new(), tokio::time::interval(LOOK));
        loop {
            look.tick().await;
            let now = Instant::now();
            loop {
                match told.try_recv() {
                    Ok(id) => kept.push_back((now + EVERY, id)),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return anyhow::Ok(()),
                }
            }
            while let Some((_, id)) = kept.pop_front_if(|(due, _)| *due <= now) {
                ask.send(LeaseKeepAliveRequest { id }).await?;
                kept.push_back((now + EVERY, id));
            }
        }
    };
    let hearing = async move {
        let stream = client.lease_keep_alive(ReceiverStream::new(asked)).await?;
        let mut answers = stream.into_inner();
        while let Some(answer) = answers.message().await? {
            ensure!(answer.ttl > 0, "a lease is gone");
        }
        Ok(())
    };
    tokio::try_join!(asking, hearing)?;
    Ok(())
}

async fn count(server: &Server) -> anyhow::Result<i64> {
    let request = RangeRequest {
        key: "held/".into(),
        range_end: "held0".into(),
        count_only: true,
        ..RangeRequest::default()
    };
    let mut keys = KvClient::new(channel(&server.address()).await?);
    Ok(keys.range(request).await?.into_inner().count)
}
