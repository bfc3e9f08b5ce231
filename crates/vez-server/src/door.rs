//! Where clients come in: plain or encrypted, so many at a time.
//!
//! **Invariant:** nothing that a caller does, and no lack of anything, closes a door; and a caller
//! who takes long to shake hands keeps nobody else waiting.

use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};
use vez_tls::net::{Listener, Net as _, Socket, System};
use vez_tls::{Acceptor, Stream};

use crate::serve::Listen;
use crate::watched;

/// How long a caller may take to shake hands.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// When nobody can be let in (no more files may be open, say), it is tried again after this.
const RETRY: Duration = Duration::from_millis(200);
/// Callers that are let in and not served yet.
const HALL: usize = 64;
/// Whose failures were logged already; beyond this many, others are only counted.
const NAMED_MAX: usize = 1024;

/// How the doors fare; shared by all of them.
#[derive(Debug)]
pub(crate) struct Doors {
    free: Arc<Semaphore>,
    most: usize,
    refused: AtomicU64,
    handshakes_failed: AtomicU64,
    was_full: AtomicBool,
    named: Mutex<BTreeSet<IpAddr>>,
}

impl Doors {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
            refused: AtomicU64::default(),
            handshakes_failed: AtomicU64::default(),
            was_full: AtomicBool::default(),
            named: Mutex::default(),
        }
    }

    /// How many are connected now.
    pub(crate) fn connections(&self) -> usize {
        self.most - self.free.available_permits()
    }

    /// How many were turned away because there were too many.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How many could not agree with us on certificates, or did not try.
    pub(crate) fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        let is_full = permit.is_none();
        if is_full {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        if is_full && !self.was_full.swap(true, Ordering::Relaxed) {
            tracing::warn!("{} clients are connected, and no more are let in", self.most);
        } else if !is_full {
            self.was_full.store(false, Ordering::Relaxed);
        }
        permit
    }

    /// Counted always, told once of each address.
    fn handshake_failed(&self, peer: SocketAddr, why: &str) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = named.len() < NAMED_MAX && named.insert(peer.ip());
        drop(named);
        if is_news {
            tracing::warn!("no TLS with {peer}: {why} (told once of this address)");
        } else {
            tracing::debug!("no TLS with {peer}: {why}");
        }
    }
}

/// A door for others than clients and members, where callers are let in in the same way.
pub struct Door {
    callers: ReceiverStream<io::Result<Caller>>,
    at: Listen,
    /// It is closed with this.
    _stop: watched::Sender<bool>,
}

impl Door {
    pub async fn open(at: Listen, tls: Option<Acceptor>, most: usize) -> io::Result<Self> {
        let listener = System.listen(at.address).await?;
        let at = Listen { address: listener.address()?, ..at };
        let (stop, stopped) = watched::channel(false);
        let callers = open(listener, tls.map(Arc::new), Arc::new(Doors::new(most)), stopped);
        Ok(Self { callers, at, _stop: stop })
    }

    /// Where it is: a port may have been free to choose.
    pub fn at(&self) -> Listen {
        self.at
    }

    /// Whoever comes in next.
    pub async fn next(&mut self) -> Caller {
        match self.callers.next().await {
            Some(Ok(caller)) => caller,
            _ => std::future::pending().await,
        }
    }
}

/// Lets callers in until the server stops.
pub(crate) fn open(
    listener: Box<dyn Listener>,
    tls: Option<Arc<Acceptor>>,
    doors: Arc<Doors>,
    mut stopped: watched::Receiver<bool>,
) -> ReceiverStream<io::Result<Caller>> {
    let (enter, hall) = mpsc::channel(HALL);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            () = enter.closed() => {}
            () = let_in(&*listener, tls, &doors, &enter) => {}
        }
    });
    ReceiverStream::new(hall)
}

async fn let_in(
    listener: &dyn Listener,
    tls: Option<Arc<Acceptor>>,
    doors: &Arc<Doors>,
    enter: &mpsc::Sender<io::Result<Caller>>,
) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a client cannot be let in: {error}");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let Some(permit) = doors.permit() else { continue };
        let (doors, enter) = (Arc::clone(doors), enter.clone());
        match tls.clone() {
            None => {
                enter.send(Ok(Caller::new(vez_tls::plain(stream), peer, permit))).await.ok();
            }
            Some(tls) => {
                tokio::spawn(async move {
                    if let Some(stream) = shake_hands(&tls, stream, peer, &doors).await {
                        enter.send(Ok(Caller::new(stream, peer, permit))).await.ok();
                    }
                });
            }
        }
    }
}

async fn shake_hands(
    tls: &Acceptor,
    stream: Socket,
    peer: SocketAddr,
    doors: &Doors,
) -> Option<Stream> {
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => doors.handshake_failed(peer, &error.to_string()),
        Err(_) => doors.handshake_failed(peer, "it took too long"),
    }
    None
}

/// A caller's connection; its place is free again when this is dropped.
#[derive(Debug)]
pub struct Caller {
    stream: Stream,
    peer: SocketAddr,
    _permit: OwnedSemaphorePermit,
}

impl Caller {
    fn new(stream: Stream, peer: SocketAddr, permit: OwnedSemaphorePermit) -> Self {
        Self { stream, peer, _permit: permit }
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl Connected for Caller {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        TcpConnectInfo { local_addr: None, remote_addr: Some(self.peer) }
    }
}

impl AsyncRead for Caller {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Caller {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
