//! The contestants. Entries are numbered from 1 and follow each other without a gap.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::Context as _;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, Engine, LogBatch, MessageExt};
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};
use vez_journal::{Found, Journal};

/// What a replicated log asks of a disk. All but `open` and `entries` are durable when they return.
pub(crate) trait Log {
    fn open(directory: &Path) -> anyhow::Result<Self>
    where
        Self: Sized;
    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()>;
    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()>;
    fn truncate(&mut self, after: u64, last: u64) -> anyhow::Result<()>;
    fn purge(&mut self, upto: u64) -> anyhow::Result<()>;
    /// Reads all there is; the last index.
    fn entries(&mut self) -> anyhow::Result<u64>;
}

/// One file to which records are written, and no more: no checksums, nothing ever removed.
pub(crate) struct Bare(File);

impl Bare {
    fn put(&mut self, records: &[&[u8]]) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend((record.len() as u64).to_be_bytes());
            bytes.extend(*record);
        }
        self.0.write_all(&bytes)?;
        Ok(self.0.sync_data()?)
    }
}

impl Log for Bare {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).read(true);
        let mut file = options.open(directory.join("log"))?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()> {
        let indices: Vec<_> = (first..).take(batch.len()).map(u64::to_be_bytes).collect();
        let records = indices.iter().zip(batch).flat_map(|(at, entry)| [&at[..], entry]);
        self.put(&records.collect::<Vec<_>>())
    }

    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()> {
        self.put(&[vote])
    }

    fn truncate(&mut self, after: u64, _last: u64) -> anyhow::Result<()> {
        self.put(&[&after.to_be_bytes()])
    }

    fn purge(&mut self, upto: u64) -> anyhow::Result<()> {
        self.put(&[&upto.to_be_bytes()])
    }

    fn entries(&mut self) -> anyhow::Result<u64> {
        let mut bytes = Vec::new();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_to_end(&mut bytes)?;
        let (mut rest, mut index, mut last) = (&bytes[..], 0, 0);
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = usize::try_from(u64::from_be_bytes(*length))?;
            let record = &after[..length];
            match record.try_into() {
                // An index, or where a tail was cut: the entry that follows tells them apart.
                Ok(number) => index = u64::from_be_bytes(number),
                Err(_) if length > 8 => last = index,
                Err(_) => {}
            }
            rest = &after[length..];
        }
        Ok(last)
    }
}

/// The journal of the service, used as the service uses it.
pub(crate) struct Ours {
    journal: Journal,
    /// The last entry of each segment.
    ends: BTreeMap<u64, u64>,
    last: u64,
}

const ENTRY: u8 = 1;
const MARK: u8 = 2;

impl Ours {
    fn put(&mut self, mark: &[u8]) -> anyhow::Result<()> {
        Ok(self.journal.append(&[[&[MARK], mark].concat()])?)
    }
}

impl Log for Ours {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let (journal, opened) = Journal::open(directory)?;
        let (mut ends, mut last) = (BTreeMap::new(), 0);
        for Found { segment, record } in opened.records {
            if let [ENTRY, entry @ ..] = &record[..] {
                last = u64::from_be_bytes(*entry.first_chunk().context("an index")?);
                ends.insert(segment, last);
            }
        }
        Ok(Self { journal, ends, last })
    }

    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()> {
        let numbered = (first..).zip(batch);
        let record =
            |(index, entry): (u64, &Vec<u8>)| [&[ENTRY], &index.to_be_bytes()[..], entry].concat();
        self.journal.append(&numbered.map(record).collect::<Vec<_>>())?;
        self.last = first + batch.len() as u64 - 1;
        self.ends.insert(self.journal.segment(), self.last);
        if self.journal.is_full() {
            self.journal.begin_segment::<&[u8]>(&[])?;
        }
        Ok(())
    }

    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()> {
        self.put(vote)
    }

    fn truncate(&mut self, after: u64, _last: u64) -> anyhow::Result<()> {
        self.put(&after.to_be_bytes())
    }

    fn purge(&mut self, upto: u64) -> anyhow::Result<()> {
        self.put(&upto.to_be_bytes())?;
        self.ends.retain(|_, end| upto < *end);
        let oldest = self.ends.first_key_value().map_or(self.journal.segment(), |(at, _)| *at);
        while self.journal.forget_one_before(oldest)? {}
        Ok(())
    }

    fn entries(&mut self) -> anyhow::Result<u64> {
        Ok(self.last)
    }
}

pub(crate) struct RaftEngine(Engine);

/// The index is in front of the bytes.
struct Numbered;

impl MessageExt for Numbered {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        let head = entry.value.first_chunk().expect("put there by us");
        u64::from_be_bytes(*head)
    }
}

const GROUP: u64 = 1;

impl Log for RaftEngine {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let dir = directory.to_str().context("a path in UTF-8")?.to_owned();
        Ok(Self(Engine::open(Config { dir, ..Config::default() })?))
    }

    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()> {
        let numbered = (first..).zip(batch).map(|(index, entry)| {
            let value = [&index.to_be_bytes()[..], entry].concat();
            BytesValue { value, ..BytesValue::default() }
        });
        let mut changes = LogBatch::default();
        changes.add_entries::<Numbered>(GROUP, &numbered.collect::<Vec<_>>())?;
        self.0.write(&mut changes, true)?;
        Ok(())
    }

    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()> {
        let mut changes = LogBatch::default();
        changes.put(GROUP, b"vote".to_vec(), vote.to_vec())?;
        self.0.write(&mut changes, true)?;
        Ok(())
    }

    /// It cuts by writing over: what was at the end is written again.
    fn truncate(&mut self, after: u64, _last: u64) -> anyhow::Result<()> {
        let last = self.0.get_entry::<Numbered>(GROUP, after)?.context("the last that stays")?;
        let mut changes = LogBatch::default();
        changes.add_entries::<Numbered>(GROUP, &[last])?;
        self.0.write(&mut changes, true)?;
        Ok(())
    }

    fn purge(&mut self, upto: u64) -> anyhow::Result<()> {
        self.0.compact_to(GROUP, upto + 1);
        self.0.purge_expired_files()?;
        Ok(self.0.sync()?)
    }

    fn entries(&mut self) -> anyhow::Result<u64> {
        let first = self.0.first_index(GROUP).unwrap_or(1);
        let end = self.0.last_index(GROUP).unwrap_or(0) + 1;
        let mut all = Vec::new();
        self.0.fetch_entries_to::<Numbered>(GROUP, first, end, None, &mut all)?;
        Ok(all.last().map_or(0, Numbered::index))
    }
}

pub(crate) struct Fjall {
    database: Database,
    log: Keyspace,
}

impl Fjall {
    fn write(&self, fill: impl FnOnce(&mut fjall::OwnedWriteBatch)) -> anyhow::Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        fill(&mut batch);
        Ok(batch.commit()?)
    }
}

impl Log for Fjall {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let database = Database::builder(directory).open()?;
        let log = database.keyspace("log", KeyspaceCreateOptions::default)?;
        Ok(Self { database, log })
    }

    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()> {
        self.write(|changes| {
            for (index, entry) in (first..).zip(batch) {
                changes.insert(&self.log, index.to_be_bytes(), entry.as_slice());
            }
        })
    }

    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()> {
        self.write(|changes| changes.insert(&self.log, *b"vote", vote))
    }

    fn truncate(&mut self, after: u64, last: u64) -> anyhow::Result<()> {
        self.write(|changes| {
            for index in after + 1..=last {
                changes.remove(&self.log, index.to_be_bytes());
            }
        })
    }

    fn purge(&mut self, upto: u64) -> anyhow::Result<()> {
        self.write(|changes| {
            for index in 1..=upto {
                changes.remove(&self.log, index.to_be_bytes());
            }
        })
    }

    fn entries(&mut self) -> anyhow::Result<u64> {
        let mut last = 0;
        for entry in self.log.range(0_u64.to_be_bytes()..=(1_u64 << 40).to_be_bytes()) {
            let (key, _) = entry.into_inner()?;
            last = u64::from_be_bytes(key.as_ref().try_into()?);
        }
        Ok(last)
    }
}

pub(crate) struct Redb(redb::Database);

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

impl Redb {
    fn write(
        &self,
        fill: impl FnOnce(&mut redb::Table<'_, u64, &[u8]>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let changes = self.0.begin_write()?;
        fill(&mut changes.open_table(LOG)?)?;
        Ok(changes.commit()?)
    }
}

impl Log for Redb {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let mut builder = redb::Database::builder();
        Ok(Self(builder.set_cache_size(16 << 20).create(directory.join("log.redb"))?))
    }

    fn append(&mut self, first: u64, batch: &[Vec<u8>]) -> anyhow::Result<()> {
        self.write(|log| {
            for (index, entry) in (first..).zip(batch) {
                log.insert(index, entry.as_slice())?;
            }
            Ok(())
        })
    }

    fn vote(&mut self, vote: &[u8]) -> anyhow::Result<()> {
        let changes = self.0.begin_write()?;
        changes.open_table(META)?.insert("vote", vote)?;
        Ok(changes.commit()?)
    }

    fn truncate(&mut self, after: u64, _last: u64) -> anyhow::Result<()> {
        self.write(|log| Ok(log.retain_in::<u64, _>(after + 1.., |_, _| false)?))
    }

    fn purge(&mut self, upto: u64) -> anyhow::Result<()> {
        self.write(|log| Ok(log.retain_in::<u64, _>(..=upto, |_, _| false)?))
    }

    fn entries(&mut self) -> anyhow::Result<u64> {
        let mut last = 0;
        for entry in self.0.begin_read()?.open_table(LOG)?.iter()? {
            last = entry?.0.value();
        }
        Ok(last)
    }
}
