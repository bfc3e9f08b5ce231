//! The state as bytes, and back.
//!
//! `vezs`, a version byte, revision, compacted revision, the number of leases and each one's id and
//! time to live, the number of versions and each as a length and an encoded `KeyValue`: first what
//! compaction left of earlier revisions, by key; then the history. Numbers are big-endian, lengths
//! are varints. The same state always makes the same bytes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::BufMut;
use prost::Message;
use vez_api::mvccpb::KeyValue;

use super::State;
use super::chain::is_tombstone;
use super::error::Error;
use super::keyspace::Keyspace;
use super::lease::{Leases, TTL_SECONDS_MAX, TTL_SECONDS_MIN};
use crate::pieces::Pieces;

const MAGIC: [u8; 4] = *b"vezs";
const VERSION: u8 = 1;

/// Far beyond what any store reaches, far below where counting on would overflow.
const REVISION_MAX: i64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("not a snapshot of the store")]
    NotASnapshot,
    #[error("a snapshot of version {0}, which this version does not know")]
    UnknownVersion(u8),
    #[error("the snapshot ends too early")]
    Truncated,
    #[error("the snapshot goes on after its end")]
    TrailingBytes,
    #[error("the snapshot contradicts itself: {0}")]
    Inconsistent(&'static str),
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Content(#[from] DecodeError),
    #[error(transparent)]
    Source(#[from] io::Error),
}

/// So many versions are counted in one breath.
const BREATH: usize = 1_024;

/// What a snapshot says, taken in a moment and written down at leisure: the versions are shared
/// with the state, which goes on meanwhile.
#[derive(Clone, Debug)]
pub struct Frozen {
    revision: i64,
    compacted: i64,
    /// Ids and times to live.
    leases: Vec<(i64, i64)>,
    /// What compaction left of earlier revisions, by key; then the history.
    survivors: Vec<Arc<KeyValue>>,
    history: Pieces<Arc<KeyValue>>,
}

impl Frozen {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("a vector grows");
        bytes
    }

    /// How many bytes it makes. Whoever else has something to do on this processor goes first.
    pub fn length(&self) -> u64 {
        let of = |(before, version): (usize, &Arc<KeyValue>)| {
            if before % BREATH == 0 {
                std::thread::yield_now();
            }
            let length = version.encoded_len();
            (prost::length_delimiter_len(length) + length) as u64
        };
        self.head().len() as u64 + self.versions().enumerate().map(of).sum::<u64>()
    }

    fn versions(&self) -> impl Iterator<Item = &Arc<KeyValue>> {
        self.survivors.iter().chain(self.history.iter())
    }

    /// In small pieces.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head())?;
        let mut piece = Vec::new();
        for version in self.versions() {
            piece.clear();
            version.encode_length_delimited(&mut piece).expect("a vector grows");
            out.write_all(&piece)?;
        }
        Ok(())
    }

    /// All before the versions.
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        head.put_slice(&MAGIC);
        head.put_u8(VERSION);
        head.put_i64(self.revision);
        head.put_i64(self.compacted);
        head.put_u64(self.leases.len() as u64);
        for (id, ttl) in &self.leases {
            head.put_i64(*id);
            head.put_i64(*ttl);
        }
        head.put_u64((self.survivors.len() + self.history.len()) as u64);
        head
    }
}

impl State {
    pub fn encode(&self) -> Vec<u8> {
        self.freeze().encode()
    }

    /// As it is now. Much cheaper than a clone: what can be derived is left out.
    pub fn freeze(&self) -> Frozen {
        Frozen {
            revision: self.revision,
            compacted: self.compacted,
            leases: self.leases.iter().map(|lease| (lease.id, lease.ttl)).collect(),
            survivors: self.keys.survivors(self.compacted).cloned().collect(),
            history: self.keys.history(),
        }
    }

    /// Equal for replicas that have applied the same commands; not etcd's.
    pub fn hash(&self) -> u32 {
        let mut hash = Fold::new();
        self.freeze().write(&mut hash).expect("there is always room");
        hash.finish()
    }

    /// Of the keys as they were at a revision and of all changes up to it that are not compacted:
    /// equal for stores that have the same past up to there and are compacted alike, whatever
    /// happened to them later.
    pub fn hash_at(&self, revision: i64) -> Result<u32, Error> {
        if self.revision < revision {
            return Err(Error::FutureRevision);
        }
        if revision < self.compacted {
            return Err(Error::Compacted);
        }
        let mut there = self.keys.then(super::Span::From(&[]), revision);
        there.retain(|version| version.mod_revision <= self.compacted);
        let since = self.keys.since(self.compacted + 1);
        let since = since.take_while(|version| version.mod_revision <= revision);
        let mut hash = Fold::new();
        let mut piece = Vec::new();
        for version in there.into_iter().chain(since) {
            piece.clear();
            version.encode_length_delimited(&mut piece).expect("a vector grows");
            hash.take(&piece);
        }
        Ok(hash.finish())
    }

    /// Whatever the bytes are, there is an error or a state that can be worked with, and no more
    /// memory is taken than they account for. That they are the bytes once written is not checked.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, bytes.len() as u64).map_err(|error| match error {
            ReadError::Content(error) => error,
            ReadError::Source(_) => DecodeError::Truncated,
        })
    }

    /// The same of so many bytes that are read in small pieces.
    pub fn read(bytes: impl Read, length: u64) -> Result<Self, ReadError> {
        let mut source = Source { bytes, left: length, piece: Vec::new() };
        let magic = source.take().map_err(|error| match error {
            ReadError::Content(_) => DecodeError::NotASnapshot.into(),
            error @ ReadError::Source(_) => error,
        })?;
        if magic != MAGIC {
            return Err(DecodeError::NotASnapshot.into());
        }
        let [version] = source.take()?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion(version).into());
        }
        let (revision, compacted) = (source.number()?, source.number()?);
        require((1..=REVISION_MAX).contains(&revision), "revision")?;
        require((-1..=revision).contains(&compacted), "compacted revision")?;
        let (keys, leases) = (Keyspace::default(), Leases::default());
        let mut state = Self { revision, compacted, keys, leases };
        for _ in 0..source.number()? {
            let (id, ttl) = (source.number()?, source.number()?);
            require((TTL_SECONDS_MIN..=TTL_SECONDS_MAX).contains(&ttl), "time to live")?;
            let last = state.leases.iter().next_back().map(|lease| lease.id);
            require(last.is_none_or(|last| last < id), "order of leases")?;
            let granted = state.leases.grant(id, ttl);
            granted.map_err(|_| DecodeError::Inconsistent("lease"))?;
        }
        for _ in 0..source.number()? {
            state.restore(source.version()?)?;
        }
        if source.left != 0 {
            return Err(DecodeError::TrailingBytes.into());
        }
        state.restore_leases()?;
        Ok(state)
    }

    fn restore(&mut self, version: KeyValue) -> Result<(), DecodeError> {
        let newest = self.keys.newest(&version.key);
        require(!version.key.is_empty(), "a version without a key")?;
        require((2..=self.revision).contains(&version.mod_revision), "mod revision")?;
        let (mod_revision, is_survivor) =
            (version.mod_revision, version.mod_revision < self.compacted);
        let live = newest.filter(|newest| !is_tombstone(newest));
        let follows = if is_tombstone(&version) {
            let is_bare =
                KeyValue { key: version.key.clone(), mod_revision, ..KeyValue::default() };
            let ends_something =
                live.is_some() || (newest.is_none() && mod_revision == self.compacted);
            is_bare == version && ends_something && !is_survivor
        } else if let Some(live) = live {
            version.create_revision == live.create_revision && version.version == live.version + 1
        } else {
            let is_new = version.create_revision == mod_revision && version.version == 1;
            let counts = (2..mod_revision).contains(&version.create_revision)
                && (2..=mod_revision - version.create_revision + 1).contains(&version.version);
            is_new || (newest.is_none() && mod_revision <= self.compacted && counts)
        };
        require(follows, "versions of a key")?;
        if is_survivor {
            require(newest.is_none(), "more than one version before the compacted revision")?;
            self.keys.link(Arc::new(version));
        } else {
            let last = self.keys.last().map_or(0, |last| last.mod_revision);
            require(last <= mod_revision, "order of the history")?;
            self.keys.write(Arc::new(version));
        }
        Ok(())
    }

    /// Which keys a lease has is said by the keys.
    fn restore_leases(&mut self) -> Result<(), DecodeError> {
        let Self { keys, leases, .. } = self;
        for kv in keys.now(super::Span::From(&[])).filter(|kv| kv.lease != 0) {
            require(leases.get(kv.lease).is_some(), "a key with a lease that is not there")?;
            leases.move_key(&kv.key, 0, kv.lease);
        }
        Ok(())
    }
}

/// FNV-1a in 64 bits, folded: nobody is meant to find collisions hard, only unlikely.
struct Fold(u64);

impl Fold {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> u32 {
        (self.0 >> 32) as u32 ^ self.0 as u32
    }
}

impl Write for Fold {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a snapshot is read.
struct Source<R> {
    bytes: R,
    left: u64,
    /// The one that is read.
    piece: Vec<u8>,
}

impl<R: Read> Source<R> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.left = self.left.checked_sub(N as u64).ok_or(DecodeError::Truncated)?;
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<i64, ReadError> {
        Ok(i64::from_be_bytes(self.take()?))
    }

    /// Of one that is said to be longer than all that is left, nothing is read.
    fn version(&mut self) -> Result<KeyValue, ReadError> {
        let length = self.length()?;
        self.left = self.left.checked_sub(length).ok_or(DecodeError::Truncated)?;
        self.piece.resize(usize::try_from(length).map_err(|_| DecodeError::Truncated)?, 0);
        self.bytes.read_exact(&mut self.piece)?;
        Ok(KeyValue::decode(&self.piece[..]).map_err(|_| DecodeError::Truncated)?)
    }

    fn length(&mut self) -> Result<u64, ReadError> {
        let mut length = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.take()?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(length);
            }
        }
        Err(DecodeError::Truncated.into())
    }
}

fn require(holds: bool, what: &'static str) -> Result<(), DecodeError> {
    if holds { Ok(()) } else { Err(DecodeError::Inconsistent(what)) }
}
