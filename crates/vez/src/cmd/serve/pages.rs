//! The door at which people and Prometheus come in: plain, or encrypted.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use axum::serve::Listener;
use vez_server::{Caller, Door, Listen};
use vez_tls::{Acceptor, ServerFiles};

/// The most browsers and machines at a time.
const CALLERS_MAX: usize = 1_000;

pub(super) struct Pages(Door);

impl Pages {
    /// With the certificates that clients see, where they are encrypted.
    pub(super) async fn open(at: Listen, tls: Option<&ServerFiles>) -> anyhow::Result<Self> {
        let tls = tls.filter(|_| at.tls).cloned();
        let tls = tls.map(|files| Acceptor::load(files, &["http/1.1"])).transpose()?;
        let door = Door::open(at, tls, CALLERS_MAX).await;
        Ok(Self(door.with_context(|| format!("cannot listen at {}", at.url()))?))
    }

    pub(super) fn url(&self) -> String {
        self.0.at().url()
    }
}

impl Listener for Pages {
    type Io = Caller;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Caller, SocketAddr) {
        let caller = self.0.next().await;
        let peer = caller.peer();
        (caller, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.at().address)
    }
}
