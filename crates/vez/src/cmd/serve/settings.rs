//! What the flags come to, or all that is wrong with them. Nothing is opened here but certificates.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use url::Url;
use vez_server::cluster::Timing;
use vez_server::raft::Keeping;
use vez_server::{Limits, Listen, Options, Site};
use vez_tls::{Acceptor, ServerFiles};

use super::Serve;
use super::config::Mistakes;

pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) pages: Listen,
}

impl Settings {
    pub(super) fn summary(&self) -> String {
        let Options { name, data_dir, listen_client, tls, .. } = &self.options;
        let clients: Vec<_> = listen_client.iter().map(Listen::url).collect();
        let asked = match tls {
            Some(ServerFiles { clients: Some(_), .. }) => ", with certificates only",
            _ => "",
        };
        let data = data_dir.display();
        let members = match &self.options.membership {
            Some(membership) if 1 < membership.initial.len() => {
                format!(", one of {}", membership.initial.len())
            }
            _ => String::new(),
        };
        format!("{name}{members}, data in {data}, clients at {}{asked}", clients.join(","))
    }
}

impl Serve {
    pub(super) fn settings(&self) -> Result<Settings, Mistakes> {
        let mut mistakes = Vec::new();
        let mut listen_client = Vec::new();
        let has_tls = self.cert_file.is_some();
        for url in &self.listen_client_urls {
            match listen(url, &CLIENTS, has_tls, self.insecure) {
                Ok(listen) => listen_client.push(listen),
                Err(why) => mistakes.push(why),
            }
        }
        let pages = listen(&self.listen_metrics_urls, &CLIENTS, has_tls, self.insecure);
        let pages = pages.map_err(|why| mistakes.push(why)).ok();
        let tls = self.tls().unwrap_or_else(|why| {
            mistakes.push(why);
            None
        });
        if tls.is_some() && listen_client.iter().chain(&pages).all(|listen| !listen.tls) {
            mistakes.push(
                "--cert-file: nobody would see it; expected https:// in --listen-client-urls or \
                 --listen-metrics-urls"
                    .to_owned(),
            );
        }
        mistakes.extend(self.numbers());
        let membership = self.others.membership(&self.name, self.insecure);
        let membership = membership.unwrap_or_else(|why| {
            mistakes.extend(why);
            None
        });
        let timing = self.others.timing().map_err(|why| mistakes.push(why)).ok();
        if let Some(path) = self.data_dir.as_ref().filter(|path| path.exists() && !path.is_dir()) {
            mistakes.push(format!("--data-dir: {} is not a directory", path.display()));
        }
        let (Some(pages), Some(timing), true) = (pages, timing, mistakes.is_empty()) else {
            return Err(Mistakes(mistakes));
        };
        let options = Options { membership, timing, ..self.options(listen_client, tls) };
        Ok(Settings { options, pages })
    }

    fn options(&self, listen_client: Vec<Listen>, tls: Option<ServerFiles>) -> Options {
        let data_dir = self.data_dir.clone();
        Options {
            data_dir: data_dir.unwrap_or_else(|| PathBuf::from(format!("{}.vez", self.name))),
            name: self.name.clone(),
            listen_client,
            tls,
            advertise_client: self.advertise_client_urls.iter().map(origin).collect(),
            membership: None,
            timing: Timing::default(),
            limits: Limits {
                request_bytes: self.max_request_bytes,
                leases: self.max_leases,
                watches_per_stream: self.max_watches,
                history: self.history,
                connections: self.max_connections,
                streams_per_connection: self.max_concurrent_streams,
            },
            keeping: Keeping::default(),
            site: Site::default(),
        }
    }

    /// The certificates, if there are any; that they can be used is seen here.
    fn tls(&self) -> Result<Option<ServerFiles>, String> {
        let clients = self.trusted_ca_file.clone();
        if self.client_cert_auth && clients.is_none() {
            return Err("--client-cert-auth: expected --trusted-ca-file, too".to_owned());
        }
        let (certificate, key) = match (self.cert_file.clone(), self.key_file.clone()) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) if clients.is_none() => return Ok(None),
            (None, None) => {
                return Err(
                    "--trusted-ca-file: expected --cert-file and --key-file, too".to_owned()
                );
            }
            _ => return Err("--cert-file and --key-file come together".to_owned()),
        };
        let files = ServerFiles { certificate, key, clients };
        Acceptor::load(files.clone(), &[]).map_err(|error| error.to_string())?;
        Ok(Some(files))
    }

    fn numbers(&self) -> Vec<String> {
        let numbers = [
            ("history", self.history),
            ("max-request-bytes", self.max_request_bytes.try_into().unwrap_or(i64::MAX)),
            ("max-leases", self.max_leases.try_into().unwrap_or(i64::MAX)),
            ("max-watches", self.max_watches.try_into().unwrap_or(i64::MAX)),
            ("max-connections", self.max_connections.try_into().unwrap_or(i64::MAX)),
            ("max-concurrent-streams", self.max_concurrent_streams.into()),
        ];
        let wrong = numbers.into_iter().filter(|(_, number)| *number < 1);
        wrong.map(|(name, found)| format!("--{name}: expected at least 1, found {found}")).collect()
    }
}

/// What makes a door encrypted, in the words of its flags.
pub(super) struct Flags {
    pub(super) all: &'static str,
    pub(super) first: &'static str,
}

const CLIENTS: Flags = Flags { all: "--cert-file and --key-file", first: "--cert-file" };

pub(super) fn listen(
    url: &Url,
    flags: &Flags,
    has_tls: bool,
    insecure: bool,
) -> Result<Listen, String> {
    let tls = match url.scheme() {
        "http" => false,
        "https" if !has_tls => return Err(format!("{url}: expected {} for https://", flags.all)),
        "https" => true,
        other => return Err(format!("{url}: expected http:// or https://, found {other}://")),
    };
    let address = address(url)?;
    if !tls {
        within(url, address, &format!("https:// with {}, ", flags.first), insecure)?;
    }
    Ok(Listen { address, tls })
}

/// Whether only this machine can come there, or everybody may.
fn within(url: &Url, address: SocketAddr, or: &str, insecure: bool) -> Result<(), String> {
    if address.ip().is_loopback() || insecure {
        return Ok(());
    }
    Err(format!(
        "{url}: anybody could come there, unencrypted and unasked; expected {or}an address of this \
         machine only (127.0.0.1), or --insecure"
    ))
}

/// As flags have it.
pub(in crate::cmd) fn url(text: &str) -> Result<Url, String> {
    let expected = |_| "expected http://HOST:PORT or https://HOST:PORT".to_owned();
    text.parse().map_err(expected)
}

/// Where a URL is.
fn address(url: &Url) -> Result<SocketAddr, String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let found = (host, url.port_or_known_default().unwrap_or_default()).to_socket_addrs();
    let found = found.ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("{url}: there is no such address"))
}

/// Clients know addresses without a slash at the end.
pub(in crate::cmd) fn origin(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
