//! A journal: batches of records, each durable whole or not at all when `append` returns, for one
//! write into blocks that are there already and one `fdatasync`.
//!
//! A journal is a directory of numbered segments; the oldest are forgotten, the newest is written.
//! Each segment begins with the same eight bytes; then frame follows frame, each a batch with its
//! number and its checksum. After the last frame the newest segment holds zeros, written ahead so
//! that a batch changes no length and no block map, which would cost the disk more than the batch.
//!
//! **Invariant:** what was acknowledged comes back, or opening fails with the place. A batch that
//! cannot be read is taken for unfinished, and cut off, only if no later one is there: batches are
//! written one after the other, each when the one before was durable. An orderly end writes one
//! more, so that after it nothing at all is cut.

mod frame;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use frame::{Frames, MAGIC, Stop};
use rustix::fs::{Advice, fadvise};

/// A segment that has grown to this is not written any more.
const SEGMENT_BYTES: u64 = 16 << 20;
/// So many zeros are written ahead at a time.
const AHEAD_BYTES: u64 = 1 << 20;
/// The next segment, while it is being made.
const UNFINISHED: &str = "unfinished";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} cannot be {what}: {error}", path.display())]
    Io { path: PathBuf, what: &'static str, error: io::Error },
    #[error("{} is damaged at byte {at}, and that was not the last to be written", path.display())]
    Damaged { path: PathBuf, at: u64 },
    #[error("{} is not a journal's", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is missing", path.display())]
    Missing { path: PathBuf },
}

/// A record that was found, and the number of the segment it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub segment: u64,
    pub record: Vec<u8>,
}

/// How a journal was found.
#[derive(Debug, Default)]
pub struct Opened {
    /// All records, the oldest first.
    pub records: Vec<Found>,
    /// How many bytes of an unfinished batch were cut off.
    pub cut: u64,
}

#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    /// The oldest and the newest segment.
    first: u64,
    last: u64,
    file: File,
    /// Where the next batch goes, and its number.
    end: u64,
    batch: u64,
    /// Up to here the newest segment has blocks.
    ahead: u64,
    buffer: Vec<u8>,
    segment_bytes: u64,
}

impl Journal {
    /// Opens the journal, or makes an empty one, and reads all of it.
    pub fn open(directory: &Path) -> Result<(Self, Opened), Error> {
        make_directory(directory).map_err(failed(directory, "made"))?;
        let numbers = segments(directory)?;
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
            let journal = Self::make(directory, 1, 1, &[])?;
            return Ok((journal, Opened::default()));
        };
        let mut opened = Opened::default();
        let (mut batch, mut end) = (None, 0);
        for (number, there) in (first..).zip(&numbers) {
            let path = segment(directory, number);
            if number != *there {
                return Err(Error::Missing { path });
            }
            let bytes = fs::read(&path).map_err(failed(&path, "read"))?;
            let rest = bytes.strip_prefix(MAGIC.as_slice());
            let rest = rest.ok_or_else(|| Error::Foreign { path: path.clone() })?;
            let mut frames = Frames::new(rest, batch);
            for records in &mut frames {
                let found = records.map(|record| Found { segment: number, record: record.into() });
                opened.records.extend(found);
            }
            let at = (MAGIC.len() + frames.read()) as u64;
            // A segment gets its name when its first batch is durable, and a next one when it is
            // durable to its end.
            let is_whole = number < last || frames.is_empty();
            match frames.stop() {
                Stop::End if !frames.is_empty() => {}
                Stop::Zeros if !is_whole => {}
                Stop::Torn if !is_whole => opened.cut = bytes.len() as u64 - at,
                _ => return Err(Error::Damaged { path, at }),
            }
            (batch, end) = (frames.next_batch(), at);
        }
        let path = segment(directory, last);
        let file = OpenOptions::new().write(true).open(&path).map_err(failed(&path, "written"))?;
        // What is left of an unfinished batch must not be there when the next one is written over
        // it; and zeros are written anew.
        file.set_len(end).and_then(|()| file.sync_all()).map_err(failed(&path, "written"))?;
        let journal = Self {
            directory: directory.to_path_buf(),
            first,
            last,
            file,
            end,
            batch: batch.unwrap_or(1),
            ahead: end,
            buffer: Vec::new(),
            segment_bytes: SEGMENT_BYTES,
        };
        Ok((journal, opened))
    }

    /// Makes a segment with its first batch. It has its name only when it is whole.
    fn make(directory: &Path, number: u64, batch: u64, head: &[&[u8]]) -> Result<Self, Error> {
        let unfinished = directory.join(UNFINISHED);
        let path = segment(directory, number);
        let mut buffer = MAGIC.to_vec();
        frame::write(batch, head, &mut buffer);
        let make = || {
            let mut options = OpenOptions::new();
            let file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all_at(&buffer, 0)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            File::open(directory)?.sync_all()?;
            Ok(file)
        };
        let file = make().map_err(failed(&path, "made"))?;
        let end = buffer.len() as u64;
        Ok(Self {
            directory: directory.to_path_buf(),
            first: number,
            last: number,
            file,
            end,
            batch: batch + 1,
            ahead: end,
            buffer,
            segment_bytes: SEGMENT_BYTES,
        })
    }

    /// Returns once the records are durable, all of them.
    pub fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> io::Result<()> {
        self.buffer.clear();
        frame::write(self.batch, records, &mut self.buffer);
        let end = self.end + self.buffer.len() as u64;
        self.file.write_all_at(&self.buffer, self.end)?;
        if self.ahead < end {
            self.let_go();
            let ahead = end.next_multiple_of(AHEAD_BYTES);
            // No room for zeros is no reason to refuse what still had room.
            let is_written = write_zeros(&self.file, end, ahead).is_ok();
            self.ahead = if is_written { ahead } else { end };
        }
        self.file.sync_data()?;
        (self.end, self.batch) = (end, self.batch + 1);
        Ok(())
    }

    /// Has the system not keep in memory what is read only when it is opened again. All at once,
    /// when the segment is removed, that takes as long as many a batch.
    fn let_go(&self) {
        let before = self.end - self.end % AHEAD_BYTES;
        let Some(length) = NonZero::new(AHEAD_BYTES.min(before)) else { return };
        // It may keep it.
        fadvise(&self.file, before - length.get(), Some(length), Advice::DontNeed).ok();
    }

    /// Whether the newest segment has grown enough.
    pub fn is_full(&self) -> bool {
        self.segment_bytes <= self.end
    }

    /// Begins a segment with these records: all that is needed of older ones once they are
    /// forgotten.
    pub fn begin_segment<R: AsRef<[u8]>>(&mut self, head: &[R]) -> Result<u64, Error> {
        let path = segment(&self.directory, self.last);
        let trimmed = self.file.set_len(self.end).and_then(|()| self.file.sync_all());
        trimmed.map_err(failed(&path, "written"))?;
        let head: Vec<_> = head.iter().map(AsRef::as_ref).collect();
        let next = Self::make(&self.directory, self.last + 1, self.batch, &head)?;
        *self = Self { first: self.first, segment_bytes: self.segment_bytes, ..next };
        Ok(self.last)
    }

    /// Which segment is written.
    pub fn segment(&self) -> u64 {
        self.last
    }

    /// Removes the oldest segment if it is older than this one; never the newest. One at a time,
    /// because it takes as long as many a batch; says whether it did.
    pub fn forget_one_before(&mut self, number: u64) -> io::Result<bool> {
        let is_old = self.first < number.min(self.last);
        if is_old {
            fs::remove_file(segment(&self.directory, self.first))?;
            self.first += 1;
        }
        Ok(is_old)
    }

    /// Ends in order: from now on nothing can be taken for unfinished.
    pub fn close(mut self) -> io::Result<()> {
        self.append::<&[u8]>(&[])
    }

    /// For tests, which have no time to fill large ones.
    pub fn set_segment_bytes(&mut self, bytes: u64) {
        self.segment_bytes = bytes;
    }
}

fn write_zeros(file: &File, mut from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while from < to {
        let many = (to - from).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..many as usize], from)?;
        from += many;
    }
    Ok(())
}

/// Makes it, and sees to it that it is found again.
fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016}"))
}

/// The numbers of the segments that are there, in order.
fn segments(directory: &Path) -> Result<Vec<u64>, Error> {
    let read = failed(directory, "read");
    let mut numbers = Vec::new();
    for file in fs::read_dir(directory).map_err(&read)? {
        let name = file.map_err(&read)?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn failed<'a>(path: &'a Path, what: &'static str) -> impl Fn(io::Error) -> Error + 'a {
    move |error| Error::Io { path: path.to_path_buf(), what, error }
}
