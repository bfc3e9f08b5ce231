//! The server: a replica, its lessor, and the doors at which clients ask.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use vez_api::etcdserverpb::{CompactionRequest, LeaseGrantRequest, LeaseRevokeRequest};
use vez_api::log::{self, Reason, command::Command};
use vez_tls::net::{self, Net};
use vez_tls::{Acceptor, ServerFiles};

use crate::api::{Member, Service};
use crate::cluster::handover::Stage;
use crate::cluster::way::Way;
use crate::cluster::{Card, Membership, PeerTls, Timing, cluster_id, gate, member_id, reception};
use crate::door::{self, Doors};
use crate::hub::Hub;
use crate::lessor::Lessor;
use crate::raft::{self, Among, Keeping, Leadership, OpenError, Replica};
use crate::seen::View;
use crate::seen::chronicle::{Cause, Chronicle};
use crate::seen::keep::LeaseCounts;
use crate::state::State;
use crate::store::{Disk, directory};
use crate::talk::{self, Host};
use crate::watched;

/// How long requests under way may take when the server is stopped.
const FAREWELL: Duration = Duration::from_secs(1);
/// The most connections of other members at a time.
const PEERS_MAX: usize = 1_000;
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
    pub connections: usize,
    /// Calls under way at a time on one connection; whoever waits for a lock has one.
    pub streams_per_connection: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 1536 * 1024,
            leases: 1_000_000,
            watches_per_stream: 100_000,
            history: 100_000,
            connections: 10_000,
            streams_per_connection: 100_000,
        }
    }
}

/// Where clients are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    pub address: SocketAddr,
    /// Encrypted, with the certificates of [`Options::tls`].
    pub tls: bool,
}

impl Listen {
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.address)
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    pub name: String,
    pub listen_client: Vec<Listen>,
    pub tls: Option<ServerFiles>,
    pub advertise_client: Vec<String>,
    /// A cluster of one that nobody may join, if there is none.
    pub membership: Option<Membership>,
    pub timing: Timing,
    pub limits: Limits,
    pub keeping: Keeping,
    pub site: Site,
}

/// Where a server is: at a network and with a disk, real ones unless a simulation has others.
#[derive(Clone, Debug)]
pub struct Site {
    pub net: Arc<dyn Net>,
    pub disk: Disk,
}

impl Default for Site {
    fn default() -> Self {
        Self { net: Arc::new(net::System), disk: Disk::Real }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error(transparent)]
    Tls(#[from] vez_tls::Error),
    #[error("{0} needs a certificate")]
    NoCertificate(String),
    #[error("the cluster cannot be joined: {0}")]
    Join(String),
}

pub struct Server {
    replica: Replica,
    urls: Vec<String>,
    view: View,
    stop: watched::Sender<bool>,
    peers_stop: watched::Sender<bool>,
    removed: watched::Receiver<bool>,
    doors: JoinSet<()>,
    chores: JoinSet<()>,
}

impl Server {
    /// Opens the data, the doors, and is ready when it returns.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let tls = options.tls.clone().map(|files| Acceptor::load(files, &["h2"])).transpose()?;
        let net = &*options.site.net;
        let (listeners, urls) = listen(net, &options.listen_client, tls.map(Arc::new)).await?;
        let peer_doors = options.membership.as_ref().map_or(&[][..], |peers| &peers.listen);
        let peer_tls = options.membership.as_ref().and_then(|peers| peers.tls.as_ref());
        let acceptor = peer_tls.map(PeerTls::acceptor).transpose()?;
        let (peer_listeners, _) = listen(net, peer_doors, acceptor.map(Arc::new)).await?;
        let hub = Arc::new(Hub::default());
        let way =
            Way::new(Arc::clone(&options.site.net), peer_tls.map(PeerTls::connector).transpose()?);
        let replica = open(&options, &way).await?;
        let lessor = Arc::new(Lessor::new({
            let replica = replica.downgrade();
            move || replica.upgrade().is_none_or(|replica| !replica.can_write())
        }));
        let keep = options.limits.history;
        let full = Arc::new(Notify::new());
        let chronicle = Arc::new(replica.read(Chronicle::new));
        let leases = Arc::new(LeaseCounts::new(replica.read(|state| state.leases().len())));
        let ears = Ears {
            hub: Arc::clone(&hub),
            lessor: Arc::clone(&lessor),
            chronicle: Arc::clone(&chronicle),
            leases: Arc::clone(&leases),
            full: Arc::clone(&full),
            keep,
        };
        ears.listen(&replica);
        let client_urls = match options.advertise_client.is_empty() {
            true => urls.clone(),
            false => options.advertise_client,
        };
        let (peer_urls, token) = options.membership.map_or_else(Default::default, |peers| {
            (peers.advertise, Arc::<str>::from(peers.token))
        });
        let member = Member { name: options.name, peer_urls, client_urls };
        let mut chores = JoinSet::new();
        let mut leadership = replica.leadership();
        // Before anybody can ask: a lease without time would look like one that ended.
        take_lead(&replica, &lessor, leadership.borrow_and_update().leading);
        chores.spawn(watch_leadership(replica.clone(), leadership, Arc::clone(&lessor)));
        let crowds = Arc::clone(&hub);
        chores.spawn(async move { crowds.ring_later().await });
        chores.spawn(end_leases(replica.clone(), Arc::clone(&lessor)));
        chores.spawn(forget_history(replica.clone(), keep, full));
        let limits = options.limits;
        let doors_seen = Arc::new(Doors::new(limits.connections));
        let service = Service::new(replica.clone(), hub, lessor, limits, member);
        let view = View::new(service.clone(), chronicle, leases, Arc::clone(&doors_seen));
        view.keep(&mut chores);
        let (stop, stopped) = watched::channel(false);
        let host = Host::new(service.clone(), view.calls());
        let mut doors = JoinSet::new();
        for (listener, tls) in listeners {
            let callers = door::open(listener, tls, Arc::clone(&doors_seen), stopped.clone());
            doors.spawn(talk::serve(host.clone(), callers, stopped.clone()));
        }
        let (peers_stop, _) = watched::channel(false);
        let removed = if replica.has_peers() {
            let peers = Peers { listeners: peer_listeners, way, token, stop: &peers_stop };
            peers.serve(&service, &mut chores)
        } else {
            watched::channel(false).1
        };
        Ok(Self { replica, urls, view, stop, peers_stop, removed, doors, chores })
    }

    /// Where clients are heard.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// What people may see of it.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Returns when this member has been removed from its cluster: nothing it says counts then.
    pub async fn removed(&mut self) {
        if self.removed.wait_for(|removed| *removed).await.is_err() {
            // It never is.
            std::future::pending::<()>().await;
        }
    }

    /// Lets requests under way finish, closes what never ends by itself, and the data.
    pub async fn stop(mut self) {
        self.replica.stage().send_replace(Stage::Leaves);
        // Before anything else: whoever waits then waits for the next leader, not for its election.
        if !matches!(self.replica.hand_over(None).await, Ok(true)) {
            tracing::info!("nobody else leads");
        }
        self.stop.send_replace(true);
        let doors = async { while self.doors.join_next().await.is_some() {} };
        // Watches last as long as their clients want, which is no reason to wait for them.
        tokio::time::timeout(FAREWELL, doors).await.ok();
        self.peers_stop.send_replace(true);
        // Before those who wait are sent away: they have not gone, and keep their places.
        self.replica.leave().await;
        self.doors.shutdown().await;
        self.chores.shutdown().await;
        self.replica.shutdown().await;
    }
}

/// Who hears what becomes of the state.
struct Ears {
    hub: Arc<Hub>,
    lessor: Arc<Lessor>,
    chronicle: Arc<Chronicle>,
    leases: Arc<LeaseCounts>,
    /// Rung when there is more of the past than is kept.
    full: Arc<Notify>,
    keep: i64,
}

impl Ears {
    fn listen(self, replica: &Replica) {
        replica.listen_for_pauses({
            let hub = Arc::clone(&self.hub);
            move || hub.ring()
        });
        replica.listen(move |state, command, events| {
            match command {
                Some(command) => {
                    let cause = Cause::of(command);
                    note_lease(&self.lessor, state, command);
                    self.leases.note(state.leases().len(), cause);
                    self.chronicle.note(state, cause, events);
                }
                None => {
                    self.leases.begin_anew(state.leases().len());
                    self.chronicle.begin_anew(state);
                    self.hub.begin_anew();
                }
            }
            self.hub.publish(state.revision(), events);
            if is_full(state, self.keep) {
                self.full.notify_one();
            }
        });
    }
}

/// How other members come in.
struct Peers<'a> {
    listeners: Vec<Listener>,
    way: Way,
    token: Arc<str>,
    /// They are heard to the end.
    stop: &'a watched::Sender<bool>,
}

impl Peers<'_> {
    /// Does what a member does for others; says when it is not one any more.
    fn serve(self, service: &Service, chores: &mut JoinSet<()>) -> watched::Receiver<bool> {
        let Self { listeners, way, token, stop } = self;
        let seen = Arc::new(Doors::new(PEERS_MAX));
        for (listener, tls) in listeners {
            let peers = door::open(listener, tls, Arc::clone(&seen), stop.subscribe());
            chores.spawn(gate::serve(service.clone(), Arc::clone(&token), peers));
        }
        let Member { name, peer_urls, client_urls } = service.member.clone();
        let card = Card { name, peer_urls, client_urls, is_candidate: false };
        let replica = service.replica.clone();
        chores.spawn(async move { replica.publish(card).await });
        let replica = service.replica.clone();
        chores.spawn(async move { replica.hand_over_when_hanging().await });
        let replica = service.replica.clone();
        chores.spawn(async move { replica.watch_for_leaders().await });
        let (remove, removed) = watched::channel(false);
        let replica = service.replica.clone();
        chores.spawn(async move {
            replica.removed(way, token).await;
            tracing::error!("this member has been removed from the cluster");
            remove.send_replace(true);
            // Whoever waits for this must not take its end for an answer.
            std::future::pending::<()>().await;
        });
        removed
    }
}

/// Takes the data: as one of several, if that was asked for.
async fn open(options: &Options, way: &Way) -> Result<Replica, StartError> {
    let mut wanted = raft::Options::new(&options.data_dir);
    wanted.timing = options.timing;
    wanted.keeping = options.keeping;
    wanted.disk = options.site.disk.clone();
    let Some(membership) = &options.membership else { return Ok(Replica::open(wanted).await?) };
    let members = membership.members();
    // Whose data it is was settled when it was made.
    let known = directory::identity(&options.data_dir).map_err(OpenError::from)?;
    if known.is_none() && membership.is_existing {
        let joined = reception::join(membership, way).await.map_err(StartError::Join)?;
        (wanted.cluster, wanted.member) = (Some(joined.cluster), Some(joined.member));
    } else if known.is_none() {
        let own = membership.initial.get(&options.name);
        wanted.cluster = Some(cluster_id(members.keys().copied()));
        wanted.member = own.map(|urls| member_id(urls, &membership.token));
    }
    Ok(Replica::open_among(wanted, Among { members, way: way.clone() }).await?)
}

type Listener = (Box<dyn net::Listener>, Option<Arc<Acceptor>>);

/// Takes the addresses, and says which they are: a port may have been free to choose.
async fn listen(
    net: &dyn Net,
    wanted: &[Listen],
    tls: Option<Arc<Acceptor>>,
) -> Result<(Vec<Listener>, Vec<String>), StartError> {
    let (mut listeners, mut urls) = (Vec::new(), Vec::new());
    for &Listen { address, tls: is_encrypted } in wanted {
        let tls = tls.clone().filter(|_| is_encrypted);
        if is_encrypted && tls.is_none() {
            return Err(StartError::NoCertificate(Listen { address, tls: true }.url()));
        }
        let failed = |error| StartError::Listen { address, error };
        let listener = net.listen(address).await.map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        urls.push(Listen { address, tls: is_encrypted }.url());
        listeners.push((listener, tls));
    }
    Ok((listeners, urls))
}

async fn watch_leadership(
    replica: Replica,
    mut leadership: watched::Receiver<Leadership>,
    lessor: Arc<Lessor>,
) {
    while leadership.changed().await.is_ok() {
        take_lead(&replica, &lessor, leadership.borrow_and_update().leading);
    }
}

/// Whoever becomes leader starts every lease anew.
fn take_lead(replica: &Replica, lessor: &Lessor, leads: bool) {
    if leads {
        replica.read(|state| lessor.lead(state.leases().map(|lease| (lease.id, lease.ttl))));
    } else {
        lessor.follow();
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
                let Some(keys) = held else {
                    lessor.ended(id);
                    return;
                };
                let command = Command::LeaseRevoke(LeaseRevokeRequest { id });
                let reason = Reason::Expired.into();
                match replica.propose(log::Command { reason, ..command.into() }).await {
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
        if let Err(error) = replica.propose(Command::Compact(request).into()).await {
            tracing::debug!("the history is not shortened yet: {error}");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// As much again before anything is done, or so much: to forget takes an entry of the log, and
/// while much is forgotten all others wait.
fn is_full(state: &State, keep: i64) -> bool {
    const PORTION: i64 = 1_000;
    let most = keep.saturating_add(keep.min(PORTION));
    state.compacted().saturating_add(most) < state.revision()
}

/// What a command means for the time of leases.
fn note_lease(lessor: &Lessor, state: &State, command: &log::Command) {
    match &command.command {
        Some(Command::LeaseGrant(LeaseGrantRequest { id, .. })) => {
            // It may have been there before: then its time goes on.
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
