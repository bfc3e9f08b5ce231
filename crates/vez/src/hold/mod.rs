//! What one does with a turn: run a command, and stop it when the turn is over.
//!
//! **Invariant:** whoever's lock is lost is stopped, with all that it started; and if the server
//! merely fell silent, that is over before the lock can pass on.

mod child;
mod holder;
mod signals;
mod teller;
mod turn;

pub(crate) use holder::{Holder, age, who_am_i};
pub(crate) use signals::Signals;
pub(crate) use teller::{Format, Teller, What};
pub(crate) use turn::{End, Guard, Turn, interrupted, until_ended};

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use vez_client::{Client, Identity, Options, SessionOptions, Tls};
use vez_core::Time;

/// One's turn did not come: somebody else has it. As of `sysexits.h`, try again later.
pub(crate) const NOT_GRANTED: u8 = 75;

/// It was one's turn, but the lease was lost, and the command stopped.
pub(crate) const LOST: u8 = 76;

/// The command could not be run, or not be found: as shells have it.
pub(crate) const NOT_RUN: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// The flags that say where the service is.
#[derive(clap::Args)]
pub(crate) struct Endpoints {
    /// Where the service is, vez or etcd: HOST:PORT,… ; if not said, `VEZ_ENDPOINTS`,
    /// `ETCDCTL_ENDPOINTS`, or this machine's port 2379.
    #[arg(long = "endpoints", value_name = "URL,…", value_delimiter = ',')]
    urls: Vec<String>,
    /// Who vouches for the service: an encrypted connection, https://HOST:PORT.
    #[arg(long, env = "ETCDCTL_CACERT", value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// The certificate to show, where one is asked for.
    #[arg(long, env = "ETCDCTL_CERT", value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's key.
    #[arg(long, env = "ETCDCTL_KEY", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl Endpoints {
    fn tls(&self, endpoints: &[String]) -> anyhow::Result<Option<Tls>> {
        let Some(servers) = self.cacert.clone() else {
            let encrypted = endpoints.iter().find(|url| url.starts_with("https://"));
            if let Some(url) = encrypted {
                bail!(
                    "{url}: expected --cacert FILE, who vouches for it; \
                     on most systems everybody known is in /etc/ssl/certs/ca-certificates.crt"
                );
            }
            ensure!(self.cert.is_none(), "--cert: expected --cacert, too");
            return Ok(None);
        };
        let identity = self.cert.clone().zip(self.key.clone());
        let identity = identity.map(|(certificate, key)| Identity { certificate, key });
        Ok(Some(Tls { servers, identity }))
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        let mut endpoints = self.urls.clone();
        for variable in ["VEZ_ENDPOINTS", "ETCDCTL_ENDPOINTS"] {
            let said = std::env::var(variable).unwrap_or_default();
            if endpoints.is_empty() {
                endpoints.extend(said.split(',').filter(|url| !url.is_empty()).map(str::to_owned));
            }
        }
        if endpoints.is_empty() {
            endpoints.push("127.0.0.1:2379".to_owned());
        }
        let tls = self.tls(&endpoints)?;
        Ok(Client::connect(endpoints, Options { tls, ..Options::default() }).await?)
    }
}

/// The flags that say how long a holder may be silent.
#[derive(clap::Args)]
pub(crate) struct Lasting {
    /// How long the lock outlives a holder that fell silent; whole seconds.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    ttl: Time,
    /// How long the command has after SIGTERM before SIGKILL when the lock is lost; it is told
    /// that much earlier when the server is silent. At most half of the TTL [default: a fifth]
    #[arg(long, value_name = "TIME")]
    grace: Option<Time>,
}

impl Lasting {
    /// What lease to take, and how long the command has.
    pub(crate) fn resolve(&self) -> anyhow::Result<(SessionOptions, Duration)> {
        let ttl = duration(self.ttl);
        ensure!(
            ttl >= Duration::from_secs(1) && ttl.subsec_nanos() == 0,
            "--ttl {}: expected whole seconds, at least 1s",
            self.ttl
        );
        let grace = self.grace.map_or(ttl / 5, duration);
        ensure!(
            grace * 2 <= ttl,
            "--grace {}: expected at most half of --ttl {}",
            self.grace.unwrap_or_default(),
            self.ttl
        );
        let clocks = SessionOptions::from(ttl).early;
        Ok((SessionOptions { ttl, early: grace + clocks }, grace))
    }
}

pub(crate) fn duration(time: Time) -> Duration {
    Duration::from_micros(time.as_micros())
}
