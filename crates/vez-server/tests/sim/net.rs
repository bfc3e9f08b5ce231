//! The simulated network, for servers and clients.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use turmoil::net::{TcpListener, TcpStream};
use vez_tls::net::{Listener, Net, Socket, Soon, other};

/// More calls than anybody makes in a run who pauses between them: without a pause, time would
/// stand still for ever.
const CALLS_MAX: u32 = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Simulated {
    calls: AtomicU32,
}

impl Net for Simulated {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Soon<'a, Socket> {
        Box::pin(async move {
            if CALLS_MAX < self.calls.fetch_add(1, Ordering::Relaxed) {
                crate::panics::note(format!("{host} is called without a pause"));
                std::future::pending::<()>().await;
            }
            Ok(other(TcpStream::connect((host, port)).await?))
        })
    }

    fn listen(&self, address: SocketAddr) -> Soon<'_, Box<dyn Listener>> {
        Box::pin(async move {
            let listener = TcpListener::bind(address).await?;
            Ok(Box::new(Door(listener)) as Box<dyn Listener>)
        })
    }
}

struct Door(TcpListener);

impl std::fmt::Debug for Door {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Door({:?})", self.0.local_addr())
    }
}

impl Listener for Door {
    fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn accept(&self) -> Soon<'_, (Socket, SocketAddr)> {
        Box::pin(async move {
            let (stream, peer) = self.0.accept().await?;
            Ok((other(stream), peer))
        })
    }
}
