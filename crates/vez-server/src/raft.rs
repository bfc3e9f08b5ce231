//! One member of the replicated service: what it is asked is agreed upon, made durable, applied.

mod error;
mod options;
mod propose;
mod together;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use openraft::async_runtime::Instant as _;
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::errors::{Fatal, LinearizableReadError, RaftError};
use openraft::impls::BasicNode;
use openraft::raft::ReadPolicy;
use openraft::{Config, Raft, SnapshotPolicy};
use vez_api::log::Command;
use vez_api::mvccpb::Event;

pub use self::error::{OpenError, ProposeError};
pub use self::options::{Keeping, Options};
pub(crate) use self::propose::Proposed;
pub(crate) use self::together::Haste;
use self::together::{Company, Together};

use crate::cluster::gate::Heard;
use crate::cluster::handover::Stage;
use crate::cluster::link::{Link, Links};
use crate::cluster::progress::Progress;
use crate::cluster::rounds::Rounds;
use crate::cluster::way::Way;
use crate::cluster::{Card, Timing, leadership};
use crate::state::State;
use crate::store::directory::{self, Directory, Identity};
use crate::store::disk::Disk;
use crate::store::engine::Engine;
use crate::store::log::LogStore;
use crate::store::machine::{Machine, Policy, Shared};
use crate::store::snapshot::Snapshots;
use crate::store::writer::{Counters, Sink, Writer, Writing};
use crate::store::{Proposal, SnapshotMeta, Types};
use crate::watched;

/// A log that hangs for longer takes nothing more.
const HANGS: Duration = Duration::from_secs(1);

/// Those with whom a member is opened.
pub(crate) struct Among {
    /// The members of which a cluster is made, if there is none yet.
    pub(crate) members: BTreeMap<u64, Card>,
    pub(crate) way: Way,
}

/// Who leads, as this member sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub term: u64,
    pub leader: Option<u64>,
    /// This member leads, and has applied all that was agreed upon before it did.
    pub leading: bool,
}

/// Whether this member can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Well,
    /// The write under way has taken too long, and may still come to an end.
    Hangs(Duration),
    /// Not before it is started again.
    Failed(String),
}

/// A handle on this member; clones are the same member.
#[derive(Clone)]
pub struct Replica {
    inner: Arc<Inner>,
}

/// For those whom the member itself keeps: it is not kept by them.
pub(crate) struct WeakReplica(Weak<Inner>);

impl WeakReplica {
    pub(crate) fn upgrade(&self) -> Option<Replica> {
        self.0.upgrade().map(|inner| Replica { inner })
    }
}

struct Inner {
    raft: Raft<Types, Machine>,
    shared: Arc<Shared>,
    identity: Identity,
    leadership: watched::Receiver<Leadership>,
    counters: Arc<Counters>,
    directory: PathBuf,
    open: Mutex<Option<Open>>,
    timing: Timing,
    /// None, if it is alone and nobody may join.
    links: Option<Links>,
    heard: Arc<Heard>,
    is_leaderless: watched::Sender<bool>,
    stage: watched::Sender<Stage>,
    questions: Arc<Questions>,
    confirmations: Arc<Questions>,
    together: Arc<Together<Proposal, Proposed>>,
    /// Held by who changes the members.
    changing: tokio::sync::Mutex<()>,
}

/// What is asked many times at once, and answered with an entry's index.
type Questions = Rounds<Result<u64, ProposeError>>;

/// What is let go of when the member stops, in this order.
struct Open {
    snapshots: Snapshots,
    writing: Writing,
    disk: Disk,
    _directory: Directory,
}

impl fmt::Debug for Replica {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Replica").field("identity", &self.inner.identity).finish_non_exhaustive()
    }
}

impl Replica {
    /// Takes the directory and goes on from what is in it. Returns when this member leads, having
    /// applied all that it ever acknowledged.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        Self::open_on(options, None, |engine| engine).await
    }

    /// One of several: returns at once, whoever leads.
    pub(crate) async fn open_among(options: Options, among: Among) -> Result<Self, OpenError> {
        Self::open_on(options, Some(among), |engine| engine).await
    }

    async fn open_on<S: Sink + 'static>(
        options: Options,
        among: Option<Among>,
        sink: impl FnOnce(Engine) -> S,
    ) -> Result<Self, OpenError> {
        let directory = Directory::open(&options.directory, options.cluster, options.member)?;
        let identity = directory.identity;
        let (engine, stored) = Engine::open(&directory.log())?;
        let snapshots = Snapshots::new(directory.path());
        let kept = restore(&snapshots)?;
        let covered = kept.as_ref().and_then(|(meta, _)| meta.last_log_id);
        if let Some(purged) = stored.purged.filter(|purged| covered < Some(*purged)) {
            let (directory, from) = (options.directory, purged.index + 1);
            return Err(OpenError::Gap { directory, from });
        }
        let (disk, policy) = (options.disk.clone(), Policy::from(options.keeping));
        let way = among.as_ref().map(|among| among.way.clone()).unwrap_or_default();
        let links = Links::new(identity, options.timing, way, options.disk.clone());
        let shared = Shared::new(snapshots.clone(), policy, kept, disk.clone());
        let shared = Arc::new(shared.among(among.is_some().then(|| links.clone())));
        let counters = Arc::new(Counters::default());
        let (writer, writing) =
            Writer::start(sink(engine), Arc::clone(&counters), &disk, among.is_none())
                .map_err(start)?;
        let config = Arc::new(config(&options, identity).map_err(start)?);
        let machine = Machine(Arc::clone(&shared));
        let log = LogStore::new(stored, writer, disk.clone());
        let raft = Raft::new(identity.member, config, links.clone(), log, machine);
        let raft = raft.await.map_err(start)?;
        match &among {
            None => lead(&raft, identity.member).await?,
            Some(among) => leadership::gather(&raft, identity.member, &among.members)
                .await
                .map_err(OpenError::Start)?,
        }
        let (announce, leadership) = watched::channel(Leadership::default());
        tokio::spawn(leadership::announce(raft.clone(), identity.member, links.clone(), announce));
        tokio::spawn(snapshot_when_due(raft.clone(), Arc::clone(&shared)));
        let company = if among.is_some() { Company::Half } else { Company::Third };
        let open = Mutex::new(Some(Open { snapshots, writing, disk, _directory: directory }));
        let inner = Inner {
            raft,
            shared,
            identity,
            leadership,
            counters,
            directory: options.directory,
            open,
            timing: options.timing,
            links: among.is_some().then_some(links),
            heard: Arc::default(),
            is_leaderless: watched::Sender::new(false),
            stage: watched::Sender::new(Stage::default()),
            questions: Arc::default(),
            confirmations: Arc::default(),
            together: Together::new(company),
            changing: tokio::sync::Mutex::default(),
        };
        let replica = Self { inner: Arc::new(inner) };
        if among.is_some() {
            return Ok(replica);
        }
        let mut leadership = replica.leadership();
        if leadership.wait_for(|now| now.leading).await.is_err() {
            return Err(start("it stopped before it led"));
        }
        Ok(replica)
    }

    pub(crate) fn downgrade(&self) -> WeakReplica {
        WeakReplica(Arc::downgrade(&self.inner))
    }

    /// Looks at what this member has applied. Nothing is applied meanwhile: whoever registers for
    /// what comes next in here misses nothing and sees nothing twice.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.inner.shared.read(look)
    }

    /// Returns once all that was acknowledged anywhere before the call can be read here.
    pub async fn linearizable(&self) -> Result<(), ProposeError> {
        if !self.has_peers() {
            return self.is_readable();
        }
        let read = self.inner.raft.ensure_linearizable(ReadPolicy::ReadIndex).await;
        read.map(|_| ()).map_err(|error| self.unread(error))
    }

    /// Whoever is alone has applied all that it acknowledged, also while it waits for its disk.
    fn is_readable(&self) -> Result<(), ProposeError> {
        match self.inner.counters.failure() {
            Some(why) => Err(ProposeError::Disk(why.to_owned())),
            None if !self.inner.leadership.borrow().leading => Err(ProposeError::Stopping),
            None => Ok(()),
        }
    }

    /// That it leads, confirmed by a majority; and the entry up to which must be applied what is
    /// to be read.
    pub(crate) async fn confirm_here(&self) -> Result<u64, ProposeError> {
        let read = self.inner.raft.get_read_linearizer(ReadPolicy::ReadIndex).await;
        read.map(|read| read.read_log_id().index()).map_err(|error| self.unread(error))
    }

    /// Calls `listener` for every command applied from now on, in order, while the state is held:
    /// with the state after it, the command, and what it changed. It must be quick.
    pub fn listen(
        &self,
        listener: impl Fn(&State, Option<&Command>, &[Event]) + Send + Sync + 'static,
    ) {
        self.inner.shared.listen(Box::new(listener));
    }

    /// Calls `pause` whenever all that was agreed upon so far is applied.
    pub(crate) fn listen_for_pauses(&self, pause: impl Fn() + Send + Sync + 'static) {
        self.inner.shared.listen_for_pauses(Box::new(pause));
    }

    /// Who leads, now and from now on.
    pub fn leadership(&self) -> watched::Receiver<Leadership> {
        self.inner.leadership.clone()
    }

    /// As far as it knows.
    pub(crate) fn is_leader(&self) -> bool {
        self.inner.leadership.borrow().leader == Some(self.member_id())
    }

    pub(crate) fn raft(&self) -> &Raft<Types, Machine> {
        &self.inner.raft
    }

    /// Whether others may have to be asked.
    pub(crate) fn has_peers(&self) -> bool {
        self.inner.links.is_some()
    }

    /// The way to another member that is known to lead, or that did.
    pub(crate) fn link(&self, member: u64) -> Option<Link> {
        self.inner.links.as_ref()?.way_to(member)
    }

    /// Whether a majority has been heard of late; it may have another leader otherwise.
    pub(crate) fn has_majority(&self) -> bool {
        if !self.has_peers() {
            return true;
        }
        let metrics = self.inner.raft.metrics();
        let now = metrics.borrow_watched();
        let acknowledged = now
            .last_quorum_acked
            .is_some_and(|at| at.into_inner().elapsed() < self.inner.timing.election);
        let is_alone = || now.membership_config.voter_ids().nth(1).is_none();
        acknowledged || is_alone()
    }

    /// Whether what ends can be written down, as far as that is known.
    pub(crate) fn can_write(&self) -> bool {
        self.hangs().is_none() && self.has_majority()
    }

    pub(crate) fn timing(&self) -> Timing {
        self.inner.timing
    }

    pub(crate) fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.inner.heard)
    }

    pub(crate) fn is_leaderless(&self) -> &watched::Sender<bool> {
        &self.inner.is_leaderless
    }

    pub(crate) fn stage(&self) -> &watched::Sender<Stage> {
        &self.inner.stage
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.inner.shared.progress
    }

    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.inner.questions
    }

    pub(crate) fn changing(&self) -> &tokio::sync::Mutex<()> {
        &self.inner.changing
    }

    pub(crate) fn confirmations(&self) -> &Arc<Questions> {
        &self.inner.confirmations
    }

    pub fn term(&self) -> u64 {
        self.inner.leadership.borrow().term
    }

    pub fn member_id(&self) -> u64 {
        self.inner.identity.member
    }

    pub fn cluster_id(&self) -> u64 {
        self.inner.identity.cluster
    }

    /// The last entry of the log, and the last one applied.
    pub fn indices(&self) -> (u64, u64) {
        let metrics = self.inner.raft.metrics();
        let now = metrics.borrow_watched();
        let applied = now.last_applied.map_or(0, |id| id.index);
        (now.last_log_index.unwrap_or(0), applied)
    }

    /// How much of the disk its files take.
    pub fn disk_bytes(&self) -> u64 {
        directory::bytes_of(&self.inner.directory)
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.inner.counters
    }

    /// How often the log was synced since it was opened.
    pub fn syncs(&self) -> u64 {
        self.inner.counters.syncs.load(Ordering::Relaxed)
    }

    pub fn health(&self) -> Health {
        match (self.inner.counters.failure(), self.hangs()) {
            (Some(why), _) => Health::Failed(why.to_owned()),
            (None, Some(so_far)) => Health::Hangs(so_far),
            (None, None) => Health::Well,
        }
    }

    /// For how long, if it does.
    pub(crate) fn hangs(&self) -> Option<Duration> {
        self.inner.counters.under_way().filter(|so_far| HANGS < *so_far)
    }

    /// Writes a snapshot now, rather than when it is due.
    pub async fn snapshot(&self) -> Result<(), ProposeError> {
        self.inner.raft.trigger().snapshot().await.map_err(|fatal| self.stopped(&fatal))
    }

    fn unread(&self, error: RaftError<Types, LinearizableReadError<Types>>) -> ProposeError {
        match error {
            RaftError::Fatal(fatal) => self.stopped(&fatal),
            RaftError::APIError(LinearizableReadError::ForwardToLeader(to)) => {
                ProposeError::NotLeader {
                    leader: to.leader_id,
                    address: to.leader_node.map(|node| node.addr),
                }
            }
            RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => {
                ProposeError::NoMajority
            }
        }
    }

    fn stopped(&self, fatal: &Fatal<Types>) -> ProposeError {
        let why = match fatal {
            Fatal::StorageError(error) => Some(error.to_string()),
            // Of many that were asked together, none is told why it stopped.
            Fatal::Panicked | Fatal::Stopped => self.inner.counters.failure().map(str::to_owned),
        };
        match why {
            Some(why) if self.has_peers() => ProposeError::DiskOfOne(why),
            Some(why) => ProposeError::Disk(why),
            None => ProposeError::Stopping,
        }
    }

    /// Stops; what was acknowledged is durable already. The directory is free when it returns.
    pub async fn shutdown(&self) {
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::error!("the member did not stop in order: {error}");
        }
        if let Some(links) = &self.inner.links {
            links.close();
        }
        let open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Open { snapshots, writing, disk, _directory }) = open {
            let close = move || {
                snapshots.close();
                Ok(())
            };
            let closed = disk.work(close).await;
            if let Err(error) = closed.and(writing.close().await) {
                tracing::error!("the log was not closed in order: {error}");
            }
        }
    }
}

fn start(error: impl fmt::Display) -> OpenError {
    OpenError::Start(error.to_string())
}

/// The newest whole snapshot.
fn restore(snapshots: &Snapshots) -> Result<Option<(SnapshotMeta, State)>, OpenError> {
    snapshots.tidy().map_err(start)?;
    let Some(kept) = snapshots.newest()? else { return Ok(None) };
    let state = kept.state().map_err(start)?;
    Ok(Some((kept.meta().clone(), state)))
}

fn config(options: &Options, identity: Identity) -> Result<Config, openraft::ConfigError> {
    let Timing { heartbeat, election } = options.timing;
    let milliseconds = |time: Duration| time.as_millis() as u64;
    let config = Config {
        cluster_name: format!("{:x}", identity.cluster),
        heartbeat_interval: milliseconds(heartbeat),
        // Who has heard a leader waits for its lease to end, which lasts for the longer of the
        // two, and then for a time between them: both together are at most what was asked for.
        election_timeout_min: milliseconds(election) / 4,
        election_timeout_max: milliseconds(election) / 2,
        // Who was away for a while must not depose a leader that all others hear.
        enable_pre_vote: Some(true),
        backoff: "10ms 20ms 40ms ...200ms".to_owned(),
        // We count bytes too.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: options.keeping.entries_kept,
        // The state is not durable by itself: who leads must first have agreed upon its log anew.
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    config.validate()
}

/// Makes a cluster of one of a new directory; else becomes leader without waiting for a timeout.
async fn lead(raft: &Raft<Types, Machine>, member: u64) -> Result<(), OpenError> {
    let voters =
        raft.with_raft_state(|state| state.membership_state.effective().voter_ids().count());
    let voters = voters.await.map_err(start)?;
    if 1 < voters {
        return Err(start(format!(
            "it is one of {voters}, and the others could not reach it: expected --initial-cluster, \
             or --listen-peer-urls"
        )));
    }
    if raft.is_initialized().await.map_err(start)? {
        raft.trigger().elect(false).await.map_err(start)
    } else {
        let members = BTreeMap::from([(member, BasicNode::default())]);
        raft.initialize(members).await.map_err(start)
    }
}

/// Ends with the member.
async fn snapshot_when_due(raft: Raft<Types, Machine>, shared: Arc<Shared>) {
    loop {
        shared.due.notified().await;
        if raft.trigger().snapshot().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::command;

    use super::*;
    use crate::store::writer::tests::{Gate, Gated};

    fn put(key: &'static str) -> Command {
        let request = PutRequest { key: key.into(), ..PutRequest::default() };
        command::Command::Put(request).into()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn while_the_disk_hangs_writes_are_refused_and_afterwards_all_is_as_it_was() {
        let name = format!("vez-hangs-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let gate = Gate::default();
        let on = |engine| Gated(engine, gate.clone());
        let replica = Replica::open_on(Options::new(&directory), None, on).await.unwrap();
        replica.propose(put("before")).await.unwrap();
        assert_eq!(replica.health(), Health::Well);
        gate.set_shut(true);
        let waiting = tokio::spawn({
            let replica = replica.clone();
            async move { replica.propose(put("meanwhile")).await }
        });
        let hangs = async {
            while replica.health() == Health::Well {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), hangs).await.expect("it is noticed");
        let refused = replica.propose(put("refused")).await.unwrap_err();
        assert!(matches!(refused, ProposeError::Hangs(_)), "{refused}");
        assert!(replica.read(|state| state.get(b"before").is_some()), "reading goes on");
        replica.linearizable().await.unwrap();
        assert!(!waiting.is_finished());
        gate.set_shut(false);
        waiting.await.unwrap().unwrap();
        assert_eq!(replica.health(), Health::Well);
        replica.propose(put("after")).await.unwrap();
        let there = |key: &[u8]| replica.read(|state| state.get(key).is_some());
        assert!(there(b"meanwhile") && there(b"after") && !there(b"refused"));
        replica.shutdown().await;
        fs::remove_dir_all(directory).unwrap();
    }
}
