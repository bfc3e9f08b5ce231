//! The door at which people and Prometheus come in: plain, or encrypted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use vez_server::Listen;
use vez_tls::{Acceptor, Stream};

/// How long a caller may take to shake hands.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Those who shake hands at a time.
const STRANGERS_MAX: usize = 64;
/// When nobody can be let in (no more files may be open, say), it is tried again after this.
const RETRY: Duration = Duration::from_millis(200);

pub(super) struct Pages {
    callers: mpsc::Receiver<(Stream, SocketAddr)>,
    at: Listen,
}

impl Pages {
    pub(super) async fn open(at: Listen, tls: Option<Acceptor>) -> io::Result<Self> {
        let listener = TcpListener::bind(at.address).await?;
        let at = Listen { address: listener.local_addr()?, ..at };
        let (enter, callers) = mpsc::channel(1);
        tokio::spawn(let_in(listener, tls.map(Arc::new), enter));
        Ok(Self { callers, at })
    }

    pub(super) fn url(&self) -> String {
        self.at.url()
    }
}

async fn let_in(
    listener: TcpListener,
    tls: Option<Arc<Acceptor>>,
    enter: mpsc::Sender<(Stream, SocketAddr)>,
) {
    let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
    while !enter.is_closed() {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let Some(tls) = tls.clone() else {
            // Nobody shows pages any more, if this fails.
            enter.send((Stream::Plain(stream.into()), peer)).await.ok();
            continue;
        };
        // Whoever takes long keeps nobody else waiting, and whoever comes when there are too many
        // tries again.
        let Ok(turn) = Arc::clone(&strangers).try_acquire_owned() else { continue };
        let enter = enter.clone();
        tokio::spawn(async move {
            let accepted = tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream.into())).await;
            drop(turn);
            match accepted {
                Ok(Ok(stream)) => drop(enter.send((stream, peer)).await),
                Ok(Err(error)) => tracing::debug!("no page for {peer}: {error}"),
                Err(_) => tracing::debug!("no page for {peer}: it took too long"),
            }
        });
    }
}

impl axum::serve::Listener for Pages {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        match self.callers.recv().await {
            Some(caller) => caller,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.at.address)
    }
}
