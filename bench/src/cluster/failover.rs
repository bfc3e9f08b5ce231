//! Clients at work while the leader is taken away, as real ones do it: they know all members, give
//! an answer little time, and ask the next one when it does not come.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use vez_api::etcdserverpb::{PutRequest, PutResponse, StatusRequest, StatusResponse};
use zookeeper_client::{Acls, Client as Session, CreateMode};

use crate::measure::Rates;
use crate::serve::servers::{Kind, Server};
use crate::serve::wire::Wire;

/// Four at each member.
const CLIENTS: usize = 12;
/// Who has no answer after this asks another.
const DEADLINE: Duration = Duration::from_millis(500);
/// Between two writes of a client, so that it is not the load that is measured.
const PAUSE: Duration = Duration::from_millis(2);
/// How long anything may take before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill,
    Stop,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGSTOP",
        })
    }
}

impl Fault {
    /// How long the service may be missed.
    pub(super) fn limit(self) -> Duration {
        match self {
            Self::Kill => Duration::from_millis(500),
            Self::Stop => Duration::from_secs(1),
        }
    }
}

/// For how long nothing was acknowledged, in seconds, in each round.
#[derive(Default)]
pub(super) struct Missed {
    /// To anybody.
    pub(super) by_all: Rates,
    /// To whoever waited longest.
    pub(super) by_one: Rates,
}

/// When something was last acknowledged, the longest time without that, and how often it was.
#[derive(Clone, Copy)]
struct Gap {
    last: Instant,
    longest: Duration,
    count: u64,
}

impl Gap {
    fn note(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        (self.last, self.count) = (Instant::now(), self.count + 1);
    }

    /// Counts the longest anew from here.
    fn reset(&mut self) {
        (self.last, self.longest) = (Instant::now(), Duration::ZERO);
    }
}

struct Seen {
    by_all: Gap,
    by_one: [Gap; CLIENTS],
}

#[derive(Clone)]
struct Witness(Arc<Mutex<Seen>>);

impl Witness {
    fn new() -> Self {
        let gap = Gap { last: Instant::now(), longest: Duration::ZERO, count: 0 };
        Self(Arc::new(Mutex::new(Seen { by_all: gap, by_one: [gap; CLIENTS] })))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, client: usize) {
        let mut seen = self.seen();
        seen.by_all.note();
        seen.by_one[client].note();
    }

    /// Returns when every client has been acknowledged so much more.
    async fn all_go_on(&self, by: u64) -> anyhow::Result<()> {
        let begun = Instant::now();
        let counts = || self.seen().by_one.map(|gap| gap.count);
        let before = counts();
        while counts().iter().zip(before).any(|(now, before)| *now < before + by) {
            let now = counts();
            ensure!(begun.elapsed() < PATIENCE, "somebody does not get on: {before:?}, {now:?}");
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

pub(super) async fn measure(
    servers: &mut [Server],
    fault: Fault,
    rounds: u32,
) -> anyhow::Result<Missed> {
    let (witness, mut clients) = (Witness::new(), JoinSet::new());
    let (kind, addresses) = (servers[0].kind, servers.iter().map(Server::address));
    let addresses: Vec<_> = addresses.collect();
    for client in 0..CLIENTS {
        let mut addresses = addresses.clone();
        addresses.rotate_left(client % servers.len());
        clients.spawn(write(kind, addresses, client, witness.clone()));
    }
    let mut missed = Missed::default();
    for round in 0..rounds {
        witness.all_go_on(20).await?;
        let leader = leader(servers).await?;
        // At another point between two heartbeats each time.
        sleep(Duration::from_millis(u64::from(37 * round))).await;
        {
            let mut seen = witness.seen();
            seen.by_all.reset();
            seen.by_one.iter_mut().for_each(Gap::reset);
        }
        match fault {
            Fault::Kill => servers[leader].crash()?,
            Fault::Stop => servers[leader].signal(Signal::STOP)?,
        }
        witness.all_go_on(10).await?;
        {
            let seen = witness.seen();
            missed.by_all.push(seen.by_all.longest.as_secs_f64());
            let longest = seen.by_one.iter().map(|gap| gap.longest).max().unwrap_or_default();
            missed.by_one.push(longest.as_secs_f64());
        }
        match fault {
            Fault::Kill => servers[leader].restart()?,
            Fault::Stop => servers[leader].signal(Signal::CONT)?,
        }
        until_well(&servers[leader]).await?;
    }
    Ok(missed)
}

/// Writes into a key of its own, for ever.
async fn write(kind: Kind, addresses: Vec<String>, client: usize, witness: Witness) {
    for turn in 0.. {
        let connected = Writer::connect(kind, &addresses, turn, client);
        let Ok(Ok(mut writer)) = timeout(2 * DEADLINE, connected).await else { continue };
        loop {
            if let Ok(Ok(())) = timeout(DEADLINE, writer.write()).await {
                witness.note(client);
            } else if writer.is_over() {
                break;
            }
            sleep(PAUSE).await;
        }
    }
}

enum Writer {
    /// vez and etcd.
    Grpc(Wire, PutRequest),
    /// A session, which goes to the next member by itself.
    ZooKeeper(Session, String),
}

impl Writer {
    async fn connect(
        kind: Kind,
        addresses: &[String],
        turn: usize,
        client: usize,
    ) -> anyhow::Result<Self> {
        if kind != Kind::ZooKeeper {
            let wire = Wire::connect(&addresses[turn % addresses.len()]).await?;
            let key = format!("failover/{client}").into();
            return Ok(Self::Grpc(wire, PutRequest { key, ..PutRequest::default() }));
        }
        let connector = Session::connector()
            .with_session_timeout(Duration::from_secs(30))
            .with_connection_timeout(DEADLINE);
        let session = connector.connect(&addresses.join(",")).await?;
        let node = format!("/failover-{client}");
        let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
        match session.create(&node, b"", &lasting).await {
            Ok(_) | Err(zookeeper_client::Error::NodeExists) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self::ZooKeeper(session, node))
    }

    async fn write(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Grpc(wire, put) => {
                let _: PutResponse = wire.call("/etcdserverpb.KV/Put", put).await?;
            }
            Self::ZooKeeper(session, node) => {
                session.set_data(node, b"x", None).await?;
            }
        }
        Ok(())
    }

    /// Whether to look for another after a failure.
    fn is_over(&self) -> bool {
        match self {
            Self::Grpc(..) => true,
            Self::ZooKeeper(session, _) => session.state().is_terminated(),
        }
    }
}

/// What a member of vez or etcd says of itself.
async fn status(server: &Server) -> anyhow::Result<StatusResponse> {
    let asked = async {
        let mut wire = Wire::connect(&server.address()).await?;
        wire.call("/etcdserverpb.Maintenance/Status", &StatusRequest {}).await
    };
    timeout(DEADLINE, asked).await?
}

async fn leads(server: &Server) -> bool {
    match server.kind {
        Kind::ZooKeeper => server.zookeeper_says().is_ok_and(|said| said.contains("Mode: leader")),
        _ => status(server).await.is_ok_and(|status| {
            status.header.is_some_and(|header| header.member_id == status.leader)
        }),
    }
}

async fn leader(servers: &[Server]) -> anyhow::Result<usize> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        for (number, server) in servers.iter().enumerate() {
            if leads(server).await {
                return Ok(number);
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("nobody leads")
}

/// Returns when a member that was away serves again.
async fn until_well(server: &Server) -> anyhow::Result<()> {
    let begun = Instant::now();
    let address = [server.address()];
    loop {
        let asked = async {
            let mut writer = Writer::connect(server.kind, &address, 0, CLIENTS).await?;
            writer.write().await
        };
        if let Ok(Ok(())) = timeout(2 * DEADLINE, asked).await {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "a member does not come back");
        sleep(Duration::from_millis(20)).await;
    }
}
