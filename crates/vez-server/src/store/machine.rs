//! The state as openraft sees it: entries go in, answers come out, now and then it is written down.

use std::io::{self, Write as _};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::Notify;
use vez_api::log::Command;
use vez_api::mvccpb::Event;

use super::disk::Disk;
use super::log::weight;
use super::snapshot::{Draft, Kept, Snapshots};
use super::{Answer, Entry, LogId, SnapshotMeta, StoredMembers, Types};
use crate::cluster::link::Links;
use crate::cluster::progress::Progress;
use crate::raft::Keeping;
use crate::state::{Frozen, State};

/// Told of every command that was applied, in order, while the state is held: the state after it,
/// the command, and what it changed. After a snapshot from the leader there is no command, and the
/// revision may have jumped.
pub(crate) type Listener = Box<dyn Fn(&State, Option<&Command>, &[Event]) + Send + Sync>;

/// Told when all that was agreed upon so far is applied, after the listeners of each command.
pub(crate) type Pause = Box<dyn Fn() + Send + Sync>;

/// So many turns of other tasks it takes until the others have been sent what was agreed upon.
const STEPS: u32 = 4;

/// When a snapshot is due, as [`Keeping`] says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) entries: u64,
    pub(crate) fold: u64,
    pub(crate) bytes: u64,
}

impl Policy {
    /// Writing a snapshot costs what the state holds, and the log has to have grown by that.
    fn is_due(self, held: &Held) -> bool {
        let things = (held.state.len() + held.state.history_len()) as u64;
        self.entries.max(things.saturating_mul(self.fold)) <= held.entries
            || self.bytes <= held.bytes
    }
}

impl From<Keeping> for Policy {
    fn from(keeping: Keeping) -> Self {
        let Keeping { snapshot_entries, snapshot_fold, snapshot_bytes, .. } = keeping;
        Self { entries: snapshot_entries, fold: snapshot_fold, bytes: snapshot_bytes }
    }
}

struct Held {
    state: State,
    applied: Option<LogId>,
    members: StoredMembers,
    listeners: Vec<Listener>,
    pauses: Vec<Pause>,
    /// Applied since the last snapshot was begun.
    entries: u64,
    bytes: u64,
}

impl Held {
    fn apply(&mut self, entry: &Entry) -> Answer {
        self.applied = Some(entry.log_id);
        self.entries += 1;
        self.bytes += weight(entry) as u64;
        match &entry.payload {
            EntryPayload::Blank => None,
            EntryPayload::Membership(members) => {
                self.members = StoredMembers::new(Some(entry.log_id), members.clone());
                None
            }
            EntryPayload::Normal(proposal) => {
                let applied = self.state.apply(proposal.command());
                self.tell(Some(proposal.command()), &applied.events);
                Some(applied.response)
            }
        }
    }

    fn tell(&self, command: Option<&Command>, events: &[Event]) {
        self.listeners.iter().for_each(|listener| listener(&self.state, command, events));
    }

    fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.applied, last_membership: self.members.clone() }
    }
}

/// The state, for those who apply, read, listen and write it down.
pub(crate) struct Shared {
    held: RwLock<Held>,
    snapshots: Snapshots,
    disk: Disk,
    policy: Policy,
    /// The ways to others, who apply the same; there are none for who is alone.
    others: Option<Links>,
    /// Rung once when a snapshot is due.
    pub(crate) due: Notify,
    rung: AtomicBool,
    /// How far it has come.
    pub(crate) progress: Progress,
}

impl Shared {
    /// Begins where the snapshot ends.
    pub(crate) fn new(
        snapshots: Snapshots,
        policy: Policy,
        kept: Option<(SnapshotMeta, State)>,
        disk: Disk,
    ) -> Self {
        let (meta, state) = kept.unwrap_or_else(|| (empty(), State::default()));
        let held = Held {
            state,
            applied: meta.last_log_id,
            members: meta.last_membership,
            listeners: Vec::new(),
            pauses: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        let progress = Progress::default();
        if let Some(applied) = held.applied {
            progress.reached(applied.index);
        }
        let (held, due, rung) = (RwLock::new(held), Notify::new(), AtomicBool::new(false));
        Self { held, snapshots, disk, policy, others: None, due, rung, progress }
    }

    pub(crate) fn among(self, others: Option<Links>) -> Self {
        Self { others, ..self }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.held().state)
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.held_mut().listeners.push(listener);
    }

    pub(crate) fn listen_for_pauses(&self, pause: Pause) {
        self.held_mut().pauses.push(pause);
    }

    /// A snapshot from elsewhere begins, of a length that was announced.
    pub(crate) async fn receive(&self, meta: SnapshotMeta, length: u64) -> io::Result<Draft> {
        let snapshots = self.snapshots.clone();
        self.disk.work(move || snapshots.begin(&meta, length)).await
    }

    /// The next part of it.
    pub(crate) async fn go_on(&self, mut draft: Draft, part: &Bytes) -> io::Result<Draft> {
        let part = part.clone();
        self.disk.work(move || draft.write_all(&part).map(|()| draft)).await
    }

    /// That was all of it.
    pub(crate) async fn finish(&self, draft: Draft) -> io::Result<Kept> {
        self.disk.work(move || draft.finish()).await
    }

    /// A listener that panics leaves the state whole, but itself perhaps not: nobody goes on.
    fn held(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().expect("nothing panicked while it changed the state")
    }

    fn held_mut(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().expect("nothing panicked while it changed the state")
    }

    fn ring_if_due(&self, held: &Held) {
        if self.policy.is_due(held) && !self.rung.swap(true, Ordering::Relaxed) {
            self.due.notify_one();
        }
    }
}

fn empty() -> SnapshotMeta {
    SnapshotMeta { last_log_id: None, last_membership: StoredMembers::default() }
}

#[derive(Clone)]
pub(crate) struct Machine(pub(crate) Arc<Shared>);

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = Kept;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembers)> {
        let held = self.0.held();
        Ok((held.applied, held.members.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        // Let the others hear of it first: they apply it at the same time then, not afterwards.
        for _ in 0..if self.0.others.is_some() { STEPS } else { 0 } {
            tokio::task::yield_now().await;
        }
        let mut marked = Vec::new();
        while let Some((entry, responder)) = entries.try_next().await? {
            // For each entry anew, so that readers get their turn.
            let answer = self.0.held_mut().apply(&entry);
            if let Some(responder) = responder {
                responder.send(answer);
            } else if let EntryPayload::Normal(proposal) = &entry.payload
                && let (Some(mark), Some(answer)) = (proposal.mark(), answer)
            {
                marked.push((mark, answer, entry.log_id.index));
            }
        }
        {
            let held = self.0.held();
            held.pauses.iter().for_each(|pause| pause());
            self.0.ring_if_due(&held);
            if let Some(applied) = held.applied {
                self.0.progress.reached(applied.index);
            }
        }
        if let Some(others) = &self.0.others {
            others.answer(marked);
        }
        Ok(())
    }

    /// Everything the snapshot needs is taken here; applying goes on while it is written.
    async fn get_snapshot_builder(&mut self) -> Builder {
        let mut held = self.0.held_mut();
        (held.entries, held.bytes) = (0, 0);
        self.0.rung.store(false, Ordering::Relaxed);
        let (meta, state) = (held.meta(), held.state.freeze());
        let (snapshots, disk) = (self.0.snapshots.clone(), self.0.disk.clone());
        Builder { snapshots, disk, meta, state: Some(state) }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, kept: Kept) -> io::Result<()> {
        let (shared, meta) = (Arc::clone(&self.0), meta.clone());
        let work = move || {
            let state = kept.state()?;
            shared.snapshots.publish(&kept)?;
            let mut held = shared.held_mut();
            let before = mem::replace(&mut held.state, state);
            (held.applied, held.members) = (meta.last_log_id, meta.last_membership);
            held.tell(None, &[]);
            let applied = held.applied;
            drop(held);
            if let Some(applied) = applied {
                shared.progress.reached(applied.index);
            }
            if let Some(others) = &shared.others {
                others.lose_sight();
            }
            // Large, perhaps: nobody should wait for it under the lock.
            drop(before);
            Ok(())
        };
        self.0.disk.work(work).await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Written>> {
        let snapshots = self.0.snapshots.clone();
        let newest = move || snapshots.newest().map_err(io::Error::other);
        let kept = self.0.disk.work(newest).await?;
        Ok(kept.map(whole))
    }
}

type Written = openraft::type_config::alias::SnapshotOf<Types, Kept>;

fn whole(kept: Kept) -> Written {
    Snapshot { meta: kept.meta().clone(), snapshot: kept }
}

/// A snapshot about to be written.
pub(crate) struct Builder {
    snapshots: Snapshots,
    disk: Disk,
    meta: SnapshotMeta,
    state: Option<Frozen>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Kept;

    async fn build_snapshot(&mut self) -> io::Result<Written> {
        let (snapshots, meta) = (self.snapshots.clone(), self.meta.clone());
        let state = self.state.take().ok_or_else(|| io::Error::other("it is built once"))?;
        self.disk.work(move || snapshots.write(&meta, &state).map(whole)).await
    }
}

#[cfg(test)]
mod tests {
    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::command;

    use super::*;
    use crate::store::Proposal;

    #[test]
    fn a_snapshot_is_due_when_the_log_has_outgrown_what_it_would_hold() {
        let policy = Policy { entries: 10, fold: 2, bytes: u64::MAX };
        let mut held = Held {
            state: State::default(),
            applied: None,
            members: StoredMembers::default(),
            listeners: Vec::new(),
            pauses: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        let put = |held: &mut Held, key: u64| {
            let request = PutRequest { key: format!("{key}").into(), ..PutRequest::default() };
            let command = Command::from(command::Command::Put(request));
            let payload = EntryPayload::Normal(Proposal::new(command));
            held.apply(&Entry { log_id: LogId::new_term_index(1, key), payload });
        };
        (1..=20).for_each(|key| put(&mut held, key));
        assert!(!policy.is_due(&held), "20 entries, and 20 keys with 20 changes");
        assert!(Policy { fold: 0, ..policy }.is_due(&held));
        assert!(Policy { bytes: held.bytes, ..policy }.is_due(&held));
        held.entries = 79;
        assert!(!policy.is_due(&held));
        held.entries = 80;
        assert!(policy.is_due(&held));
    }
}
