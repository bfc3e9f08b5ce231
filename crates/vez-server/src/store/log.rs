//! The log as openraft sees it: in memory from the last snapshot on, and on its way to the disk.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend};
use prost::Message as _;

use super::engine::{Change, Stored};
use super::writer::{Done, Writer};
use super::{Entry, LogId, Types, Vote};

/// How much is sent to a follower at once.
const READ_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
struct Memory {
    vote: Option<Vote>,
    purged: Option<LogId>,
    /// Without a gap.
    entries: VecDeque<Entry>,
}

impl Memory {
    fn first(&self) -> u64 {
        self.entries.front().map_or(0, Entry::index)
    }

    /// Where in `entries` the one with this index is, or would be.
    fn position(&self, index: u64) -> usize {
        let position = index.saturating_sub(self.first());
        usize::try_from(position).map_or(self.entries.len(), |at| at.min(self.entries.len()))
    }

    fn between(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &Entry> {
        let start = match range.start_bound() {
            Bound::Included(index) => self.position(*index),
            Bound::Excluded(index) => self.position(index + 1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => self.position(index.saturating_add(1)),
            Bound::Excluded(index) => self.position(*index),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries.range(start..end.max(start))
    }
}

/// Reads what is in memory, durable or not yet.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    memory: Arc<RwLock<Memory>>,
}

impl Reader {
    // Nothing between taking and giving up the lock can panic half-way.
    fn memory(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_mut(&self) -> RwLockWriteGuard<'_, Memory> {
        self.memory.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaftLogReader<Types> for Reader {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> io::Result<Vec<Entry>> {
        Ok(self.memory().between(range).cloned().collect())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let mut left = READ_BYTES;
        let mut entries = Vec::new();
        for entry in self.memory().between(start..end) {
            let size = weight(entry);
            if left < size && !entries.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            entries.push(entry.clone());
        }
        Ok(entries)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.memory().vote)
    }
}

/// About how many bytes an entry takes on disk.
pub(crate) fn weight(entry: &Entry) -> usize {
    const FRAME: usize = 16;
    FRAME
        + if let EntryPayload::Normal(command) = &entry.payload {
            command.0.encoded_len()
        } else {
            0
        }
}

#[derive(Debug)]
pub(crate) struct LogStore {
    reader: Reader,
    writer: Writer,
}

impl LogStore {
    pub(crate) fn new(stored: Stored, writer: Writer) -> Self {
        let Stored { vote, purged, entries } = stored;
        let memory = Memory { vote, purged, entries: entries.into() };
        Self { reader: Reader { memory: Arc::new(RwLock::new(memory)) }, writer }
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let memory = self.reader.memory();
        let last = memory.entries.back().map(|entry| entry.log_id);
        Ok(LogState { last_purged_log_id: memory.purged, last_log_id: last.or(memory.purged) })
    }

    async fn get_log_reader(&mut self) -> Reader {
        self.reader.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.writer.write(Change::Vote(*vote)).await?;
        self.reader.memory_mut().vote = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        {
            let mut memory = self.reader.memory_mut();
            for entry in &entries {
                let last = memory.entries.back().map(Entry::index);
                if last.is_some_and(|last| last + 1 != entry.index()) {
                    let text = format!("entry {} cannot follow entry {last:?}", entry.index());
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                memory.entries.push_back(entry.clone());
            }
        }
        self.writer.send(Change::Append(entries), Done::Raft(flushed));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let from = last.map_or(0, |id| id.index + 1);
        {
            let mut memory = self.reader.memory_mut();
            let keep = memory.position(from);
            memory.entries.truncate(keep);
        }
        // What is appended next is written next: nobody needs to wait for this by itself.
        self.writer.send(Change::Truncate(from), Done::Nobody);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        {
            let mut memory = self.reader.memory_mut();
            let gone = memory.position(upto.index + 1);
            memory.entries.drain(..gone);
            memory.purged = memory.purged.max(Some(upto));
        }
        self.writer.send(Change::Purge(upto), Done::Nobody);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use openraft::StorageError;
    use openraft::testing::log::{StoreBuilder, Suite};

    use super::super::engine::Engine;
    use super::super::machine::{Machine, Policy, Shared};
    use super::super::snapshot::Snapshots;
    use super::super::writer::Thread;
    use super::*;

    struct Stores;

    /// Ends the thread, then removes the directory.
    struct Guard(PathBuf, Thread);

    impl Drop for Guard {
        fn drop(&mut self) {
            self.1.close();
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    impl StoreBuilder<Types, LogStore, Machine, Guard> for Stores {
        async fn build(&self) -> Result<(Guard, LogStore, Machine), StorageError<Types>> {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("vez-suite-{}-{number}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir_all(&directory).unwrap();
            let (engine, stored) = Engine::open(&directory.join("log")).unwrap();
            let (writer, thread) = Writer::start(engine, Arc::default()).unwrap();
            let policy = Policy { entries: u64::MAX, bytes: u64::MAX };
            let shared = Shared::new(Snapshots::new(&directory), policy, None);
            let log = LogStore::new(stored, writer);
            Ok((Guard(directory, thread), log, Machine(Arc::new(shared))))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn openraft_finds_nothing_wrong_with_it() {
        Suite::test_all(Stores).await.unwrap();
    }
}
