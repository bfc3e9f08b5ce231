//! What the sockets alone can do: one process sends, another sends back.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// About what a token with its clock takes.
const BYTES: usize = 48;

/// Messages a second, both ways counted.
pub(super) fn passes(span: Duration) -> anyhow::Result<f64> {
    let mut echo = Command::new(std::env::current_exe()?)
        .args(["process", "echo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut port = [0; 2];
    echo.stdout.take().context("its output")?.read_exact(&mut port)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rate = runtime.block_on(async {
        let mut stream = TcpStream::connect(("127.0.0.1", u16::from_le_bytes(port))).await?;
        stream.set_nodelay(true)?;
        let mut buffer = [7; BYTES];
        for _ in 0..1_000 {
            exchange(&mut stream, &mut buffer).await?;
        }
        let (since, mut trips) = (Instant::now(), 0_u64);
        while since.elapsed() < span {
            exchange(&mut stream, &mut buffer).await?;
            trips += 1;
        }
        io::Result::Ok((2 * trips) as f64 / since.elapsed().as_secs_f64())
    });
    echo.kill()?;
    echo.wait()?;
    Ok(rate?)
}

async fn exchange(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    stream.write_all(buffer).await?;
    stream.read_exact(buffer).await?;
    Ok(())
}

/// The process that sends back.
pub(super) async fn echo() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let mut stdout = io::stdout();
    stdout.write_all(&port.to_le_bytes())?;
    stdout.flush()?;
    let (mut stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let mut buffer = [0; BYTES];
    // Until nobody sends any more.
    while stream.read_exact(&mut buffer).await.is_ok() {
        stream.write_all(&buffer).await?;
    }
    Ok(())
}
