//! Where connections come from: the system, or whatever a test has in its place.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::either::Either;

/// What a network answers, in its time.
pub type Soon<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

pub trait Net: Debug + Send + Sync {
    /// To a host, by its name or address.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Soon<'a, Socket>;

    /// Takes an address; a port that is 0 is chosen.
    fn listen(&self, address: SocketAddr) -> Soon<'_, Box<dyn Listener>>;
}

/// An address that was taken.
pub trait Listener: Debug + Send + Sync {
    fn address(&self) -> io::Result<SocketAddr>;

    /// The next connection, and where it is from.
    fn accept(&self) -> Soon<'_, (Socket, SocketAddr)>;
}

/// Any connection.
pub trait Wire: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Wire for T {}

/// A bare connection. The system's are known by their type, for speed.
pub type Socket = Either<TcpStream, Box<dyn Wire>>;

pub fn tcp(stream: TcpStream) -> Socket {
    Either::Left(stream)
}

pub fn other(wire: impl Wire + 'static) -> Socket {
    Either::Right(Box::new(wire))
}

/// How long whoever gives up a call remembers it, for an answer that comes late. HTTP/2 goes by the
/// system's clock there, whatever the network: so it is longer than any simulation takes.
pub const FORGET: Duration = Duration::from_mins(1);

/// The system's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Net for System {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Soon<'a, Socket> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(tcp(stream))
        })
    }

    fn listen(&self, address: SocketAddr) -> Soon<'_, Box<dyn Listener>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            Ok(Box::new(listener) as Box<dyn Listener>)
        })
    }
}

impl Listener for TcpListener {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn accept(&self) -> Soon<'_, (Socket, SocketAddr)> {
        Box::pin(async move {
            let (stream, peer) = self.accept().await?;
            // It matters for speed only.
            stream.set_nodelay(true).ok();
            Ok((tcp(stream), peer))
        })
    }
}
