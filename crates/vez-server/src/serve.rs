//! The server: a replica, its lessor, and the doors at which clients ask.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use vez_api::etcdserverpb::{CompactionRequest, LeaseGrantRequest, LeaseRevokeRequest};
use vez_api::log::{self, command::Command};

use crate::api::{Member, Service, Shared};
use crate::hub::Hub;
use crate::lessor::Lessor;
use crate::raft::{self, OpenError, Replica};
use crate::seen::View;
use crate::seen::calls::CountCalls;
use crate::seen::chronicle::Chronicle;
use crate::seen::keep::{LeaseCounts, cause};
use crate::state::State;

/// How long requests under way may take when the server is stopped.
const FAREWELL: Duration = Duration::from_secs(1);
/// When ending a lease failed (a full disk, say), it is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// What a client may use up.
#[derive(Clone, Debug)]
pub struct Limits {
    pub request_bytes: usize,
    pub leases: usize,
    pub watches_per_stream: usize,
    /// Revisions of the past that are kept for reading and watching.
    pub history: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 1536 * 1024,
            leases: 1_000_000,
            watches_per_stream: 100_000,
            history: 100_000,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    pub name: String,
    pub listen_client: Vec<SocketAddr>,
    pub advertise_client: Vec<String>,
    pub advertise_peer: Vec<String>,
    pub limits: Limits,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
}

pub struct Server {
    replica: Replica,
    addresses: Vec<SocketAddr>,
    view: View,
    stop: watch::Sender<bool>,
    doors: JoinSet<()>,
    chores: JoinSet<()>,
}

impl Server {
    /// Opens the data, the doors, and is ready when it returns.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let mut listeners = Vec::new();
        for &address in &options.listen_client {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| StartError::Listen { address, error })?;
            listeners.push(listener);
        }
        let addresses: Vec<SocketAddr> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let hub = Arc::new(Hub::default());
        let lessor = Arc::new(Lessor::default());
        let replica = Replica::open(raft::Options::new(options.data_dir)).await?;
        let keep = options.limits.history;
        let full = Arc::new(Notify::new());
        let chronicle = Arc::new(replica.read(Chronicle::new));
        let leases = Arc::new(LeaseCounts::default());
        replica.listen({
            let (hub, lessor, full) = (Arc::clone(&hub), Arc::clone(&lessor), Arc::clone(&full));
            let (chronicle, leases) = (Arc::clone(&chronicle), Arc::clone(&leases));
            move |state, command, events| {
                match command {
                    Some(command) => {
                        let cause = cause(&lessor, &leases, state, command);
                        chronicle.note(state, cause, events);
                    }
                    None => chronicle.begin_anew(state),
                }
                note_lease(&lessor, state, command);
                hub.publish(state.revision(), events);
                if is_full(state, keep) {
                    full.notify_one();
                }
            }
        });
        let client_urls = match options.advertise_client.is_empty() {
            true => addresses.iter().map(|address| format!("http://{address}")).collect(),
            false => options.advertise_client,
        };
        let member = Member { name: options.name, peer_urls: options.advertise_peer, client_urls };
        let mut chores = JoinSet::new();
        chores.spawn(watch_leadership(replica.clone(), Arc::clone(&lessor)));
        chores.spawn(end_leases(replica.clone(), Arc::clone(&lessor)));
        chores.spawn(forget_history(replica.clone(), keep, full));
        let limits = options.limits;
        let service =
            Service::new(Shared { replica: replica.clone(), hub, lessor, limits, member });
        let view = View::new(service.clone(), chronicle, leases);
        view.keep(&mut chores);
        let (stop, stopped) = watch::channel(false);
        let mut doors = JoinSet::new();
        for listener in listeners {
            doors.spawn(open_door(service.clone(), view.count_calls(), listener, stopped.clone()));
        }
        Ok(Self { replica, addresses, view, stop, doors, chores })
    }

    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What people may see of it.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Lets requests under way finish, closes what never ends by itself, and the data.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let doors = async { while self.doors.join_next().await.is_some() {} };
        // Watches last as long as their clients want, which is no reason to wait for them.
        tokio::time::timeout(FAREWELL, doors).await.ok();
        self.doors.shutdown().await;
        self.chores.shutdown().await;
        self.replica.shutdown().await;
    }
}

async fn open_door(
    service: Service,
    calls: CountCalls,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .layer(calls)
        .add_routes(service.routes())
        .serve_with_incoming_shutdown(incoming, async move {
            stopped.wait_for(|stopped| *stopped).await.ok();
        });
    if let Err(error) = served.await {
        tracing::error!("a door closed: {error}");
    }
}

/// Whoever becomes leader starts every lease anew.
async fn watch_leadership(replica: Replica, lessor: Arc<Lessor>) {
    let mut leadership = replica.leadership();
    loop {
        if leadership.borrow_and_update().leading {
            replica.read(|state| lessor.lead(state.leases().map(|lease| (lease.id, lease.ttl))));
        } else {
            lessor.follow();
        }
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

async fn end_leases(replica: Replica, lessor: Arc<Lessor>) {
    loop {
        for id in lessor.next_over().await {
            let (replica, lessor) = (replica.clone(), Arc::clone(&lessor));
            tokio::spawn(async move {
                let held = replica.read(|state| {
                    let lease = state.lease(id)?;
                    Some(lease.keys().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>())
                });
                let Some(keys) = held else { return lessor.ended(id) };
                let command = Command::LeaseRevoke(LeaseRevokeRequest { id });
                match replica.propose(log::Command { command: Some(command) }).await {
                    Ok(_) => tracing::info!("lease {id:x} ran out; deleted: {keys:?}"),
                    Err(error) => {
                        tracing::warn!("lease {id:x} ran out and cannot be ended yet: {error}");
                        lessor.retry(id, RETRY);
                    }
                }
            });
        }
    }
}

/// Keeps the past bounded.
async fn forget_history(replica: Replica, keep: i64, full: Arc<Notify>) {
    loop {
        let before = replica.read(|state| is_full(state, keep).then(|| state.revision() - keep));
        let Some(revision) = before else {
            full.notified().await;
            continue;
        };
        let request = CompactionRequest { revision, physical: false };
        let command = log::Command { command: Some(Command::Compact(request)) };
        if let Err(error) = replica.propose(command).await {
            tracing::debug!("the history is not shortened yet: {error}");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Twice as much before anything is done: forgetting a little at a time is dear.
fn is_full(state: &State, keep: i64) -> bool {
    state.compacted().saturating_add(keep.saturating_mul(2)) < state.revision()
}

/// A lease that is there after a grant was granted by it, unless it was there before: then its time
/// goes on.
fn note_lease(lessor: &Lessor, state: &State, command: Option<&log::Command>) {
    match command.and_then(|command| command.command.as_ref()) {
        Some(Command::LeaseGrant(LeaseGrantRequest { id, .. })) => {
            if let Some(lease) = state.lease(*id) {
                lessor.granted(*id, lease.ttl);
            }
        }
        Some(Command::LeaseRevoke(LeaseRevokeRequest { id })) if state.lease(*id).is_none() => {
            lessor.ended(*id);
        }
        _ => {}
    }
}
