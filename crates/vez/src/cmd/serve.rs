//! `vez serve`: the service.

use std::future::IntoFuture as _;
use std::io::IsTerminal as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;
use vez_server::{Limits, Options, Server};

use super::{Outcome, output};
use crate::dashboard::{self, Token};

/// Serve locks, elections, leases and keys: durable, and to every etcd client.
///
/// The first line it prints says where; it is ready then. Ctrl-C or SIGTERM ends it, and what was
/// acknowledged is there when it is started again, however it ended.
///
/// Flags that etcd has are called as in etcd, and so are their environment variables.
///
/// Examples:
///   vez serve
///   vez serve --data-dir /var/lib/vez --name alpha
///   vez serve --log-format json 2>> vez.log
///   curl 127.0.0.1:2381/metrics             (numbers for Prometheus; /readyz says how it is)
///   vez lock backup -- ./backup.sh          (in another terminal)
///   etcdctl lock backup ./backup.sh         (the same lock)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Serve {
    /// What this server is called.
    #[arg(long, env = "ETCD_NAME", default_value = "default")]
    name: String,
    /// Where its data is kept; NAME.vez if not said.
    #[arg(long, env = "ETCD_DATA_DIR", value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// Where clients are heard; port 0 takes any that is free.
    #[arg(
        long,
        env = "ETCD_LISTEN_CLIENT_URLS",
        value_name = "URL",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:2379"
    )]
    listen_client_urls: Vec<Url>,
    /// Where clients are told to come; where they are heard, if not said.
    #[arg(long, env = "ETCD_ADVERTISE_CLIENT_URLS", value_name = "URL", value_delimiter = ',')]
    advertise_client_urls: Vec<Url>,
    /// Where people find the dashboard and the lab, and machines `/metrics`, `/healthz` and
    /// `/readyz`.
    #[arg(
        long,
        env = "ETCD_LISTEN_METRICS_URLS",
        value_name = "URL",
        default_value = "http://127.0.0.1:2381"
    )]
    listen_metrics_urls: Url,
    /// Listen beyond this machine although nothing is encrypted and nobody is asked who he is.
    #[arg(long)]
    insecure: bool,
    /// The largest request that is taken.
    #[arg(long, env = "ETCD_MAX_REQUEST_BYTES", value_name = "BYTES", default_value_t = 1_572_864)]
    max_request_bytes: usize,
    /// The most leases there may be at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    max_leases: usize,
    /// The most watches of one stream.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    max_watches: usize,
    /// So many revisions of the past can be read and watched; older ones are forgotten.
    #[arg(long, value_name = "REVISIONS", default_value_t = 100_000)]
    history: i64,
    /// How much it says of what it does: error, warn, info, debug or trace.
    #[arg(long, env = "ETCD_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
    /// Lines for people, or an object a line for machines.
    #[arg(long, env = "ETCD_LOG_FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    /// etcd calls it console.
    #[value(alias = "console")]
    Text,
    Json,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.log();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve())?;
        Ok(Outcome::Kept)
    }

    /// What we do, as much as was asked for; what the libraries do, only when it goes wrong.
    fn log(&self) {
        let libraries = self.log_level.min(LevelFilter::ERROR);
        let wanted = Targets::new().with_default(libraries).with_target("vez", self.log_level);
        let written = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let written = match self.log_format {
            LogFormat::Text => {
                let ansi = std::io::stderr().is_terminal();
                written.with_ansi(ansi).with_target(false).boxed()
            }
            LogFormat::Json => written.json().flatten_event(true).with_target(false).boxed(),
        };
        tracing_subscriber::registry().with(written.with_filter(wanted)).init();
    }

    async fn serve(self) -> anyhow::Result<()> {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let pages_at = self.address(&self.listen_metrics_urls)?;
        let pages = TcpListener::bind(pages_at)
            .await
            .with_context(|| format!("cannot listen at {}", self.listen_metrics_urls))?;
        let pages_at = pages.local_addr()?;
        let options = self.options()?;
        let data_dir = options.data_dir.clone();
        let server = Server::start(options).await?;
        let token = Token::make(&data_dir)
            .inspect_err(|error| tracing::warn!("nothing can be done on the dashboard: {error}"))
            .ok();
        if let Some(token) = &token {
            let token = token.text();
            eprintln!("vez: to release locks by hand: http://{pages_at}/#token={token}");
        }
        let clients: Vec<String> =
            server.addresses().iter().map(|address| format!("http://{address}")).collect();
        output::write(
            None,
            &format!("clients at {}, the dashboard at http://{pages_at}/", clients.join(",")),
        )?;
        eprintln!("vez: data in {}; Ctrl-C ends it", data_dir.display());
        let pages = axum::serve(pages, dashboard::router(server.view(), token));
        let pages = tokio::spawn(pages.into_future());
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        tracing::info!("stopping");
        pages.abort();
        server.stop().await;
        Ok(())
    }

    fn options(&self) -> anyhow::Result<Options> {
        let listen_client: Vec<SocketAddr> = self
            .listen_client_urls
            .iter()
            .map(|url| self.address(url))
            .collect::<anyhow::Result<_>>()?;
        ensure!(0 < self.history, "--history: expected at least 1, found {}", self.history);
        let data_dir = self.data_dir.clone();
        Ok(Options {
            data_dir: data_dir.unwrap_or_else(|| PathBuf::from(format!("{}.vez", self.name))),
            name: self.name.clone(),
            listen_client,
            advertise_client: self.advertise_client_urls.iter().map(origin).collect(),
            advertise_peer: Vec::new(),
            limits: Limits {
                request_bytes: self.max_request_bytes,
                leases: self.max_leases,
                watches_per_stream: self.max_watches,
                history: self.history,
            },
        })
    }

    /// Where a URL is, if that is allowed.
    fn address(&self, url: &Url) -> anyhow::Result<SocketAddr> {
        if url.scheme() != "http" {
            bail!("{url}: expected http://ADDRESS:PORT, found {}://", url.scheme());
        }
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        let host = host.trim_matches(['[', ']']);
        let mut found = (host, port.unwrap_or_default())
            .to_socket_addrs()
            .with_context(|| format!("{url}: there is no such address"))?;
        let address = found.next().with_context(|| format!("{url}: there is no such address"))?;
        if !address.ip().is_loopback() && !self.insecure {
            bail!(
                "{url}: anybody could come there, unencrypted and unasked; \
                 expected an address of this machine only (127.0.0.1), or --insecure"
            );
        }
        Ok(address)
    }
}

/// Clients know addresses without a slash at the end.
fn origin(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
