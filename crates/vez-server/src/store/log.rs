//! The log as openraft sees it: in memory from the last snapshot on, and on its way to the disk.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend};

use super::disk::Disk;
use super::engine::{Change, Stored};
use super::writer::{Done, Writer};
use super::{Entry, LogId, Types, Vote, record};
use crate::pieces::{Forgotten, Pieces};

/// How much is sent to a follower at once.
const READ_BYTES: usize = 1 << 20;

/// So many of the last entries are ready to be read: they are about to be applied and sent.
const FRESH: usize = 1_024;

/// An entry in memory. As a tree of requests it takes several times what it takes on disk, and
/// most entries are kept only for who lags far behind.
#[derive(Clone, Debug)]
enum Kept {
    Fresh(Entry),
    Packed(Bytes),
}

impl Kept {
    fn entry(&self) -> Entry {
        match self {
            Self::Fresh(entry) => entry.clone(),
            Self::Packed(bytes) => record::decode_entry(bytes).expect("packed here"),
        }
    }

    /// About how many bytes it takes on disk.
    fn weight(&self) -> usize {
        match self {
            Self::Fresh(entry) => weight(entry),
            Self::Packed(bytes) => bytes.len(),
        }
    }
}

#[derive(Debug, Default)]
struct Memory {
    vote: Option<Vote>,
    purged: Option<LogId>,
    /// The index of the first entry.
    first: u64,
    /// Without a gap.
    entries: Pieces<Kept>,
    /// How many of them are packed, from the first on.
    packed: usize,
}

impl Memory {
    fn new(Stored { vote, purged, entries }: Stored) -> Self {
        let mut memory = Self { vote, purged, ..Self::default() };
        for entry in entries {
            memory.push(entry);
        }
        memory
    }

    /// The index that the next entry has; any, if there is none yet.
    fn next(&self) -> Option<u64> {
        (!self.entries.is_empty()).then(|| self.first + self.entries.len() as u64)
    }

    fn last(&self) -> Option<LogId> {
        self.entries.last().map(|last| last.entry().log_id)
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.is_empty() {
            self.first = entry.index();
        }
        self.entries.push(Kept::Fresh(entry));
        if self.packed + FRESH < self.entries.len() {
            let old = self.entries.get_mut(self.packed);
            if let Kept::Fresh(entry) = old {
                *old = Kept::Packed(record::encode_entry(entry));
            }
            self.packed += 1;
        }
    }

    fn cut_off_from(&mut self, index: u64) {
        self.entries.truncate(self.position(index));
        self.packed = self.packed.min(self.entries.len());
    }

    fn forget(&mut self, upto: LogId) -> Forgotten<Kept> {
        let gone = self.position(upto.index + 1);
        self.first += gone as u64;
        self.packed = self.packed.saturating_sub(gone);
        self.purged = self.purged.max(Some(upto));
        self.entries.forget_first(gone)
    }

    /// Where in `entries` the one with this index is, or would be.
    fn position(&self, index: u64) -> usize {
        let position = index.saturating_sub(self.first);
        usize::try_from(position).map_or(self.entries.len(), |at| at.min(self.entries.len()))
    }

    fn between(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &Kept> {
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
        Ok(self.memory().between(range).map(Kept::entry).collect())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let mut left = READ_BYTES;
        let mut entries = Vec::new();
        for entry in self.memory().between(start..end) {
            let size = entry.weight();
            if left < size && !entries.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            entries.push(entry.entry());
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
        + if let EntryPayload::Normal(proposal) = &entry.payload {
            proposal.encoded().len()
        } else {
            0
        }
}

#[derive(Debug)]
pub(crate) struct LogStore {
    reader: Reader,
    writer: Writer,
    disk: Disk,
}

impl LogStore {
    pub(crate) fn new(stored: Stored, writer: Writer, disk: Disk) -> Self {
        let memory = Arc::new(RwLock::new(Memory::new(stored)));
        Self { reader: Reader { memory }, writer, disk }
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let memory = self.reader.memory();
        let last_log_id = memory.last().or(memory.purged);
        Ok(LogState { last_purged_log_id: memory.purged, last_log_id })
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
                if let Some(next) = memory.next().filter(|next| *next != entry.index()) {
                    let text = format!("entry {} where {next} was expected", entry.index());
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                memory.push(entry.clone());
            }
        }
        self.writer.send(Change::Append(entries), Done::Raft(flushed));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let from = last.map_or(0, |id| id.index + 1);
        self.reader.memory_mut().cut_off_from(from);
        // What is appended next is written next: nobody needs to wait for this by itself.
        self.writer.send(Change::Truncate(from), Done::Nobody);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        let forgotten = self.reader.memory_mut().forget(upto);
        // All before a snapshot, at once.
        if !forgotten.is_empty() {
            self.disk.leave(|| forgotten.free_at_leisure());
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
    use super::*;

    struct Stores;

    /// Ends the thread, then removes the directory.
    struct Guard(PathBuf);

    impl Drop for Guard {
        fn drop(&mut self) {
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
            let (writer, _) = Writer::start(engine, Arc::default(), &Disk::Real, true).unwrap();
            let policy = Policy { entries: u64::MAX, fold: 0, bytes: u64::MAX };
            let shared = Shared::new(Snapshots::new(&directory), policy, None, Disk::Real);
            let log = LogStore::new(stored, writer, Disk::Real);
            Ok((Guard(directory), log, Machine(Arc::new(shared))))
        }
    }

    fn entry(index: u64) -> Entry {
        Entry { log_id: LogId::new_term_index(1, index), payload: EntryPayload::Blank }
    }

    fn indices(memory: &Memory, range: impl RangeBounds<u64>) -> Vec<u64> {
        memory.between(range).map(|kept| kept.entry().index()).collect()
    }

    #[test]
    fn old_entries_are_packed_and_read_like_others() {
        let last = FRESH as u64 + 19;
        let stored = Stored { entries: (10..=last).map(entry).collect(), ..Stored::default() };
        let mut memory = Memory::new(stored);
        assert_eq!(memory.packed, 10);
        assert_eq!(indices(&memory, 18..22), [18, 19, 20, 21], "packed and not");
        assert_eq!(memory.last(), Some(entry(last).log_id));
        memory.forget(entry(12).log_id);
        assert_eq!((memory.packed, indices(&memory, ..15)), (7, vec![13, 14]));
        memory.cut_off_from(16);
        assert_eq!((memory.packed, memory.next()), (3, Some(16)));
        assert_eq!(memory.last(), Some(entry(15).log_id), "a packed one");
        for index in 16..16 + FRESH as u64 + 4 {
            memory.push(entry(index));
        }
        assert_eq!(memory.packed, 7);
        assert_eq!(indices(&memory, ..).len(), FRESH + 7);
        memory.forget(entry(9_999).log_id);
        assert_eq!((memory.packed, memory.next(), memory.last()), (0, None, None));
        memory.push(entry(10_000));
        assert_eq!(indices(&memory, ..), [10_000]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn openraft_finds_nothing_wrong_with_it() {
        Suite::test_all(Stores).await.unwrap();
    }
}
