//! A connection: what came of it is understood here, and what goes out gathers.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::frame::{self, Frame, HEAD, PREFACE, flag, kind, setting};
use crate::hpack::Decoder;
use crate::reason;
use crate::streams::{Fields, Stream};

/// What a stream, and a connection, may be sent before anybody has said more.
const WINDOW_DEFAULT: u32 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// What a client may send on all streams together that nobody has taken yet.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// What HTTP/2 counts for a field beside its name and its value.
const FIELD_OVERHEAD: usize = 32;
/// The largest payload that any side may ask for.
const PAYLOAD_LIMIT: u32 = (1 << 24) - 1;

/// What a client may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams that are open at a time.
    pub streams: u32,
    /// The fields with which one begins, in bytes.
    pub fields: usize,
}

/// What a client did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Begins {
        id: u32,
        fields: Fields,
        /// That was all it has to say.
        is_all: bool,
    },
    /// More of what it says. So much as `weighs` may come again once it is [taken].
    ///
    /// [taken]: Connection::taken
    Says { id: u32, bytes: Bytes, weighs: u32, is_all: bool },
    /// It does not want an answer any more.
    Cancels { id: u32 },
}

/// The client does not keep to HTTP/2, or to what it was told: nothing more can be heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub reason: u32,
    pub why: &'static str,
}

const fn broken(reason: u32, why: &'static str) -> Broken {
    Broken { reason, why }
}

/// Fields that have not come whole.
#[derive(Debug)]
struct Block {
    id: u32,
    is_all: bool,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not even its first words have come.
    Preface,
    /// Its settings come first.
    Settings,
    Open,
}

#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    stage: Stage,
    /// The beginning of what has not come whole.
    input: Vec<u8>,
    decoder: Decoder,
    block: Option<Block>,
    pub(crate) streams: BTreeMap<u32, Box<Stream>>,
    /// The last stream that the client began.
    last: u32,
    /// Streams after this one are not served any more.
    goodbye: Option<u32>,
    receives: i64,
    owed: u32,
    pub(crate) out: Vec<u8>,
    pub(crate) sends: i64,
    /// What every new stream may be sent.
    stream_sends: i64,
    /// How much waits on all streams for windows to open.
    pub(crate) waits: usize,
    /// Streams that have something to say, and wait for the connection's window.
    pub(crate) queue: VecDeque<u32>,
    /// Where fields are encoded.
    pub(crate) scratch: Vec<u8>,
    /// How many more streams were given up than came to an end.
    given_up: u32,
}

impl Connection {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            stage: Stage::Preface,
            input: Vec::new(),
            decoder: Decoder::new(),
            block: None,
            streams: BTreeMap::new(),
            last: 0,
            goodbye: None,
            receives: CONNECTION_WINDOW.into(),
            owed: 0,
            out: Vec::new(),
            sends: WINDOW_DEFAULT.into(),
            stream_sends: WINDOW_DEFAULT.into(),
            waits: 0,
            queue: VecDeque::new(),
            scratch: Vec::new(),
            given_up: 0,
        }
    }

    /// What is to be sent; whoever sends it takes it away.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// It has not spoken HTTP/2, or not yet.
    pub fn is_silent(&self) -> bool {
        self.stage == Stage::Preface
    }

    /// How many bytes wait for the client to take what it has.
    pub fn waits(&self) -> usize {
        self.waits
    }

    /// Hears what came. After an error nothing more can be heard; what to say of it is in `out`.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Broken> {
        let heard = if self.input.is_empty() {
            self.hear_all(bytes, events).map(|rest| self.input.extend_from_slice(rest))
        } else {
            let mut input = std::mem::take(&mut self.input);
            input.extend_from_slice(bytes);
            self.hear_all(&input, events).map(<[u8]>::len).map(|left| {
                input.drain(..input.len() - left);
                self.input = input;
            })
        };
        if let Err(Broken { reason, why }) = heard {
            self.say_goodbye(self.last, reason, why);
        }
        heard
    }

    /// Says that no further streams are served, and that those under way are.
    pub fn close(&mut self) {
        if self.goodbye.is_none() {
            self.say_goodbye(self.last, reason::NO_ERROR, "");
        }
    }

    /// Asks whether the client still lives.
    pub fn ping(&mut self) {
        frame::put(&mut self.out, kind::PING, 0, 0, &[0; 8]);
    }

    fn say_goodbye(&mut self, last: u32, reason: u32, why: &str) {
        self.goodbye = Some(last);
        let (last, reason) = (last.to_be_bytes(), reason.to_be_bytes());
        let payload = [&last[..], &reason, why.as_bytes()].concat();
        frame::put(&mut self.out, kind::GOAWAY, 0, 0, &payload);
    }

    /// Not before the client has spoken: it may speak something else.
    fn introduce(&mut self) {
        let mut settings = Vec::new();
        frame::put_setting(&mut settings, setting::STREAMS_MAX, self.limits.streams);
        let fields = u32::try_from(self.limits.fields).unwrap_or(u32::MAX);
        frame::put_setting(&mut settings, setting::HEADER_LIST_MAX, fields);
        frame::put(&mut self.out, kind::SETTINGS, 0, 0, &settings);
        let more = CONNECTION_WINDOW - WINDOW_DEFAULT;
        frame::put(&mut self.out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
    }

    /// Hears whole frames, and says what is left.
    fn hear_all<'a>(
        &mut self,
        mut bytes: &'a [u8],
        events: &mut Vec<Event>,
    ) -> Result<&'a [u8], Broken> {
        if self.stage == Stage::Preface {
            let length = bytes.len().min(PREFACE.len());
            if bytes[..length] != PREFACE[..length] {
                return Err(broken(reason::PROTOCOL_ERROR, "this is not HTTP/2"));
            }
            if length < PREFACE.len() {
                return Ok(bytes);
            }
            self.stage = Stage::Settings;
            self.introduce();
            bytes = &bytes[length..];
        }
        loop {
            match Frame::split(bytes) {
                Ok(Some((frame, rest))) => {
                    self.hear(frame, events)?;
                    bytes = rest;
                }
                Ok(None) => return Ok(bytes),
                Err(_) => return Err(broken(reason::FRAME_SIZE_ERROR, "a frame is too long")),
            }
        }
    }

    fn hear(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), Broken> {
        if self.stage == Stage::Settings {
            if frame.kind != kind::SETTINGS || frame.has(flag::ACK) {
                return Err(broken(reason::PROTOCOL_ERROR, "expected settings first"));
            }
            self.stage = Stage::Open;
        }
        if self.block.is_some() != (frame.kind == kind::CONTINUATION) {
            return Err(broken(reason::PROTOCOL_ERROR, "header fields come in one piece"));
        }
        match frame.kind {
            kind::DATA => self.hear_data(frame, events),
            kind::HEADERS => self.hear_headers(frame, events),
            kind::CONTINUATION => self.hear_continuation(frame, events),
            kind::RESET => self.hear_reset(frame, events),
            kind::SETTINGS => self.hear_settings(frame),
            kind::PING => self.hear_ping(frame),
            kind::WINDOW_UPDATE => self.hear_window(frame, events),
            kind::PUSH_PROMISE => Err(broken(reason::PROTOCOL_ERROR, "clients promise nothing")),
            kind::PRIORITY if frame.payload.len() != 5 => {
                Err(broken(reason::FRAME_SIZE_ERROR, "a priority has five bytes"))
            }
            // Who comes first is nobody's wish here, a client that leaves goes by itself, and what
            // is not known is to be ignored.
            _ => Ok(()),
        }
    }

    fn hear_data(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), Broken> {
        self.must_have_begun(frame.id)?;
        let Some(bytes) = frame.unpadded() else {
            return Err(broken(reason::PROTOCOL_ERROR, "there is more padding than payload"));
        };
        let weighs = frame.payload.len() as u32;
        self.receives -= i64::from(weighs);
        if self.receives < 0 {
            return Err(broken(reason::FLOW_CONTROL_ERROR, "more was sent than the window allows"));
        }
        let Some(stream) = self.streams.get_mut(&frame.id) else {
            // It ended meanwhile; what still comes of it is nobody's.
            self.taken(frame.id, weighs);
            return Ok(());
        };
        if stream.is_heard {
            return Err(broken(reason::STREAM_CLOSED, "there is more after the end"));
        }
        stream.receives -= i64::from(weighs);
        if stream.receives < 0 {
            return Err(broken(reason::FLOW_CONTROL_ERROR, "more was sent than the window allows"));
        }
        let is_all = frame.has(flag::END_STREAM);
        stream.is_heard = is_all;
        // An empty frame that does not end anything is no news.
        if !bytes.is_empty() || is_all {
            let bytes = Bytes::copy_from_slice(bytes);
            events.push(Event::Says { id: frame.id, bytes, weighs, is_all });
        } else {
            self.taken(frame.id, weighs);
        }
        Ok(())
    }

    fn hear_headers(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), Broken> {
        if frame.id.is_multiple_of(2) {
            return Err(broken(reason::PROTOCOL_ERROR, "a client's streams have odd numbers"));
        }
        let priority = if frame.has(flag::PRIORITY) { 5 } else { 0 };
        let Some(fragment) = frame.unpadded().and_then(|bytes| bytes.get(priority..)) else {
            return Err(broken(reason::PROTOCOL_ERROR, "there is more padding than payload"));
        };
        let is_all = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return self.hear_fields(frame.id, is_all, fragment, events);
        }
        self.block = Some(Block { id: frame.id, is_all, bytes: fragment.to_vec() });
        Ok(())
    }

    fn hear_continuation(
        &mut self,
        frame: Frame<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        let Some(mut block) = self.block.take().filter(|block| block.id == frame.id) else {
            return Err(broken(reason::PROTOCOL_ERROR, "header fields come in one piece"));
        };
        // Each of them costs a head too, so that empty ones do not go on for ever.
        let most = 2 * self.limits.fields + frame::PAYLOAD_MAX;
        if most < block.bytes.len() + frame.payload.len() + HEAD {
            return Err(broken(reason::ENHANCE_YOUR_CALM, "the header fields are too long"));
        }
        if frame.payload.is_empty() && !frame.has(flag::END_HEADERS) {
            return Err(broken(reason::ENHANCE_YOUR_CALM, "a frame says nothing"));
        }
        block.bytes.extend_from_slice(frame.payload);
        if frame.has(flag::END_HEADERS) {
            return self.hear_fields(block.id, block.is_all, &block.bytes, events);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A whole block of fields: a stream begins, or ends.
    fn hear_fields(
        &mut self,
        id: u32,
        is_all: bool,
        block: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        let (mut fields, mut size) = (Fields::default(), 0);
        let most = self.limits.fields;
        // Also what is not wanted has to be read: it changes what later ones mean.
        let decoded = self.decoder.decode(block, |name, value| {
            size += name.len() + value.len() + FIELD_OVERHEAD;
            if size <= most {
                fields.push(name, value);
            }
        });
        if decoded.is_err() {
            return Err(broken(reason::COMPRESSION_ERROR, "the header fields cannot be read"));
        }
        if id <= self.last {
            return self.hear_trailers(id, is_all, events);
        }
        self.last = id;
        if self.goodbye.is_some_and(|last| last < id) {
            return Ok(());
        }
        if self.limits.streams as usize <= self.streams.len() {
            self.put_reset(id, reason::REFUSED_STREAM);
            return Ok(());
        }
        if most < size {
            self.put_reset(id, reason::ENHANCE_YOUR_CALM);
            return Ok(());
        }
        let stream = Stream::new(is_all, WINDOW_DEFAULT.into(), self.stream_sends);
        self.streams.insert(id, Box::new(stream));
        events.push(Event::Begins { id, fields, is_all });
        Ok(())
    }

    /// What comes after everything else; gRPC's clients have nothing to say there.
    fn hear_trailers(
        &mut self,
        id: u32,
        is_all: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        // It may have ended meanwhile.
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if stream.is_heard || !is_all {
            return Err(broken(reason::PROTOCOL_ERROR, "a stream begins once"));
        }
        stream.is_heard = true;
        events.push(Event::Says { id, bytes: Bytes::new(), weighs: 0, is_all });
        Ok(())
    }

    fn hear_reset(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), Broken> {
        self.must_have_begun(frame.id)?;
        if frame.payload.len() != 4 {
            return Err(broken(reason::FRAME_SIZE_ERROR, "a reset has four bytes"));
        }
        if self.forget(frame.id).is_some() {
            events.push(Event::Cancels { id: frame.id });
            // To begin and give up costs a client nothing, and a server something: whoever does
            // little else is sent away.
            self.given_up += 1;
            if self.limits.streams < self.given_up {
                return Err(broken(reason::ENHANCE_YOUR_CALM, "too many streams were given up"));
            }
        }
        Ok(())
    }

    fn hear_settings(&mut self, frame: Frame<'_>) -> Result<(), Broken> {
        if frame.id != 0 {
            return Err(broken(reason::PROTOCOL_ERROR, "settings are of no stream"));
        }
        if frame.has(flag::ACK) {
            return Ok(());
        }
        let (settings, rest) = frame.payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(broken(reason::FRAME_SIZE_ERROR, "a setting has six bytes"));
        }
        for &[a, b, w, x, y, z] in settings {
            self.set(u16::from_be_bytes([a, b]), u32::from_be_bytes([w, x, y, z]))?;
        }
        frame::put(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(())
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Broken> {
        match name {
            setting::ENABLE_PUSH if 1 < value => {
                Err(broken(reason::PROTOCOL_ERROR, "pushes are on or off"))
            }
            // We never send longer ones than everybody takes: it would gain nothing.
            setting::PAYLOAD_MAX if !(16_384..=PAYLOAD_LIMIT).contains(&value) => {
                Err(broken(reason::PROTOCOL_ERROR, "no frame may be so long"))
            }
            setting::INITIAL_WINDOW => self.set_initial_window(value.into()),
            _ => Ok(()),
        }
    }

    /// It holds for streams that are open too.
    fn set_initial_window(&mut self, window: i64) -> Result<(), Broken> {
        if WINDOW_MAX < window {
            return Err(broken(reason::FLOW_CONTROL_ERROR, "no window is so large"));
        }
        let more = window - self.stream_sends;
        self.stream_sends = window;
        for stream in self.streams.values_mut() {
            stream.sends += more;
            if WINDOW_MAX < stream.sends {
                return Err(broken(reason::FLOW_CONTROL_ERROR, "no window is so large"));
            }
        }
        if 0 < more {
            let ids: Vec<u32> = self.streams.keys().copied().collect();
            for id in ids {
                self.send_waiting(id);
            }
        }
        Ok(())
    }

    fn hear_ping(&mut self, frame: Frame<'_>) -> Result<(), Broken> {
        if frame.id != 0 {
            return Err(broken(reason::PROTOCOL_ERROR, "pings are of no stream"));
        }
        if frame.payload.len() != 8 {
            return Err(broken(reason::FRAME_SIZE_ERROR, "a ping has eight bytes"));
        }
        // An answer is a sign of life, as whatever comes is.
        if !frame.has(flag::ACK) {
            frame::put(&mut self.out, kind::PING, flag::ACK, 0, frame.payload);
        }
        Ok(())
    }

    fn hear_window(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Result<(), Broken> {
        let Ok(more) = <[u8; 4]>::try_from(frame.payload) else {
            return Err(broken(reason::FRAME_SIZE_ERROR, "a window has four bytes"));
        };
        let more = i64::from(u32::from_be_bytes(more) & 0x7fff_ffff);
        if frame.id == 0 {
            self.sends += more;
            if more == 0 || WINDOW_MAX < self.sends {
                return Err(broken(reason::FLOW_CONTROL_ERROR, "no window grows like that"));
            }
            self.send_queued();
            return Ok(());
        }
        self.must_have_begun(frame.id)?;
        let Some(stream) = self.streams.get_mut(&frame.id) else { return Ok(()) };
        stream.sends += more;
        if more == 0 || WINDOW_MAX < stream.sends {
            // Only this stream is lost.
            self.reset(frame.id, reason::FLOW_CONTROL_ERROR);
            events.push(Event::Cancels { id: frame.id });
            return Ok(());
        }
        self.send_waiting(frame.id);
        Ok(())
    }

    fn must_have_begun(&self, id: u32) -> Result<(), Broken> {
        if id == 0 || id.is_multiple_of(2) || self.last < id {
            return Err(broken(reason::PROTOCOL_ERROR, "no such stream has begun"));
        }
        Ok(())
    }

    /// So much of what a stream said is not kept any more: as much may come again.
    pub fn taken(&mut self, id: u32, weighs: u32) {
        self.owed += weighs;
        if CONNECTION_WINDOW / 2 <= self.owed {
            self.receives += i64::from(self.owed);
            let more = std::mem::take(&mut self.owed);
            frame::put(&mut self.out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
        // Who has said all has no use for more.
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.is_heard) else {
            return;
        };
        stream.owed += weighs;
        if WINDOW_DEFAULT / 2 <= stream.owed {
            stream.receives += i64::from(stream.owed);
            let more = std::mem::take(&mut stream.owed);
            frame::put(&mut self.out, kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        }
    }

    /// A stream came to its end.
    pub(crate) fn count_end(&mut self) {
        self.given_up = self.given_up.saturating_sub(1);
    }
}
