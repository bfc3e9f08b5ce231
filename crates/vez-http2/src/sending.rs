//! Answers: fields, bytes as far as the client's windows allow, and fields at the end.

use bytes::{Buf as _, Bytes};

use crate::connection::Connection;
use crate::frame::{self, PAYLOAD_MAX, flag, kind};
use crate::hpack::put_literal;
use crate::reason;
use crate::streams::Stream;

/// `:status: 200`, as everybody knows it.
const OK: u8 = 0x88;

impl Connection {
    /// Begins an answer. Nobody minds if the client has given it up meanwhile.
    pub fn begin<'a>(
        &mut self,
        id: u32,
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        is_all: bool,
    ) {
        if !self.streams.contains_key(&id) {
            return;
        }
        let mut block = std::mem::take(&mut self.scratch);
        block.clear();
        if status == 200 {
            block.push(OK);
        } else {
            put_literal(&mut block, b":status", status.to_string().as_bytes());
        }
        for (name, value) in fields {
            put_literal(&mut block, name, value);
        }
        self.put_fields(id, &block, is_all);
        self.scratch = block;
        if is_all {
            self.end(id);
        }
    }

    /// Goes on with an answer that was begun: now, as far as windows allow, or later.
    pub fn say(&mut self, id: u32, bytes: Bytes) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !bytes.is_empty() {
            self.waits += bytes.len();
            stream.waiting.push_back(bytes);
            self.send_waiting(id);
        }
    }

    /// Ends an answer with these fields, after all that waits.
    pub fn finish<'a>(&mut self, id: u32, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mut block = std::mem::take(&mut self.scratch);
        block.clear();
        for (name, value) in fields {
            put_literal(&mut block, name, value);
        }
        if stream.waiting.is_empty() {
            self.put_fields(id, &block, true);
            self.scratch = block;
            self.end(id);
        } else {
            stream.trailers = Some(block);
        }
    }

    /// Gives a stream up.
    pub fn reset(&mut self, id: u32, reason: u32) {
        if self.forget(id).is_some() {
            self.put_reset(id, reason);
        }
    }

    /// Whether all that was said on a stream is on its way; also if it has ended.
    pub fn is_clear(&self, id: u32) -> bool {
        self.streams.get(&id).is_none_or(|stream| stream.waiting.is_empty())
    }

    pub(crate) fn put_reset(&mut self, id: u32, reason: u32) {
        frame::put(&mut self.out, kind::RESET, 0, id, &reason.to_be_bytes());
    }

    fn put_fields(&mut self, id: u32, block: &[u8], is_all: bool) {
        let end_stream = if is_all { flag::END_STREAM } else { 0 };
        let first = block.len().min(PAYLOAD_MAX);
        let (first, rest) = block.split_at(first);
        let end_headers = if rest.is_empty() { flag::END_HEADERS } else { 0 };
        frame::put(&mut self.out, kind::HEADERS, end_stream | end_headers, id, first);
        let mut parts = rest.chunks(PAYLOAD_MAX).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { flag::END_HEADERS } else { 0 };
            frame::put(&mut self.out, kind::CONTINUATION, flags, id, part);
        }
    }

    /// A stream is over, and with it what waits there.
    pub(crate) fn forget(&mut self, id: u32) -> Option<Box<Stream>> {
        let stream = self.streams.remove(&id)?;
        self.waits -= stream.waiting.iter().map(Bytes::len).sum::<usize>();
        Some(stream)
    }

    /// Nothing more goes out on a stream.
    fn end(&mut self, id: u32) {
        let Some(stream) = self.forget(id) else { return };
        self.count_end();
        if !stream.is_heard {
            // It has its answer, whatever else it wanted to say.
            self.put_reset(id, reason::NO_ERROR);
        }
    }

    /// Sends what a stream has to say, as far as it may.
    pub(crate) fn send_waiting(&mut self, id: u32) {
        while self.send_one(id) {}
    }

    /// Those who wait for the connection take turns.
    pub(crate) fn send_queued(&mut self) {
        while 0 < self.sends {
            let Some(id) = self.queue.pop_front() else { return };
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.is_queued = false;
                if self.send_one(id)
                    && let Some(stream) = self.streams.get_mut(&id)
                    && !stream.is_queued
                {
                    stream.is_queued = true;
                    self.queue.push_back(id);
                }
            }
        }
    }

    /// Sends one frame; says whether there may be another. Whoever waits for the connection is
    /// queued.
    fn send_one(&mut self, id: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let Some(bytes) = stream.waiting.front_mut() else { return false };
        if stream.sends <= 0 {
            return false;
        }
        if self.sends <= 0 {
            if !stream.is_queued {
                stream.is_queued = true;
                self.queue.push_back(id);
            }
            return false;
        }
        let window = usize::try_from(stream.sends.min(self.sends)).unwrap_or(0);
        let length = bytes.len().min(window).min(PAYLOAD_MAX);
        frame::put(&mut self.out, kind::DATA, 0, id, &bytes[..length]);
        bytes.advance(length);
        self.waits -= length;
        let sent = i64::try_from(length).unwrap_or(0);
        stream.sends -= sent;
        self.sends -= sent;
        if bytes.is_empty() {
            stream.waiting.pop_front();
        }
        if !stream.waiting.is_empty() {
            return true;
        }
        if let Some(trailers) = stream.trailers.take() {
            self.put_fields(id, &trailers, true);
            self.end(id);
        }
        false
    }
}
