//! Very many locks that are held, each under a lease of its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
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
/// Each lease is kept alive so often: a third of a minute.
const EVERY: Duration = Duration::from_secs(20);
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
    let leases = take(server, number).await?;
    let megabytes = server.resident_megabytes()?;
    let (before, since) = (server.worked()?, Instant::now());
    keep_alive(server, leases).await?;
    let keeping = (server.worked()? - before) / since.elapsed().as_secs_f64();
    let since = Instant::now();
    server.crash()?;
    server.restart()?;
    while count(server).await.ok() != i64::try_from(number).ok() {
        ensure!(since.elapsed() < Duration::from_mins(2), "not all locks came back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(Held { megabytes, keeping, back_seconds: since.elapsed().as_secs_f64() })
}

/// The leases under which the locks are held.
async fn take(server: &Server, number: usize) -> anyhow::Result<Vec<i64>> {
    let mut tasks = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = channel(&server.address()).await?;
        for lane in 0..AT_A_TIME {
            let mut leases = LeaseClient::new(channel.clone());
            let mut locks = LockClient::new(channel.clone());
            tasks.spawn(async move {
                let mut held = Vec::new();
                let first = connection * AT_A_TIME + lane;
                for lock in (first..number).step_by(CONNECTIONS * AT_A_TIME) {
                    // Longer than it takes to take them all.
                    let request = LeaseGrantRequest { ttl: 3600, id: 0 };
                    let lease = leases.lease_grant(request).await?.into_inner().id;
                    let name = format!("held/{lock}").into();
                    locks.lock(LockRequest { name, lease }).await?;
                    held.push(lease);
                }
                anyhow::Ok(held)
            });
        }
    }
    let mut held = Vec::new();
    while let Some(done) = tasks.join_next().await {
        held.extend(done??);
    }
    Ok(held)
}

/// Once for every lease, spread over the time in which each must be kept alive once.
async fn keep_alive(server: &Server, leases: Vec<i64>) -> anyhow::Result<()> {
    let share = leases.len().div_ceil(CONNECTIONS);
    let mut tasks = JoinSet::new();
    for own in leases.chunks(share) {
        let own = own.to_vec();
        let mut client = LeaseClient::new(channel(&server.address()).await?);
        let (ask, asked) = mpsc::channel(own.len());
        tasks.spawn(async move {
            let number = own.len();
            let looks = usize::try_from(EVERY.as_millis() / LOOK.as_millis())?;
            tokio::spawn(async move {
                let mut look = tokio::time::interval(LOOK);
                for due in own.chunks(number.div_ceil(looks)) {
                    look.tick().await;
                    for &id in due {
                        if ask.send(LeaseKeepAliveRequest { id }).await.is_err() {
                            return;
                        }
                    }
                }
            });
            let mut answers =
                client.lease_keep_alive(ReceiverStream::new(asked)).await?.into_inner();
            for _ in 0..number {
                let answer = answers.message().await?.context("the stream ended")?;
                ensure!(answer.ttl > 0, "a lease is gone");
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
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
