//! How a batch looks on disk: checksum, length, number, then each record behind its length; all
//! little-endian, and filled up to a whole number of words.

/// What every segment begins with.
pub(crate) const MAGIC: [u8; 8] = *b"vez log\x01";

const HEAD: usize = 16;
const WORD: usize = 8;

/// Adds a frame.
pub(crate) fn write<R: AsRef<[u8]>>(batch: u64, records: &[R], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 8]);
    out.extend(batch.to_le_bytes());
    for record in records.iter().map(AsRef::as_ref) {
        out.extend(length(record.len()));
        out.extend(record);
    }
    let filled = out.len();
    out.resize(start + (filled - start).next_multiple_of(WORD), 0);
    out[start + 4..start + 8].copy_from_slice(&length(filled - start - HEAD));
    let checksum = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("a batch has less than four gigabytes").to_le_bytes()
}

/// One frame at the beginning of `bytes`, if that is what is there.
struct Frame<'a> {
    batch: u64,
    records: &'a [u8],
    /// How many bytes it takes.
    size: usize,
}

impl<'a> Frame<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[at + byte]));
        let length = number(4) as usize;
        let size = (HEAD + length).next_multiple_of(WORD);
        if crc32fast::hash(bytes.get(4..size)?) != number(0) {
            return None;
        }
        let batch = u64::from_le_bytes(*head.last_chunk()?);
        Some(Self { batch, records: &bytes[HEAD..HEAD + length], size })
    }
}

/// Why there is no further frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing is left.
    End,
    Zeros,
    /// Something is there that is no frame, and nothing that was written later.
    Torn,
    Damaged,
}

/// The frames of a segment, in order, as long as they can be read.
pub(crate) struct Frames<'a> {
    bytes: &'a [u8],
    read: usize,
    batch: Option<u64>,
    is_empty: bool,
}

impl<'a> Frames<'a> {
    /// `batch` is the number of the first, if it is known.
    pub(crate) fn new(bytes: &'a [u8], batch: Option<u64>) -> Self {
        Self { bytes, read: 0, batch, is_empty: true }
    }

    /// How many bytes were frames.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The number that the next frame has.
    pub(crate) fn next_batch(&self) -> Option<u64> {
        self.batch
    }

    pub(crate) fn stop(&self) -> Stop {
        let rest = &self.bytes[self.read..];
        if rest.is_empty() {
            return Stop::End;
        }
        if rest.iter().all(|byte| *byte == 0) {
            return Stop::Zeros;
        }
        // Only what is looked for can be found: a number that is near, before any checksum.
        let expected = self.batch.unwrap_or(0);
        let is_later = |at: usize| {
            let batch = rest[at..].get(8..HEAD).and_then(|number| number.first_chunk());
            let batch = batch.map_or(0, |number| u64::from_le_bytes(*number));
            expected < batch
                && batch - expected <= rest.len() as u64
                && Frame::read(&rest[at..]).is_some()
        };
        match (0..rest.len()).step_by(WORD).any(is_later) {
            true => Stop::Damaged,
            false => Stop::Torn,
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Records<'a>;

    fn next(&mut self) -> Option<Records<'a>> {
        let frame = Frame::read(&self.bytes[self.read..])?;
        if self.batch.is_some_and(|expected| expected != frame.batch) {
            return None;
        }
        self.batch = Some(frame.batch + 1);
        self.read += frame.size;
        self.is_empty = false;
        Some(Records(frame.records))
    }
}

/// The records of a batch.
pub(crate) struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        // The frame's checksum was right.
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(record)
    }
}
