//! As little of gRPC as one call after the other on one connection needs. A whole client took four
//! tenths of the machine that it shares with the servers; what they do with the rest is what is
//! measured, so that all of them are asked by something that costs next to nothing.

use anyhow::{bail, ensure};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
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
/// More than is ever received here.
const WIDE_OPEN: u32 = (1 << 31) - 1 - 65_535;

pub(crate) struct Wire {
    stream: TcpStream,
    authority: String,
    next: u32,
    out: Vec<u8>,
    /// Received, and not looked at before `read`.
    input: Vec<u8>,
    read: usize,
}

impl Wire {
    pub(crate) async fn connect(address: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut out = PREFACE.to_vec();
        frame(SETTINGS, 0, 0, &[], &mut out);
        frame(WINDOW, 0, 0, &WIDE_OPEN.to_be_bytes(), &mut out);
        stream.write_all(&out).await?;
        let authority = address.to_owned();
        Ok(Self { stream, authority, next: 1, out, input: Vec::new(), read: 0 })
    }

    /// Calls a method, and waits for its answer.
    pub(crate) async fn call<A: Message + Default>(
        &mut self,
        path: &str,
        request: &impl Message,
    ) -> anyhow::Result<A> {
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
        let mut message = vec![0];
        message.extend(u32::try_from(request.encoded_len())?.to_be_bytes());
        request.encode(&mut message)?;
        self.out.clear();
        frame(HEADERS, END_HEADERS, id, &headers, &mut self.out);
        frame(DATA, END_STREAM, id, &message, &mut self.out);
        self.stream.write_all(&self.out).await?;
        let answer = self.answer(id).await?;
        ensure!(5 <= answer.len(), "{path} was refused");
        Ok(A::decode(&answer[5..])?)
    }

    /// All data of a stream, until it ends.
    async fn answer(&mut self, id: u32) -> anyhow::Result<Vec<u8>> {
        let mut data = Vec::new();
        loop {
            let (kind, flags, of, payload) = self.frame().await?;
            match kind {
                DATA if of == id => {
                    ensure!(flags & PADDED == 0, "padding is not understood here");
                    data.extend(&payload);
                }
                SETTINGS | PING if flags & ACK == 0 => {
                    self.out.clear();
                    let echo = if kind == PING { &payload[..] } else { &[] };
                    frame(kind, ACK, 0, echo, &mut self.out);
                    self.stream.write_all(&self.out).await?;
                }
                RESET if of == id => bail!("the call was cut off"),
                GOAWAY => bail!("the server hangs up"),
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && of == id && flags & END_STREAM != 0 {
                return Ok(data);
            }
        }
    }

    /// The next frame: kind, flags, stream, payload.
    async fn frame(&mut self) -> anyhow::Result<(u8, u8, u32, Vec<u8>)> {
        loop {
            let rest = &self.input[self.read..];
            if let Some((&[a, b, c, kind, flags, w, x, y, z], body)) =
                rest.split_first_chunk::<HEAD>()
                && let Some(payload) = body.get(..u32::from_be_bytes([0, a, b, c]) as usize)
            {
                let payload = payload.to_vec();
                self.read += HEAD + payload.len();
                return Ok((kind, flags, u32::from_be_bytes([w, x, y, z]), payload));
            }
            self.input.drain(..std::mem::take(&mut self.read));
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
