//! Snapshots: one file each, written beside the others and renamed when it is whole, so that at
//! every moment the newest file that is there under its name is one that can be read.
//!
//! What is in one is written and read in pieces, however large it is.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::SnapshotMeta;
use super::record::{self, Damage};
use crate::state::{Frozen, ReadError, State};

const MAGIC: &[u8; 8] = b"vezsnap1";
const PREFIX: &str = "snapshot-";
const UNFINISHED: &str = "snapshot.part";
const CHECKSUM_BYTES: u64 = 4;
/// So much is read or written at a time.
const PIECE: usize = 128 << 10;
/// After so much of a snapshot, others have their turn at the processor; and after so much, the
/// disk is given it: whoever writes the log meanwhile would have to wait until it has all of it.
const BREATH: u64 = 16 << 10;
const SYNC: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is damaged: {damage}; restore the directory from a backup", path.display())]
    Damaged { path: PathBuf, damage: Damage },
}

/// Where a server's snapshots are.
#[derive(Clone, Debug)]
pub(crate) struct Snapshots {
    directory: PathBuf,
    /// Held by whoever does something in the directory; true once nobody may any more.
    closed: Arc<Mutex<bool>>,
}

impl Snapshots {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), closed: Arc::default() }
    }

    /// Waits for the one being written; none is from then on, because the directory may soon be
    /// somebody else's.
    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The directory, for as long as this is held.
    fn enter(&self) -> io::Result<MutexGuard<'_, bool>> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *closed { Err(io::Error::other("the server has stopped")) } else { Ok(closed) }
    }

    /// Removes what a crash left unfinished. Nobody may be writing.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        self.list(UNFINISHED)?.into_iter().try_for_each(fs::remove_file)
    }

    /// Durable when it returns; the ones before it are gone then.
    pub(crate) fn write(&self, meta: &SnapshotMeta, state: &Frozen) -> io::Result<Kept> {
        let _entered = self.enter()?;
        let mut draft = self.draft(meta, state.length())?;
        state.write(&mut draft)?;
        let kept = draft.finish()?;
        self.publish_here(&kept)?;
        Ok(kept)
    }

    /// One of which the state will come in pieces, so many bytes in all. Without an end it leaves
    /// nothing behind.
    pub(crate) fn begin(&self, meta: &SnapshotMeta, length: u64) -> io::Result<Draft> {
        let _entered = self.enter()?;
        self.draft(meta, length)
    }

    fn draft(&self, meta: &SnapshotMeta, length: u64) -> io::Result<Draft> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{UNFINISHED}-{}-{number}", std::process::id());
        let path = self.directory.join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let (file, checksum) = (BufWriter::with_capacity(PIECE, file), crc32fast::Hasher::new());
        let unfinished = Unfinished(Mutex::new(Some(path)));
        let (meta, state) = (meta.clone(), 0..0);
        let mut draft = Draft { file, unfinished, checksum, meta, state, left: u64::MAX };
        let head = record::encode_meta(&draft.meta);
        let head_length = (head.len() as u64).to_be_bytes();
        for part in [MAGIC, &head_length, &head[..], &length.to_be_bytes()] {
            draft.write_all(part)?;
            draft.state.start += part.len() as u64;
        }
        (draft.state.end, draft.left) = (draft.state.start + length, length);
        Ok(draft)
    }

    /// Gives it its name: from then on it is the one to begin with. Those before it go.
    pub(crate) fn publish(&self, kept: &Kept) -> io::Result<()> {
        let _entered = self.enter()?;
        if self.publish_here(kept)? {
            return Ok(());
        }
        let mut draft = self.draft(kept.meta(), kept.length())?;
        io::copy(&mut kept.reader(), &mut draft)?;
        self.publish_here(&draft.finish()?).map(drop)
    }

    /// Says whether it could: not, if it is elsewhere or has a name already.
    fn publish_here(&self, kept: &Kept) -> io::Result<bool> {
        let Some(unfinished) = kept.0.unfinished.take_in(&self.directory) else {
            return Ok(false);
        };
        let index = kept.meta().last_log_id.map_or(0, |id| id.index);
        let path = self.directory.join(format!("{PREFIX}{index:020}"));
        fs::rename(&unfinished, &path)?;
        File::open(&self.directory)?.sync_all()?;
        // Not those after it: one may have come from the leader while this was written.
        for old in self.list(PREFIX)?.into_iter().filter(|old| *old < path) {
            fs::remove_file(old)?;
        }
        Ok(true)
    }

    /// The newest that can be read. A damaged one is passed over if an older is whole: whether
    /// the log still reaches back to that one is for the caller to see.
    pub(crate) fn newest(&self) -> Result<Option<Kept>, SnapshotError> {
        let read = |error| SnapshotError::Read { path: self.directory.clone(), error };
        let mut first_trouble = None;
        for path in self.list(PREFIX).map_err(read)?.into_iter().rev() {
            match Kept::open(&path) {
                Ok(kept) => return Ok(Some(kept)),
                Err(error) => {
                    tracing::error!("{error}");
                    first_trouble.get_or_insert(error);
                }
            }
        }
        first_trouble.map_or(Ok(None), Err)
    }

    /// Oldest first.
    fn list(&self, prefix: &str) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
                found.push(entry.path());
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// A file without a name of its own; it goes with its owner.
#[derive(Debug)]
struct Unfinished(Mutex<Option<PathBuf>>);

impl Unfinished {
    fn path(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path, if it is in this directory; it is the caller's then.
    fn take_in(&self, directory: &Path) -> Option<PathBuf> {
        self.path().take_if(|path| path.parent() == Some(directory))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.path().take() {
            // Whoever opens the directory next tries again.
            fs::remove_file(path).ok();
        }
    }
}

/// A snapshot that is being written.
#[derive(Debug)]
pub(crate) struct Draft {
    file: BufWriter<File>,
    unfinished: Unfinished,
    checksum: crc32fast::Hasher,
    meta: SnapshotMeta,
    /// Where in the file it is.
    state: Range<u64>,
    /// So much of it is still to come.
    left: u64,
}

impl Write for Draft {
    /// No more than was said: whoever sends it must not fill the disk.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left < bytes.len() as u64 {
            return Err(self.unlike("more"));
        }
        let many = self.file.write(bytes)?;
        self.checksum.update(&bytes[..many]);
        let (before, after) = (self.left, self.left - many as u64);
        self.left = after;
        if before / BREATH != after / BREATH {
            std::thread::yield_now();
        }
        if before / SYNC != after / SYNC {
            self.file.flush()?;
            self.file.get_ref().sync_data()?;
        }
        Ok(many)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Draft {
    fn unlike(&self, found: impl fmt::Display) -> io::Error {
        let expected = self.state.end - self.state.start;
        let text = format!("expected {expected} bytes of a snapshot, found {found}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    /// Durable, if it is as long as was said.
    pub(crate) fn finish(self) -> io::Result<Kept> {
        if self.left != 0 {
            return Err(self.unlike(self.state.end - self.state.start - self.left));
        }
        let Self { mut file, unfinished, checksum, meta, state, .. } = self;
        file.write_all(&checksum.finalize().to_be_bytes())?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(Kept(Arc::new(Inner { meta, file, state, unfinished })))
    }
}

/// A snapshot in a file, whole. Whoever holds it can read it, also when a newer one has taken its
/// place.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    meta: SnapshotMeta,
    file: File,
    state: Range<u64>,
    unfinished: Unfinished,
}

impl Kept {
    fn open(path: &Path) -> Result<Self, SnapshotError> {
        let unreadable = |error| SnapshotError::Read { path: path.to_path_buf(), error };
        let file = File::open(path).map_err(unreadable)?;
        let parsed = parse(&file).map_err(unreadable)?;
        let (meta, state) =
            parsed.map_err(|damage| SnapshotError::Damaged { path: path.to_path_buf(), damage })?;
        let unfinished = Unfinished(Mutex::new(None));
        Ok(Self(Arc::new(Inner { meta, file, state, unfinished })))
    }

    pub(crate) fn meta(&self) -> &SnapshotMeta {
        &self.0.meta
    }

    /// How long the state is.
    pub(crate) fn length(&self) -> u64 {
        self.0.state.end - self.0.state.start
    }

    pub(crate) fn state(&self) -> io::Result<State> {
        State::read(self.reader(), self.length()).map_err(|error| match error {
            ReadError::Content(error) => io::Error::new(io::ErrorKind::InvalidData, error),
            ReadError::Source(error) => error,
        })
    }

    /// At most so many bytes of the state, from there on.
    pub(crate) fn part(&self, from: u64, most: usize) -> io::Result<Bytes> {
        let left = usize::try_from(self.length().saturating_sub(from)).unwrap_or(most);
        let mut bytes = vec![0; left.min(most)];
        self.0.file.read_exact_at(&mut bytes, self.0.state.start + from)?;
        Ok(bytes.into())
    }

    fn reader(&self) -> impl Read {
        let stretch = Stretch { file: &self.0.file, left: self.0.state.clone() };
        BufReader::with_capacity(PIECE, stretch)
    }
}

/// A stretch of a file, read by whoever else reads it, too.
struct Stretch<'a> {
    file: &'a File,
    left: Range<u64>,
}

impl Read for Stretch<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
        let many = room.len().min(left);
        let read = self.file.read_at(&mut room[..many], self.left.start)?;
        self.left.start += read as u64;
        Ok(read)
    }
}

/// Of whom it is, and where in the file the state is; all of it is looked at.
fn parse(file: &File) -> io::Result<Result<(SnapshotMeta, Range<u64>), Damage>> {
    let length = file.metadata()?.len();
    let short = || Damage::Content("it ends too early".to_owned());
    let Some(end) = length.checked_sub(CHECKSUM_BYTES) else { return Ok(Err(short())) };
    let mut checksum = crc32fast::Hasher::new();
    let mut all = Stretch { file, left: 0..end };
    let mut piece = vec![0; PIECE];
    loop {
        match all.read(&mut piece)? {
            0 => break,
            many => checksum.update(&piece[..many]),
        }
    }
    let mut written = [0; CHECKSUM_BYTES as usize];
    file.read_exact_at(&mut written, end)?;
    if checksum.finalize().to_be_bytes() != written {
        return Ok(Err(Damage::Checksum));
    }
    let mut body = Stretch { file, left: 0..end };
    let mut magic = [0; MAGIC.len()];
    if body.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Ok(Err(Damage::Content("it is no snapshot".to_owned())));
    }
    let Some(head) = part(&mut body)? else { return Ok(Err(short())) };
    let mut meta = vec![0; usize::try_from(head.end - head.start).unwrap_or(0)];
    file.read_exact_at(&mut meta, head.start)?;
    body.left.start = head.end;
    let Some(state) = part(&mut body)? else { return Ok(Err(short())) };
    if state.end != end {
        return Ok(Err(Damage::Content("it goes on too long".to_owned())));
    }
    Ok(record::decode_meta(&meta).map(|meta| (meta, state)))
}

/// Where bytes are that have their length in front; nothing, if they are not all there.
fn part(body: &mut Stretch<'_>) -> io::Result<Option<Range<u64>>> {
    let mut length = [0; 8];
    if body.left.end - body.left.start < length.len() as u64 {
        return Ok(None);
    }
    body.read_exact(&mut length)?;
    let start = body.left.start;
    let end = start.checked_add(u64::from_be_bytes(length)).filter(|end| *end <= body.left.end);
    Ok(end.map(|end| start..end))
}

#[cfg(test)]
mod tests {
    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::command;

    use super::*;
    use crate::store::{LogId, StoredMembers};

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> (Self, Snapshots) {
            let path = std::env::temp_dir().join(format!("vez-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            let snapshots = Snapshots::new(&path);
            (Self(path), snapshots)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn meta(index: u64) -> SnapshotMeta {
        let last_log_id = Some(LogId::new_term_index(1, index));
        SnapshotMeta { last_log_id, last_membership: StoredMembers::default() }
    }

    /// So many keys that it does not fit into one piece.
    fn state() -> State {
        let mut state = State::default();
        for number in 0..300 {
            let (key, value) = (format!("key/{number}").into(), vec![7; 1_000].into());
            let put = PutRequest { key, value, ..PutRequest::default() };
            let applied = state.apply(&command::Command::Put(put).into());
            applied.response.expect("it is in order");
        }
        state
    }

    #[test]
    fn what_was_written_is_read_and_can_be_read_on_when_a_newer_one_is_there() {
        let (place, snapshots) = Place::new("snapshots-written");
        assert!(snapshots.newest().unwrap().is_none());
        let state = state();
        let frozen = state.freeze();
        assert_eq!(frozen.length(), frozen.encode().len() as u64);
        assert!(2 * PIECE < frozen.encode().len());
        let old = snapshots.write(&meta(3), &frozen).unwrap();
        snapshots.write(&meta(5), &State::default().freeze()).unwrap();
        assert_eq!(place.names(), [format!("{PREFIX}{:020}", 5)]);
        let newest = snapshots.newest().unwrap().unwrap();
        assert_eq!(newest.meta(), &meta(5));
        assert_eq!(newest.state().unwrap().encode(), State::default().encode());
        assert_eq!(old.state().unwrap().encode(), state.encode());
        // One that was begun earlier and is done later does not take the place of a newer.
        snapshots.write(&meta(4), &frozen).unwrap();
        assert_eq!(snapshots.newest().unwrap().unwrap().meta(), &meta(5));
    }

    #[test]
    fn one_that_comes_in_parts_is_the_same_elsewhere_and_leaves_nothing_if_it_does_not_end() {
        let (_place, here) = Place::new("snapshots-sent");
        let (place, there) = Place::new("snapshots-received");
        let sent = here.write(&meta(3), &state().freeze()).unwrap();
        let parts = || {
            let starts = (0..sent.length()).step_by(1_000);
            starts.map(|start| sent.part(start, 1_000).unwrap())
        };
        let begin = || there.begin(sent.meta(), sent.length()).unwrap();
        let mut short = begin();
        parts().skip(1).for_each(|part| short.write_all(&part).unwrap());
        let error = short.finish().unwrap_err().to_string();
        let (expected, found) = (sent.length(), sent.length() - 1_000);
        assert_eq!(error, format!("expected {expected} bytes of a snapshot, found {found}"));
        let mut long = begin();
        parts().for_each(|part| long.write_all(&part).unwrap());
        let error = long.write_all(b"more").unwrap_err().to_string();
        assert_eq!(error, format!("expected {expected} bytes of a snapshot, found more"));
        drop(long);
        let mut given_up = begin();
        given_up.write_all(b"vezs").unwrap();
        drop(given_up);
        assert_eq!(place.names(), [""; 0]);
        let mut whole = begin();
        parts().for_each(|part| whole.write_all(&part).unwrap());
        let received = whole.finish().unwrap();
        assert!(there.newest().unwrap().is_none(), "it has no name yet");
        there.publish(&received).unwrap();
        let newest = there.newest().unwrap().unwrap();
        assert_eq!(newest.state().unwrap().encode(), state().encode());
        // One of another directory is copied, and one that has a name already, too.
        here.publish(&received).unwrap();
        there.publish(&received).unwrap();
        for snapshots in [&here, &there] {
            let state = snapshots.newest().unwrap().unwrap().state().unwrap();
            assert_eq!(state.encode(), self::state().encode());
        }
        there.close();
        there.write(&meta(9), &State::default().freeze()).unwrap_err();
        assert_eq!(place.names().len(), 1, "nothing is written any more");
    }

    #[test]
    fn what_is_damaged_is_refused_wherever_that_is_and_what_is_unfinished_goes() {
        let (place, snapshots) = Place::new("snapshots-damaged");
        snapshots.write(&meta(3), &State::default().freeze()).unwrap();
        let path = place.0.join(&place.names()[0]);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&path, bad).unwrap();
            assert!(matches!(snapshots.newest(), Err(SnapshotError::Damaged { .. })), "{at}");
            fs::write(&path, &good[..at]).unwrap();
            assert!(matches!(snapshots.newest(), Err(SnapshotError::Damaged { .. })), "{at}");
        }
        fs::write(&path, &good).unwrap();
        fs::write(place.0.join(UNFINISHED), "as an older version called it").unwrap();
        fs::write(place.0.join(format!("{UNFINISHED}-1-1")), "of a crash").unwrap();
        snapshots.tidy().unwrap();
        assert_eq!(place.names().len(), 1);
        assert_eq!(snapshots.newest().unwrap().unwrap().meta(), &meta(3));
    }
}
