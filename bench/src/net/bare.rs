//! What the sockets alone can do: processes that send on what they hear.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::programs::Running;

/// About what a token with its clock takes.
const BYTES: usize = 48;
/// Trips before they count.
const WARM: u64 = 1_000;

/// Messages a second round a ring of `n` processes that send on what they hear, or to and fro
/// between two.
pub(super) fn passes(n: usize, span: Duration) -> anyhow::Result<f64> {
    let mut relays = Vec::new();
    for _ in 1..n {
        let relay = Command::new(std::env::current_exe()?)
            .args(["process", "relay"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        relays.push(Relay(Running(relay)));
    }
    let ports = relays.iter_mut().map(Relay::port).collect::<anyhow::Result<Vec<u16>>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = listener.local_addr()?.port();
        for (place, relay) in relays.iter_mut().enumerate() {
            relay.send_to(ports.get(place + 1).copied().unwrap_or(own))?;
        }
        let mut next = TcpStream::connect(("127.0.0.1", ports[0])).await?;
        next.set_nodelay(true)?;
        let (mut last, _) = listener.accept().await?;
        let mut buffer = [7; BYTES];
        let (mut since, mut trips) = (Instant::now(), 0_u64);
        for trip in 0_u64.. {
            next.write_all(&buffer).await?;
            last.read_exact(&mut buffer).await?;
            if trip == WARM {
                since = Instant::now();
            } else if WARM < trip {
                trips += 1;
                if span <= since.elapsed() {
                    break;
                }
            }
        }
        Ok((n as u64 * trips) as f64 / since.elapsed().as_secs_f64())
    })
}

/// One that sends on; it ends with us.
struct Relay(Running);

impl Relay {
    fn port(&mut self) -> anyhow::Result<u16> {
        let mut port = [0; 2];
        self.0.0.stdout.as_mut().context("its output")?.read_exact(&mut port)?;
        Ok(u16::from_le_bytes(port))
    }

    fn send_to(&mut self, port: u16) -> anyhow::Result<()> {
        Ok(self.0.0.stdin.as_mut().context("its input")?.write_all(&port.to_le_bytes())?)
    }
}

/// The process that sends on.
pub(super) async fn relay() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let own = listener.local_addr()?.port();
    let mut stdout = io::stdout();
    stdout.write_all(&own.to_le_bytes())?;
    stdout.flush()?;
    let mut port = [0; 2];
    io::stdin().read_exact(&mut port)?;
    let mut next = TcpStream::connect(("127.0.0.1", u16::from_le_bytes(port))).await?;
    next.set_nodelay(true)?;
    let (mut last, _) = listener.accept().await?;
    let mut buffer = [0; BYTES];
    // Until nobody sends any more.
    while last.read_exact(&mut buffer).await.is_ok() {
        next.write_all(&buffer).await?;
    }
    Ok(())
}
