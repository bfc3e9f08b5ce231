//! Frames: nine bytes that say what comes, and what comes.

/// The bytes before a frame's payload.
pub(crate) const HEAD: usize = 9;
/// No side may send a longer payload before the other has said that it may; we never say so.
pub(crate) const PAYLOAD_MAX: usize = 16_384;
/// What a client says first.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RESET: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

pub(crate) mod setting {
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const STREAMS_MAX: u16 = 3;
    pub(crate) const INITIAL_WINDOW: u16 = 4;
    pub(crate) const PAYLOAD_MAX: u16 = 5;
    pub(crate) const HEADER_LIST_MAX: u16 = 6;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) id: u32,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame and what is after it; nothing while it has not come whole. A frame that is
    /// too long is told by its length.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, usize> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [high, middle, low, kind, flags, id @ ..] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if PAYLOAD_MAX < length {
            return Err(length);
        }
        let id = u32::from_be_bytes(id) & 0x7fff_ffff;
        let parts = rest.split_at_checked(length);
        Ok(parts.map(|(payload, rest)| (Self { kind, flags, id, payload }, rest)))
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without its padding; nothing if there is more padding than payload.
    pub(crate) fn unpadded(&self) -> Option<&'a [u8]> {
        if !self.has(flag::PADDED) {
            return Some(self.payload);
        }
        let (&padding, rest) = self.payload.split_first()?;
        rest.len().checked_sub(padding.into()).map(|length| &rest[..length])
    }
}

pub(crate) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    put_head(out, kind, flags, id, payload.len());
    out.extend_from_slice(payload);
}

pub(crate) fn put_head(out: &mut Vec<u8>, kind: u8, flags: u8, id: u32, length: usize) {
    debug_assert!(length < 1 << 24, "no frame is so long");
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    out.extend_from_slice(&[high, middle, low, kind, flags]);
    out.extend_from_slice(&id.to_be_bytes());
}

pub(crate) fn put_setting(out: &mut Vec<u8>, name: u16, value: u32) {
    out.extend_from_slice(&name.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}
