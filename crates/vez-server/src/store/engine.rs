//! The log on disk, in redb: what is written in one transaction is there whole or not at all, for
//! one `fdatasync`. Each record has a checksum of ours too.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use redb::{ReadableDatabase as _, ReadableTable as _, Table, TableDefinition};

use super::record::{self, Damage};
use super::{Entry, LogId, Vote};

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const MARKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("marks");
const VOTE: &str = "vote";
const PURGED: &str = "purged";

/// Whole logs are held in memory; the engine is read once, when it is opened.
const CACHE_BYTES: usize = 4 << 20;

/// At least so many entries are removed with each write while there are any to forget. A hundred
/// thousand at once would hold everybody up.
const FORGOTTEN_AT_ONCE: u64 = 256;

/// One step of a log. Steps of one `write` become durable together, in order.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Append(Vec<Entry>),
    Vote(Vote),
    /// Cuts off everything from this index on.
    Truncate(u64),
    /// Forgets everything up to here: at once as far as anybody can see, piece by piece on disk.
    Purge(LogId),
}

/// What a log held when it was opened.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) vote: Option<Vote>,
    pub(crate) purged: Option<LogId>,
    /// Without a gap, from the one after `purged` on.
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{} cannot be opened: {error}", path.display())]
    Open { path: PathBuf, error: redb::DatabaseError },
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: redb::Error },
    #[error("{} is damaged at {what}: {damage}; restore the directory from a backup", path.display())]
    Damaged { path: PathBuf, what: String, damage: Damage },
}

#[derive(Debug)]
pub(crate) struct Engine {
    database: redb::Database,
    /// Entries up to here are forgotten, but some may still be on the disk.
    forgetting: Option<u64>,
    forgotten_at_once: u64,
}

impl Engine {
    /// Opens the log, or makes an empty one, and reads all of it.
    pub(crate) fn open(path: &Path) -> Result<(Self, Stored), EngineError> {
        Self::read(path, |builder| builder.create(path))
    }

    fn read(
        path: &Path,
        open: impl FnOnce(&redb::Builder) -> Result<redb::Database, redb::DatabaseError>,
    ) -> Result<(Self, Stored), EngineError> {
        let failed = |error| EngineError::Open { path: path.to_path_buf(), error };
        // redb takes some of what a damaged file says at its word and then panics over it. Nothing
        // of ours was touched by then, and whoever starts the server wants the file's name.
        let read = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut database = open(&builder(path)).map_err(failed)?;
            // After a crash it has looked already; after an orderly end it takes the file on trust.
            if !database.check_integrity().map_err(failed)? {
                let path = path.to_path_buf();
                let (what, damage) = ("a page".to_owned(), Damage::Checksum);
                return Err(EngineError::Damaged { path, what, damage });
            }
            let forgotten_at_once = FORGOTTEN_AT_ONCE;
            let mut engine = Self { database, forgetting: None, forgotten_at_once };
            let stored = engine.load(path)?;
            Ok((engine, stored))
        }));
        read.unwrap_or_else(|_| {
            let damage = Damage::Content("redb cannot make sense of it".to_owned());
            let what = "a page".to_owned();
            Err(EngineError::Damaged { path: path.to_path_buf(), what, damage })
        })
    }

    fn load(&mut self, path: &Path) -> Result<Stored, EngineError> {
        let read = |error: redb::Error| EngineError::Read { path: path.to_path_buf(), error };
        let damaged = |what: String| {
            let path = path.to_path_buf();
            |damage| EngineError::Damaged { path, what, damage }
        };
        let Some((marks, log)) = self.raw().map_err(read)? else { return Ok(Stored::default()) };
        let mut stored = Stored::default();
        for (mark, bytes) in marks {
            match mark.as_str() {
                VOTE => {
                    let vote = record::decode_vote(&bytes).map_err(damaged(mark))?;
                    stored.vote = Some(vote);
                }
                _ => {
                    let purged = record::decode_log_id(&bytes).map_err(damaged(mark))?;
                    stored.purged = Some(purged);
                }
            }
        }
        let mut expected = stored.purged.map(|id| id.index + 1);
        for (index, bytes) in log {
            if expected.is_some_and(|next| index < next) && stored.entries.is_empty() {
                self.forgetting = stored.purged.map(|id| id.index);
                continue;
            }
            let what = || format!("entry {index}");
            let entry = record::decode_entry(&bytes).map_err(damaged(what()))?;
            let next = *expected.get_or_insert(index);
            if index != next || entry.log_id.index != index {
                let gap = format!("entry {next} was expected, {} found", entry.log_id);
                return Err(damaged(what())(Damage::Content(gap)));
            }
            expected = Some(index + 1);
            stored.entries.push(entry);
        }
        Ok(stored)
    }

    /// All records as they are; none if nothing was ever written.
    #[expect(clippy::type_complexity, reason = "two lists of pairs")]
    fn raw(&self) -> Result<Option<(Vec<(String, Vec<u8>)>, Vec<(u64, Vec<u8>)>)>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let (marks, log) = match (transaction.open_table(MARKS), transaction.open_table(LOG)) {
            (Err(redb::TableError::TableDoesNotExist(_)), _) => return Ok(None),
            (marks, log) => (marks?, log?),
        };
        let (mut all_marks, mut all_entries) = (Vec::new(), Vec::new());
        for mark in marks.iter()? {
            let (name, bytes) = mark?;
            all_marks.push((name.value().to_owned(), bytes.value().to_vec()));
        }
        for entry in log.iter()? {
            let (index, bytes) = entry?;
            all_entries.push((index.value(), bytes.value().to_vec()));
        }
        Ok(Some((all_marks, all_entries)))
    }

    /// Makes the changes durable, all of them, with one `fdatasync`.
    pub(crate) fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        self.try_write(changes).map_err(|error| match error {
            redb::Error::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    /// Whether entries are left to forget: each write takes some of them along, also one without
    /// changes.
    pub(crate) fn is_forgetting(&self) -> bool {
        self.forgetting.is_some()
    }

    fn try_write(&mut self, changes: &[Change]) -> Result<(), redb::Error> {
        let mut forgetting = self.forgetting;
        let transaction = self.database.begin_write()?;
        {
            let mut log = transaction.open_table(LOG)?;
            let mut marks = transaction.open_table(MARKS)?;
            // As many as come, at least: the log must not grow faster than it is forgotten.
            let mut at_most = self.forgotten_at_once;
            for change in changes {
                make(change, &mut log, &mut marks)?;
                match change {
                    Change::Append(entries) => at_most = at_most.max(entries.len() as u64),
                    Change::Purge(upto) => forgetting = forgetting.max(Some(upto.index)),
                    Change::Vote(_) | Change::Truncate(_) => {}
                }
            }
            if let Some(upto) = forgetting {
                forgetting = forget(&mut log, upto, at_most)?.then_some(upto);
            }
        }
        transaction.commit()?;
        self.forgetting = forgetting;
        Ok(())
    }
}

/// Removes the oldest entries, and says whether any are left to remove.
fn forget(
    log: &mut Table<'_, u64, &[u8]>,
    upto: u64,
    at_most: u64,
) -> Result<bool, redb::StorageError> {
    let Some(first) = log.first()?.map(|(index, _)| index.value()) else { return Ok(false) };
    let last = upto.min(first.saturating_add(at_most - 1));
    if first <= last {
        log.retain_in(first..=last, |_, _| false)?;
    }
    Ok(last < upto)
}

fn builder(path: &Path) -> redb::Builder {
    let mut builder = redb::Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let (torn, said) = (path.to_path_buf(), Once::new());
    builder.set_repair_callback(move |_| {
        said.call_once(|| {
            tracing::info!("{} was not closed: what was not finished is cut off", torn.display());
        });
    });
    builder
}

fn make(
    change: &Change,
    log: &mut Table<'_, u64, &[u8]>,
    marks: &mut Table<'_, &str, &[u8]>,
) -> Result<(), redb::StorageError> {
    match change {
        Change::Append(entries) => {
            for entry in entries {
                log.insert(entry.log_id.index, record::encode_entry(entry).as_slice())?;
            }
        }
        Change::Vote(vote) => {
            marks.insert(VOTE, record::encode_vote(vote).as_slice())?;
        }
        Change::Truncate(from) => log.retain_in(*from.., |_, _| false)?,
        Change::Purge(upto) => {
            marks.insert(PURGED, record::encode_log_id(*upto).as_slice())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::mem;
    use std::sync::{Arc, Mutex};

    use openraft::EntryPayload;
    use redb::StorageBackend;
    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::{Command, command};

    use super::super::Proposal;
    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Length(u64),
    }

    /// A disk that remembers what was written between one sync and the next.
    #[derive(Clone, Debug, Default)]
    struct Disk(Arc<Mutex<Content>>);

    #[derive(Debug, Default)]
    struct Content {
        now: Vec<u8>,
        /// As it was at the sync before the last.
        before: Vec<u8>,
        /// From there to the last sync, and since.
        steps: Vec<Step>,
        since: Vec<Step>,
        synced: Vec<u8>,
    }

    fn take(step: &Step, bytes: &mut Vec<u8>) {
        match step {
            Step::Length(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
            Step::Write(offset, data) => {
                let offset = usize::try_from(*offset).unwrap();
                bytes[offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }

    impl Disk {
        fn holding(now: Vec<u8>) -> Self {
            Self(Arc::new(Mutex::new(Content { now, ..Content::default() })))
        }

        fn open(&self) -> Result<(Engine, Stored), EngineError> {
            let path = Path::new("log");
            Engine::read(path, |builder| builder.create_with_backend(self.clone()))
        }

        fn step(&self, step: Step) {
            let mut content = self.0.lock().unwrap();
            take(&step, &mut content.now);
            content.since.push(step);
        }
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().now.len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let offset = usize::try_from(offset).unwrap();
            let content = self.0.lock().unwrap();
            let end = offset + out.len();
            let data = content.now.get(offset..end).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(data);
            Ok(())
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.step(Step::Length(length));
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            let mut content = self.0.lock().unwrap();
            content.steps = mem::take(&mut content.since);
            let now = content.now.clone();
            content.before = mem::replace(&mut content.synced, now);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.step(Step::Write(offset, data.to_vec()));
            Ok(())
        }
    }

    fn entry(index: u64) -> Entry {
        let (key, value) = (format!("key {index}").into(), vec![7; 30].into());
        let put = PutRequest { key, value, ..PutRequest::default() };
        let command = Command { command: Some(command::Command::Put(put)) };
        let payload = EntryPayload::Normal(Proposal(Arc::new(command)));
        Entry { log_id: LogId::new_term_index(1, index), payload }
    }

    fn entries(range: std::ops::Range<u64>) -> Change {
        Change::Append(range.map(entry).collect())
    }

    /// What the log says of itself: the vote's term, what was purged, which entries there are.
    fn said(stored: &Stored) -> (Option<u64>, Option<u64>, Vec<u64>) {
        for found in &stored.entries {
            assert_eq!(*found, entry(found.log_id.index), "entries come back as they were");
        }
        let indices = stored.entries.iter().map(|entry| entry.log_id.index).collect();
        let vote = stored.vote.map(|vote| vote.leader_id.term);
        (vote, stored.purged.map(|id| id.index), indices)
    }

    fn history() -> Vec<Change> {
        vec![
            Change::Vote(Vote::new(1, 1)),
            entries(0..2),
            entries(2..40),
            Change::Truncate(30),
            entries(30..31),
            Change::Purge(LogId::new_term_index(1, 9)),
            Change::Vote(Vote::new_committed(2, 1)),
            entries(31..32),
        ]
    }

    #[test]
    fn a_write_is_there_whole_or_not_at_all_wherever_the_power_fails() {
        let disk = Disk::default();
        let (mut engine, stored) = disk.open().unwrap();
        engine.forgotten_at_once = 3;
        let mut before = said(&stored);
        let mut torn = 0;
        for change in history() {
            engine.write(std::slice::from_ref(&change)).unwrap();
            let (base, steps, synced) = {
                let content = disk.0.lock().unwrap();
                (content.before.clone(), content.steps.clone(), content.synced.clone())
            };
            let after = said(&Disk::holding(synced).open().unwrap().1);
            assert_ne!(before, after, "the change can be seen");
            // The disk may write in any order, and stop in the middle of a page.
            for last in 0..steps.len() {
                for (cut, order) in [(1, false), (60, false), (2000, true), (4095, true)] {
                    let mut bytes = base.clone();
                    for step in steps.iter().filter(|step| matches!(step, Step::Length(_))) {
                        take(step, &mut bytes);
                    }
                    let done = if order { &steps[last + 1..] } else { &steps[..last] };
                    for step in done {
                        take(step, &mut bytes);
                    }
                    if let Step::Write(offset, data) = &steps[last] {
                        let part = data[..cut.min(data.len() - 1)].to_vec();
                        take(&Step::Write(*offset, part), &mut bytes);
                    }
                    let found = said(&Disk::holding(bytes).open().unwrap().1);
                    assert!(found == before || found == after, "{found:?} after {change:?}");
                    torn += u32::from(found == before);
                }
            }
            before = after;
        }
        assert!(100 < torn, "only {torn} writes were torn");
    }

    /// The disk after the last write of the history: as it was before, the steps, and as it is.
    fn last_write() -> (Disk, Vec<u8>, Vec<Step>, Vec<u8>) {
        let disk = Disk::default();
        let (mut engine, _) = disk.open().unwrap();
        for change in history() {
            engine.write(&[change]).unwrap();
        }
        let content = disk.0.lock().unwrap();
        let all = (content.before.clone(), content.steps.clone(), content.synced.clone());
        drop(content);
        // Not closed: this is how a crash leaves it.
        mem::forget(engine);
        (disk, all.0, all.1, all.2)
    }

    #[test]
    fn the_last_write_may_be_cut_at_every_byte() {
        let (_, base, steps, synced) = last_write();
        let before = said(&Disk::holding(base.clone()).open().unwrap().1);
        let after = said(&Disk::holding(synced).open().unwrap().1);
        let mut bytes = base;
        let (mut cuts, mut kept) = (0, 0);
        for step in &steps {
            let Step::Write(offset, data) = step else {
                take(step, &mut bytes);
                continue;
            };
            let offset = usize::try_from(*offset).unwrap();
            for (at, byte) in data.iter().enumerate() {
                // Elsewhere one byte more makes no difference.
                if mem::replace(&mut bytes[offset + at], *byte) == *byte {
                    continue;
                }
                let found = said(&Disk::holding(bytes.clone()).open().unwrap().1);
                assert!(found == before || found == after, "{found:?}, cut at {}", offset + at);
                cuts += 1;
                kept += u32::from(found == after);
            }
        }
        assert!(300 < cuts && 0 < kept && kept < cuts, "{kept} of {cuts} cuts kept the write");
    }

    /// Bits that the last write wrote, flipped one at a time: how the log is found then. All bits
    /// of the header and of the last record, and one of each seventh byte elsewhere.
    fn flipped(steps: &[Step], whole: &[u8], mut look: impl FnMut(usize, Option<Stored>)) {
        const HEADER: usize = 512;
        let mut places = std::collections::BTreeSet::new();
        for step in steps {
            if let Step::Write(offset, data) = step {
                let offset = usize::try_from(*offset).unwrap();
                let last = data.windows(6).position(|part| part == b"key 31").unwrap_or(0);
                for at in (0..data.len()).filter(|at| whole[offset + at] != 0) {
                    let is_record = last != 0 && (last.saturating_sub(20)..last + 45).contains(&at);
                    if is_record || offset + at < HEADER {
                        places.extend((0..8).map(|bit| (offset + at, bit)));
                    } else if at % 7 == 0 {
                        places.insert((offset + at, at % 8));
                    }
                }
            }
        }
        for (at, bit) in places {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            let found = Disk::holding(bytes).open().map_err(|error| error.to_string());
            if let Err(error) = &found {
                assert!(error.starts_with("log "), "{error}");
            }
            look(at, found.ok().map(|(_, stored)| stored));
        }
    }

    #[test]
    fn a_flipped_bit_of_what_was_written_last_is_noticed_or_does_not_matter() {
        let (disk, _, steps, _) = last_write();
        drop(disk.open().unwrap());
        let closed = disk.0.lock().unwrap().now.clone();
        let expected = said(&Disk::holding(closed.clone()).open().unwrap().1);
        let (mut flips, mut noticed) = (0, 0);
        flipped(&steps, &closed, |at, found| {
            flips += 1;
            noticed += u32::from(found.is_none());
            if let Some(stored) = found {
                assert_eq!(said(&stored), expected, "byte {at}");
            }
        });
        assert!(flips / 10 < noticed, "{noticed} of {flips} flips were noticed");
    }

    /// After a crash a damaged last write cannot be told from one that was never finished, which
    /// nobody was told of. It is then as if it had not been; nothing else is possible.
    #[test]
    fn a_bit_that_a_crash_flipped_in_the_last_write_undoes_that_write_at_most() {
        let (_, base, steps, synced) = last_write();
        let before = said(&Disk::holding(base).open().unwrap().1);
        let after = said(&Disk::holding(synced.clone()).open().unwrap().1);
        let mut undone = 0;
        flipped(&steps, &synced, |at, found| {
            if let Some(found) = found.as_ref().map(said) {
                assert!(found == before || found == after, "{found:?}, byte {at}");
                undone += u32::from(found == before);
            }
        });
        assert!(0 < undone);
    }

    #[test]
    fn a_flipped_bit_is_noticed_or_does_not_matter() {
        let disk = Disk::default();
        let (mut engine, _) = disk.open().unwrap();
        for change in history() {
            engine.write(&[change]).unwrap();
        }
        drop(engine);
        let whole = disk.0.lock().unwrap().now.clone();
        let (_, stored) = Disk::holding(whole.clone()).open().unwrap();
        let expected = said(&stored);
        let mut noticed = 0;
        for at in (0..whole.len()).filter(|at| whole[*at] != 0).step_by(61) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            match Disk::holding(bytes).open() {
                Ok((_, stored)) => assert_eq!(said(&stored), expected, "byte {at}"),
                Err(error) => {
                    noticed += 1;
                    assert!(error.to_string().starts_with("log "), "{error}");
                }
            }
        }
        assert!(10 < noticed, "only {noticed} flips were noticed");
    }
}
