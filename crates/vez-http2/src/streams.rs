//! What is known of a stream, and the fields with which it began.

use std::collections::VecDeque;

use bytes::Bytes;

/// Header fields, in their order. All of them are in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    text: Vec<u8>,
    /// Where each name and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Fields {
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(value);
        self.ends.push((middle, self.text.len()));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |&(middle, end)| {
            let field = (&self.text[begin..middle], &self.text[middle..end]);
            begin = end;
            field
        })
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find_map(|(is, value)| (is == name).then_some(value))
    }
}

#[derive(Debug)]
pub(crate) struct Stream {
    /// The client has said all.
    pub(crate) is_heard: bool,
    /// What it may still send.
    pub(crate) receives: i64,
    /// What was taken of it since it was told.
    pub(crate) owed: u32,
    /// What we may still send.
    pub(crate) sends: i64,
    /// What waits for that.
    pub(crate) waiting: VecDeque<Bytes>,
    /// It waits for the connection's window, not only for its own.
    pub(crate) is_queued: bool,
    /// The fields with which we end it, encoded, when nothing waits any more.
    pub(crate) trailers: Option<Vec<u8>>,
}

impl Stream {
    pub(crate) fn new(is_heard: bool, receives: i64, sends: i64) -> Self {
        Self {
            is_heard,
            receives,
            owed: 0,
            sends,
            waiting: VecDeque::new(),
            is_queued: false,
            trailers: None,
        }
    }
}
