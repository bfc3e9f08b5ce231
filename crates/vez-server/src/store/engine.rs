//! The log on disk: changes become records of a journal, and are read back as what they came to.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use vez_journal::{Found, Journal};

use super::record::{self, Damage};
use super::{Entry, LogId, Vote};

/// How much may be one write: whatever gathered in the meantime may be a lot.
const WRITE_BYTES: usize = 64 << 20;

/// What a record begins with.
const APPEND: u8 = 1;
const VOTE: u8 = 2;
const TRUNCATE: u8 = 3;
const PURGE: u8 = 4;

/// One step of a log. Steps of one `write` become durable in order.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Append(Vec<Entry>),
    Vote(Vote),
    /// Cuts off everything from this index on.
    Truncate(u64),
    /// Forgets everything up to here.
    Purge(LogId),
}

/// What a log held when it was opened.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) vote: Option<Vote>,
    pub(crate) purged: Option<LogId>,
    /// Without a gap, from the one after `purged` on.
    pub(crate) entries: VecDeque<Entry>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}; restore the directory from a backup")]
    Damaged(vez_journal::Error),
    #[error("{}: {what}: {damage}; restore the directory from a backup", path.display())]
    Nonsense { path: PathBuf, what: String, damage: Damage },
    #[error(transparent)]
    Unusable(vez_journal::Error),
}

impl From<vez_journal::Error> for EngineError {
    fn from(error: vez_journal::Error) -> Self {
        match error {
            vez_journal::Error::Io { .. } => Self::Unusable(error),
            _ => Self::Damaged(error),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Engine {
    /// None once it is closed, or could not be written.
    journal: Option<Journal>,
    /// What a segment needs to know of those before it.
    vote: Option<Vote>,
    purged: Option<LogId>,
    /// The last entry of each segment that has any.
    ends: BTreeMap<u64, u64>,
}

impl Engine {
    /// Opens the log, or makes an empty one, and reads all of it.
    pub(crate) fn open(path: &Path) -> Result<(Self, Stored), EngineError> {
        let (journal, opened) = Journal::open(path)?;
        if 0 < opened.cut {
            let torn = path.display();
            tracing::info!("{torn} was not closed: what was not finished is cut off");
        }
        let (mut stored, mut ends) = (Stored::default(), BTreeMap::new());
        for Found { segment, record } in opened.records {
            let read = replay(record, &mut stored).map_err(|(what, damage)| {
                EngineError::Nonsense { path: path.to_path_buf(), what, damage }
            })?;
            if let Some(index) = read {
                ends.insert(segment, index.max(ends.get(&segment).copied().unwrap_or(0)));
            }
        }
        let (vote, purged) = (stored.vote, stored.purged);
        if let (Some(purged), Some(first)) = (purged, stored.entries.front())
            && purged.index + 1 != first.log_id.index
        {
            let what = first.log_id.to_string();
            let damage = Damage::Content(format!("entry {} was expected", purged.index + 1));
            return Err(EngineError::Nonsense { path: path.to_path_buf(), what, damage });
        }
        Ok((Self { journal: Some(journal), vote, purged, ends }, stored))
    }

    /// Makes the changes durable, all of them, with one `fdatasync` unless they are many.
    pub(crate) fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut journal = self.journal.take().ok_or_else(|| io::Error::other("it is closed"))?;
        self.write_to(&mut journal, changes)?;
        self.journal = Some(journal);
        Ok(())
    }

    /// Ends in order; without it, a log ends as in a crash.
    pub(crate) fn close(&mut self) {
        if let Some(Err(error)) = self.journal.take().map(Journal::close) {
            tracing::warn!("the log was not closed in order, which loses nothing: {error}");
        }
    }

    fn write_to(&mut self, journal: &mut Journal, changes: &[Change]) -> io::Result<()> {
        let (mut records, mut size) = (Vec::new(), 0);
        for record in changes.iter().flat_map(encode) {
            size += record.len();
            records.push(record);
            if WRITE_BYTES < size {
                journal.append(&std::mem::take(&mut records))?;
                size = 0;
            }
        }
        if !records.is_empty() {
            journal.append(&records)?;
        }
        for change in changes {
            match change {
                Change::Append(entries) => {
                    let last = entries.iter().map(|entry| entry.log_id.index).max();
                    let end = self.ends.entry(journal.segment()).or_default();
                    *end = last.unwrap_or(0).max(*end);
                }
                Change::Vote(vote) => self.vote = Some(*vote),
                Change::Purge(upto) => self.purged = self.purged.max(Some(*upto)),
                Change::Truncate(_) => {}
            }
        }
        if journal.is_full() {
            let head = [self.vote.map(Change::Vote), self.purged.map(Change::Purge)];
            let head: Vec<_> = head.iter().flatten().flat_map(encode).collect();
            journal.begin_segment(&head).map_err(io::Error::other)?;
        }
        if let Some(purged) = self.purged {
            self.ends.retain(|_, end| purged.index < *end);
            let oldest = self.ends.first_key_value().map_or(journal.segment(), |(first, _)| *first);
            // The others follow with the next writes.
            journal.forget_one_before(oldest)?;
        }
        Ok(())
    }
}

fn encode(change: &Change) -> Vec<Vec<u8>> {
    let record = |kind: u8, content: &[u8]| [&[kind], content].concat();
    match change {
        Change::Append(entries) => {
            entries.iter().map(|entry| record(APPEND, &record::encode_entry(entry))).collect()
        }
        Change::Vote(vote) => vec![record(VOTE, &record::encode_vote(vote))],
        Change::Truncate(from) => vec![record(TRUNCATE, &from.to_be_bytes())],
        Change::Purge(upto) => vec![record(PURGE, &record::encode_log_id(*upto))],
    }
}

/// Does again what was done. Says the index of what was appended; or where it makes no sense.
fn replay(record: Vec<u8>, stored: &mut Stored) -> Result<Option<u64>, (String, Damage)> {
    let content = Bytes::from(record);
    let wrong = |what: &str| {
        let what = what.to_owned();
        move |damage| (what, damage)
    };
    let Some((kind, content)) = content.first().map(|kind| (*kind, content.slice(1..))) else {
        return Err(wrong("a record")(Damage::Content("it is empty".to_owned())));
    };
    match kind {
        APPEND => {
            let entry = record::decode_entry(&content).map_err(wrong("an entry"))?;
            let index = entry.log_id.index;
            let last = stored.entries.back().map(|last| last.log_id.index);
            if last.is_some_and(|last| last + 1 != index) {
                let gap = format!("it cannot follow entry {}", last.unwrap_or(0));
                return Err(wrong(&format!("entry {index}"))(Damage::Content(gap)));
            }
            // Forgotten with the segments before: some of this one may be left.
            if stored.purged.is_none_or(|purged| purged.index < index) {
                stored.entries.push_back(entry);
            }
            return Ok(Some(index));
        }
        VOTE => stored.vote = Some(record::decode_vote(content).map_err(wrong("a vote"))?),
        TRUNCATE => {
            let from = content[..].try_into().map(u64::from_be_bytes);
            let from = from.map_err(|_| Damage::Content("it is no index".to_owned()));
            let from = from.map_err(wrong("a cut"))?;
            let keep = stored.entries.partition_point(|entry| entry.log_id.index < from);
            stored.entries.truncate(keep);
        }
        PURGE => {
            let upto = record::decode_log_id(content).map_err(wrong("a mark"))?;
            let gone = stored.entries.partition_point(|entry| entry.log_id.index <= upto.index);
            stored.entries.drain(..gone);
            stored.purged = stored.purged.max(Some(upto));
        }
        other => {
            let unknown = format!("kind {other} is not known here");
            return Err(wrong("a record")(Damage::Content(unknown)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};

    use openraft::EntryPayload;
    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::{Command, command};

    use super::super::Proposal;
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("vez-engine-{}-{number}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn open(&self) -> (Engine, Stored) {
            Engine::open(&self.0).unwrap()
        }

        fn segments(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn entry(index: u64) -> Entry {
        let (key, value) = (format!("key {index}").into(), vec![7; 30].into());
        let put = PutRequest { key, value, ..PutRequest::default() };
        let command = Command::from(command::Command::Put(put));
        let payload = EntryPayload::Normal(Proposal::new(command));
        Entry { log_id: LogId::new_term_index(1, index), payload }
    }

    fn entries(range: std::ops::Range<u64>) -> Change {
        Change::Append(range.map(entry).collect())
    }

    fn purge(upto: u64) -> Change {
        Change::Purge(LogId::new_term_index(1, upto))
    }

    type Said = (Option<u64>, Option<u64>, Vec<u64>);

    /// What the log says of itself: the vote's term, what was purged, which entries there are.
    fn said(stored: &Stored) -> Said {
        for found in &stored.entries {
            assert_eq!(*found, entry(found.log_id.index), "entries come back as they were");
        }
        let indices = stored.entries.iter().map(|entry| entry.log_id.index).collect();
        let vote = stored.vote.map(|vote| vote.leader_id.term);
        (vote, stored.purged.map(|id| id.index), indices)
    }

    /// Changes, and what there is after each.
    fn history() -> Vec<(Change, Said)> {
        let indices = |range: std::ops::Range<u64>| range.collect::<Vec<_>>();
        let vote = |vote| Change::Vote(vote);
        vec![
            (vote(Vote::new(1, 1)), (Some(1), None, vec![])),
            (entries(0..2), (Some(1), None, vec![0, 1])),
            (entries(2..40), (Some(1), None, indices(0..40))),
            (Change::Truncate(30), (Some(1), None, indices(0..30))),
            (entries(30..31), (Some(1), None, indices(0..31))),
            (purge(9), (Some(1), Some(9), indices(10..31))),
            (vote(Vote::new_committed(2, 1)), (Some(2), Some(9), indices(10..31))),
            (entries(31..32), (Some(2), Some(9), indices(10..32))),
            (purge(70), (Some(2), Some(70), vec![])),
            (entries(71..73), (Some(2), Some(70), vec![71, 72])),
        ]
    }

    #[test]
    fn a_log_comes_back_as_it_was_after_every_change_in_segments_of_every_size() {
        for size in [1, 100, 1_000, 100_000] {
            let scratch = Scratch::new();
            for (change, expected) in history() {
                let (mut engine, _) = scratch.open();
                engine.journal.as_mut().unwrap().set_segment_bytes(size);
                engine.write(std::slice::from_ref(&change)).unwrap();
                // Not closed, as a crash leaves it.
                drop(engine.journal.take());
                assert_eq!(said(&scratch.open().1), expected, "{change:?}, segments of {size}");
            }
            if size == 1 {
                leaves_the_disk(&scratch);
            }
        }
    }

    /// What is forgotten, with the next writes.
    fn leaves_the_disk(scratch: &Scratch) {
        let (mut engine, _) = scratch.open();
        let mut segments = scratch.segments();
        while 2 < segments {
            engine.write(&[Change::Vote(Vote::new(1, 1))]).unwrap();
            assert_eq!(scratch.segments(), segments - 1);
            segments -= 1;
        }
    }

    #[test]
    fn changes_that_come_together_come_back_in_order() {
        let scratch = Scratch::new();
        let (mut engine, _) = scratch.open();
        let (changes, said_last): (Vec<_>, Vec<_>) = history().into_iter().unzip();
        engine.write(&changes).unwrap();
        drop(engine);
        assert_eq!(Some(said(&scratch.open().1)), said_last.last().cloned());
    }

    #[test]
    fn the_disk_holds_little_more_than_what_is_not_forgotten() {
        let scratch = Scratch::new();
        let (mut engine, _) = scratch.open();
        engine.journal.as_mut().unwrap().set_segment_bytes(2_000);
        for first in (0..1_000).step_by(10) {
            engine.write(&[entries(first..first + 10)]).unwrap();
            if let Some(upto) = first.checked_sub(20) {
                engine.write(&[purge(upto)]).unwrap();
            }
            assert!(scratch.segments() <= 4, "{} after {first}", scratch.segments());
        }
        drop(engine);
        let (vote, purged, left) = said(&scratch.open().1);
        assert_eq!((vote, purged, left), (None, Some(970), (971..1_000).collect()));
    }

    #[test]
    fn a_log_that_makes_no_sense_is_refused() {
        let gap = [entries(0..2), entries(3..4)];
        let lost = [purge(5), entries(7..8)];
        for changes in [gap, lost] {
            let scratch = Scratch::new();
            let (mut engine, _) = scratch.open();
            engine.write(&changes).unwrap();
            drop(engine);
            let error = Engine::open(&scratch.0).unwrap_err().to_string();
            assert!(error.contains("restore the directory from a backup"), "{error}");
        }
        for record in [&b""[..], b"\x09", b"\x01nonsense", b"\x03short"] {
            let scratch = Scratch::new();
            let (mut journal, _) = Journal::open(&scratch.0).unwrap();
            journal.append(&[record]).unwrap();
            assert!(matches!(Engine::open(&scratch.0), Err(EngineError::Nonsense { .. })));
        }
    }

    #[test]
    fn after_an_error_nothing_more_is_written() {
        let scratch = Scratch::new();
        let (mut engine, _) = scratch.open();
        engine.journal.as_mut().unwrap().set_segment_bytes(1);
        fs::remove_dir_all(&scratch.0).unwrap();
        assert!(engine.write(&[entries(0..1)]).is_err(), "there is no room for a segment");
        assert!(engine.write(&[entries(1..2)]).is_err());
    }
}
