//! As little of gRPC as one call after the other on one connection needs, or one stream. A whole
//! client took four tenths of the machine that it shares with the servers; what they do with the
//! rest is what is measured, so that all of them are asked by something that costs next to nothing.

use std::ops::Range;

use anyhow::{Context as _, bail, ensure};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// What is before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// So much is read at a time.
const ROOM: usize = 16 * 1024;
/// Kinds of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
/// Flags.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// The setting of how much may be sent on a stream that nobody has taken yet.
const INITIAL_WINDOW: u16 = 4;
/// The most that there is.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// What a connection's is at first.
const WINDOW_FIRST: u32 = 65_535;
/// So much that was taken is worth a word.
const TAKEN: u32 = 1 << 30;

pub(crate) struct Wire {
    stream: TcpStream,
    authority: String,
    next: u32,
    /// To be sent.
    out: Vec<u8>,
    /// Received, and not looked at before `read`.
    input: Vec<u8>,
    read: usize,
    /// Data of the stream that is heard, taken since its sender was told.
    taken: u32,
    /// Of its messages, what has come of them; from `told` on not passed on yet.
    messages: Vec<u8>,
    told: usize,
}

/// What a frame is about; its content is where it came in.
struct Frame {
    kind: u8,
    flags: u8,
    id: u32,
    payload: Range<usize>,
}

impl Wire {
    pub(crate) async fn connect(address: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut out = PREFACE.to_vec();
        let setting = [&INITIAL_WINDOW.to_be_bytes()[..], &WINDOW_MAX.to_be_bytes()].concat();
        frame(SETTINGS, 0, 0, &setting, &mut out);
        frame(WINDOW, 0, 0, &(WINDOW_MAX - WINDOW_FIRST).to_be_bytes(), &mut out);
        stream.write_all(&out).await?;
        out.clear();
        let authority = address.to_owned();
        let (input, messages) = (Vec::new(), Vec::new());
        Ok(Self { stream, authority, next: 1, out, input, read: 0, taken: 0, messages, told: 0 })
    }

    /// Calls a method, and waits for its answer.
    pub(crate) async fn call<A: Message + Default>(
        &mut self,
        path: &str,
        request: &impl Message,
    ) -> anyhow::Result<A> {
        let id = self.begin(path)?;
        self.say(id, END_STREAM, request)?;
        self.send().await?;
        self.messages.clear();
        while self.hear(id).await? {}
        let answer = self.messages.get(PREFIX..);
        Ok(A::decode(answer.with_context(|| format!("{path} was refused"))?)?)
    }

    /// Begins a call that goes on, with what is said first; says under which number.
    pub(crate) async fn open(&mut self, path: &str, first: &impl Message) -> anyhow::Result<u32> {
        let id = self.begin(path)?;
        self.tell(id, first).await?;
        Ok(id)
    }

    /// Says more in a call that was opened.
    pub(crate) async fn tell(&mut self, id: u32, message: &impl Message) -> anyhow::Result<()> {
        self.say(id, 0, message)?;
        self.send().await
    }

    /// The next message of a call that was opened, as it came.
    pub(crate) async fn message(&mut self, id: u32) -> anyhow::Result<&[u8]> {
        loop {
            let rest = &self.messages[self.told..];
            if let Some((prefix, body)) = rest.split_first_chunk::<PREFIX>() {
                let [_, length @ ..] = *prefix;
                let length = u32::from_be_bytes(length) as usize;
                if length <= body.len() {
                    let begin = self.told + PREFIX;
                    self.told = begin + length;
                    return Ok(&self.messages[begin..self.told]);
                }
            }
            self.messages.drain(..std::mem::take(&mut self.told));
            ensure!(self.hear(id).await?, "the call ended");
        }
    }

    /// The head of a call, to be sent.
    fn begin(&mut self, path: &str) -> anyhow::Result<u32> {
        let id = self.next;
        self.next += 2;
        // POST, http, and the rest in plain letters: nothing that either side had to remember.
        let mut headers = vec![0x83, 0x86];
        for (name, value) in [
            (&[0x04][..], path),
            (&[0x01], &self.authority),
            (&[0x0f, 0x10], "application/grpc"),
            (b"\x00\x02te", "trailers"),
        ] {
            ensure!(value.len() < 127, "too long for one byte: {value}");
            headers.extend(name);
            headers.push(value.len() as u8);
            headers.extend(value.as_bytes());
        }
        frame(HEADERS, END_HEADERS, id, &headers, &mut self.out);
        Ok(id)
    }

    /// A message, to be sent after what is there.
    fn say(&mut self, id: u32, flags: u8, message: &impl Message) -> anyhow::Result<()> {
        let mut said = vec![0];
        said.extend(u32::try_from(message.encoded_len())?.to_be_bytes());
        message.encode(&mut said)?;
        frame(DATA, flags, id, &said, &mut self.out);
        Ok(())
    }

    async fn send(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        Ok(())
    }

    /// Takes the next frame; says whether the call goes on after it.
    async fn hear(&mut self, id: u32) -> anyhow::Result<bool> {
        let Frame { kind, flags, id: of, payload } = self.frame().await?;
        match kind {
            DATA if of == id => {
                ensure!(flags & PADDED == 0, "padding is not understood here");
                self.taken += u32::try_from(payload.len())?;
                self.messages.extend_from_slice(&self.input[payload]);
                if TAKEN <= self.taken {
                    let more = std::mem::take(&mut self.taken).to_be_bytes();
                    frame(WINDOW, 0, 0, &more, &mut self.out);
                    frame(WINDOW, 0, id, &more, &mut self.out);
                    self.send().await?;
                }
            }
            SETTINGS | PING if flags & ACK == 0 => {
                let echo = if kind == PING { &self.input[payload] } else { &[] };
                frame(kind, ACK, 0, echo, &mut self.out);
                self.send().await?;
            }
            RESET if of == id => bail!("the call was cut off"),
            GOAWAY => bail!("the server hangs up"),
            _ => {}
        }
        Ok(!(matches!(kind, DATA | HEADERS) && of == id && flags & END_STREAM != 0))
    }

    async fn frame(&mut self) -> anyhow::Result<Frame> {
        loop {
            let rest = &self.input[self.read..];
            if let Some((head, body)) = rest.split_first_chunk::<HEAD>() {
                let [high, middle, low, kind, flags, id @ ..] = *head;
                let length = u32::from_be_bytes([0, high, middle, low]) as usize;
                if length <= body.len() {
                    let begin = self.read + HEAD;
                    self.read = begin + length;
                    let id = u32::from_be_bytes(id);
                    return Ok(Frame { kind, flags, id, payload: begin..self.read });
                }
            }
            self.input.drain(..std::mem::take(&mut self.read));
            self.input.reserve(ROOM);
            let length = self.stream.read_buf(&mut self.input).await?;
            ensure!(0 < length, "the server hung up");
        }
    }
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).expect("it is short");
    out.extend(&length.to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(id.to_be_bytes());
    out.extend(payload);
}
