//! Where connections come from: the system, or whatever a test has in its place.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

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
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Other(Box<dyn Wire>),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

/// The system's own network.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Net for System {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Soon<'a, Socket> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Socket::Tcp(stream))
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
            Ok((Socket::Tcp(stream), peer))
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Other(wire) => Pin::new(wire).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Other(wire) => Pin::new(wire).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Other(wire) => Pin::new(wire).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Other(wire) => wire.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Other(wire) => Pin::new(wire).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Other(wire) => Pin::new(wire).poll_shutdown(cx),
        }
    }
}
