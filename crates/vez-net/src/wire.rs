//! What is on the wire: a length, then one frame. Nothing here trusts anybody.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::VectorClock;

/// Changes with every change of the frames: others are refused.
pub(crate) const VERSION: u16 = 2;
/// No message of any algorithm comes near.
pub(crate) const FRAME_MAX: usize = 1 << 20;

/// What the caller says first, on a connection or in front of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) version: u16,
    /// A digest of group, epoch and algorithm.
    pub(crate) group: u64,
    pub(crate) id: u64,
    /// Which life of that process this is; later ones are larger.
    pub(crate) life: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame {
    Hello(Greeting),
    /// To a greeting: the life of who answers, and the last letter of the caller's it has heard.
    Welcome {
        life: u64,
        heard: u64,
    },
    /// To a greeting: why not.
    Refused(String),
    Letter(Letter),
    /// Everything up to this letter has been heard.
    Heard(u64),
    /// Somebody else claims to be you. Are you there?
    Probe,
    Here,
}

/// A message, on a connection where none may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) number: u64,
    pub(crate) parcel: Parcel,
}

/// A message and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parcel {
    /// Different for every message of the group.
    pub(crate) id: u64,
    pub(crate) clock: VectorClock,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    *out = postcard::to_extend(frame, std::mem::take(out)).expect("plain data");
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads frames from a stream, a buffer at a time.
pub(crate) struct Frames<R> {
    stream: R,
    buffer: Vec<u8>,
    /// What of the buffer has not been read yet.
    from: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::with_capacity(4096), from: 0 }
    }

    /// The next frame. What is no frame ends the connection: after it nothing can be trusted.
    pub(crate) async fn next(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(frame);
            }
            if 0 < self.from {
                self.buffer.drain(..self.from);
                self.from = 0;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// A frame that has been received already.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<Frame>> {
        let rest = &self.buffer[self.from..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if FRAME_MAX < length {
            let why = format!("a frame of {length} bytes; expected at most {FRAME_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = postcard::from_bytes(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no frame of this version"))?;
        self.from += 4 + length;
        Ok(Some(frame))
    }
}

/// FNV-1a: only to tell groups apart by accident, not by attack.
pub(crate) fn digest(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frame, Frames, Greeting, Letter, Parcel, encode};
    use crate::VectorClock;

    fn frame() -> impl Strategy<Value = Frame> {
        let greeting = (any::<u16>(), any::<u64>(), any::<u64>(), any::<u64>());
        let letter = (any::<u64>(), any::<u64>(), any::<Vec<u64>>(), any::<Vec<u8>>());
        prop_oneof![
            greeting.prop_map(|(version, group, id, life)| {
                Frame::Hello(Greeting { version, group, id, life })
            }),
            any::<(u64, u64)>().prop_map(|(life, heard)| Frame::Welcome { life, heard }),
            ".{0,40}".prop_map(Frame::Refused),
            letter.prop_map(|(number, id, clock, payload)| {
                let clock = VectorClock::from_parts(clock);
                Frame::Letter(Letter { number, parcel: Parcel { id, clock, payload } })
            }),
            any::<u64>().prop_map(Frame::Heard),
            Just(Frame::Probe),
            Just(Frame::Here),
        ]
    }

    fn written(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            encode(frame, &mut bytes);
        }
        bytes
    }

    /// Everything that can be read, and whether it ended as a stream may end.
    fn read(bytes: &[u8]) -> (Vec<Frame>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut frames = Frames::new(bytes);
            let mut found = Vec::new();
            loop {
                match frames.next().await {
                    Ok(frame) => found.push(frame),
                    Err(error) => {
                        let is_end = error.kind() == std::io::ErrorKind::UnexpectedEof;
                        return (found, is_end);
                    }
                }
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in prop::collection::vec(frame(), 0..6)) {
            let bytes = written(&frames);
            prop_assert_eq!(read(&bytes), (frames, true));
        }

        #[test]
        fn what_is_broken_off_is_read_as_far_as_it_goes(
            frames in prop::collection::vec(frame(), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes = written(&frames);
            let (found, is_end) = read(&bytes[..cut.index(bytes.len())]);
            prop_assert!(is_end);
            prop_assert!(frames.starts_with(&found));
            prop_assert!(found.len() < frames.len());
        }

        #[test]
        fn garbage_is_refused_and_does_no_harm(bytes in any::<Vec<u8>>()) {
            read(&bytes);
        }

        #[test]
        fn a_frame_with_a_flipped_bit_is_another_frame_or_none(
            frame in frame(),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut bytes = Vec::new();
            encode(&frame, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            read(&bytes);
        }
    }

    #[test]
    fn a_frame_that_says_it_is_too_long_is_not_waited_for() {
        let mut bytes = u32::MAX.to_le_bytes().to_vec();
        bytes.extend([0; 16]);
        assert_eq!(read(&bytes), (Vec::new(), false));
    }
}
