//! `vez serve`: the service.

mod cluster;
mod config;
mod notify;
mod pages;
pub(super) mod settings;

use std::future::IntoFuture as _;
use std::io::IsTerminal as _;
use std::num::NonZero;
use std::path::PathBuf;

use axum::Extension;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;
use vez_server::Server;

use self::cluster::Others;
use self::config::Mistakes;
use self::pages::Pages;
use self::settings::{Settings, url};
use super::{Outcome, output};
use crate::dashboard::{self, Token};
use crate::lab::Encrypted;

/// Serve locks, elections, leases and keys: durable, and to every etcd client.
///
/// The first line it prints says where; it is ready then. Ctrl-C or SIGTERM ends it, and what was
/// acknowledged is there when it is started again, however it ended.
///
/// Flags that etcd has are called as in etcd, and so are their environment variables. All of them
/// may be in a file (--config-file), in TOML, without the dashes; what is said on the command line
/// or in the environment counts more.
///
/// Examples:
///   vez serve
///   vez serve --config-file /etc/vez/vez.toml --check-config
///   vez serve --data-dir /var/lib/vez --name alpha
///   vez serve --log-format json 2>> vez.log
///   vez serve --name a --initial-cluster a=http://127.0.0.1:2380,b=…,c=…   (one of three)
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
        value_parser = url,
        default_value = "http://127.0.0.1:2379"
    )]
    listen_client_urls: Vec<Url>,
    /// Where clients are told to come; where they are heard, if not said.
    #[arg(long, env = "ETCD_ADVERTISE_CLIENT_URLS", value_name = "URL", value_delimiter = ',', value_parser = url)]
    advertise_client_urls: Vec<Url>,
    /// Where people find the dashboard and the lab, and machines `/metrics`, `/healthz` and
    /// `/readyz`.
    #[arg(
        long,
        env = "ETCD_LISTEN_METRICS_URLS",
        value_name = "URL",
        value_parser = url,
        default_value = "http://127.0.0.1:2381"
    )]
    listen_metrics_urls: Url,
    /// The certificate shown at https:// URLs; read anew when it changes, as all of these are.
    #[arg(long, env = "ETCD_CERT_FILE", value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// The certificate's key.
    #[arg(long, env = "ETCD_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Who vouches for clients: without a certificate of theirs nobody is let in.
    #[arg(long, env = "ETCD_TRUSTED_CA_FILE", value_name = "FILE")]
    trusted_ca_file: Option<PathBuf>,
    /// Let clients in with a certificate only, which takes --trusted-ca-file, and goes with it.
    #[arg(long, env = "ETCD_CLIENT_CERT_AUTH")]
    client_cert_auth: bool,
    /// Listen beyond this machine although nothing is encrypted and nobody is asked who he is.
    #[arg(long)]
    insecure: bool,
    /// The most clients connected at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_connections: usize,
    /// The most calls under way at a time on one connection; whoever waits for a lock has one.
    #[arg(
        long,
        env = "ETCD_MAX_CONCURRENT_STREAMS",
        value_name = "NUMBER",
        default_value_t = 100_000
    )]
    max_concurrent_streams: u32,
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
    /// Read flags from this file, too.
    #[arg(long, env = "ETCD_CONFIG_FILE", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Say what is wrong with the flags and files, one line each, and do nothing else.
    #[arg(long)]
    check_config: bool,
    /// Last, because the flags after it would stand under its heading.
    #[command(flatten)]
    others: Others,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    /// etcd calls it console.
    #[value(alias = "console")]
    Text,
    Json,
}

impl Serve {
    pub(super) fn run<Args: clap::CommandFactory>(self) -> anyhow::Result<Outcome> {
        let is_check = self.check_config;
        let settled = match &self.config_file {
            Some(path) => config::with_file::<Args>(path),
            None => Ok(self),
        };
        let settled = settled.and_then(|serve| Ok((serve.settings()?, serve)));
        let (settings, serve) = match settled {
            Ok(settled) => settled,
            Err(Mistakes(lines)) => {
                for line in lines {
                    eprintln!("vez: {line}");
                }
                return Ok(Outcome::Exit(2));
            }
        };
        if is_check {
            output::write(None, &format!("OK: {}", settings.summary()))?;
            return Ok(Outcome::Kept);
        }
        serve.log();
        refuse_huge_pages();
        runtime()?.block_on(serve.serve(settings))?;
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

    async fn serve(self, settings: Settings) -> anyhow::Result<()> {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let pages = Pages::open(settings.pages, settings.options.tls.as_ref()).await?;
        let pages_at = pages.url();
        let data_dir = settings.options.data_dir.clone();
        let mut server = tokio::select! {
            server = Server::start(settings.options) => server?,
            _ = interrupted.recv() => return Ok(()),
            _ = terminated.recv() => return Ok(()),
        };
        let token = Token::make(&data_dir)
            .inspect_err(|error| tracing::warn!("nothing can be done on the dashboard: {error}"))
            .ok();
        if let Some(token) = &token {
            let token = token.text();
            eprintln!("vez: to release locks by hand: {pages_at}/#token={token}");
        }
        let clients = server.urls().join(",");
        output::write(None, &format!("clients at {clients}, the dashboard at {pages_at}/"))?;
        eprintln!("vez: data in {}; Ctrl-C ends it", data_dir.display());
        notify::tell(&format!(
            "READY=1
STATUS=clients at {clients}"
        ));
        let mut router = dashboard::router(server.view(), token);
        if settings.pages.tls {
            router = router.layer(Extension(Encrypted));
        }
        let pages = axum::serve(pages, router);
        let pages = tokio::spawn(pages.into_future());
        let is_removed = loop {
            tokio::select! {
                _ = interrupted.recv() => break false,
                _ = terminated.recv() => break false,
                () = server.removed() => break true,
                // What others read anew then, is read here when it changes.
                _ = hung_up.recv() => tracing::info!("certificates are read when they change"),
            }
        };
        notify::tell("STOPPING=1");
        tracing::info!("stopping");
        pages.abort();
        server.stop().await;
        anyhow::ensure!(
            !is_removed,
            "this member has been removed from the cluster; to join it again, remove {} and add it \
             with vez member add",
            data_dir.display()
        );
        Ok(())
    }
}

/// A huge page is made empty when it is first touched, which takes some five milliseconds on a
/// virtual machine, and all wait who wait for the thread that touched it.
fn refuse_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!("there may be huge pages: {error}");
    }
}

/// The log has a thread of its own. Where there are two cores, requests that go from thread to
/// thread wait for each other more than they gain: a third of the pace was lost by it.
fn runtime() -> std::io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut builder = match cores {
        ..=2 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}
