//! The flags of `vez serve` that are about other members.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use vez_server::Listen;
use vez_server::cluster::{Membership, PeerTls, Timing};

use super::settings::{self, Flags, origin, url};

const MEMBERS: Flags = Flags {
    all: "--peer-cert-file, --peer-key-file and --peer-trusted-ca-file",
    first: "--peer-cert-file",
};

#[derive(clap::Args)]
#[command(next_help_heading = "Several servers")]
pub(super) struct Others {
    /// The first members of the cluster, this one among them; all are told the same. Counts only
    /// while there is no data yet.
    #[arg(long, env = "ETCD_INITIAL_CLUSTER", value_name = "NAME=URL", value_delimiter = ',')]
    initial_cluster: Vec<String>,
    /// Whether these members are to become a cluster, or are one already, to which this one was
    /// added (vez member add). Counts only while there is no data yet.
    #[arg(long, env = "ETCD_INITIAL_CLUSTER_STATE", value_enum, default_value = "new")]
    initial_cluster_state: InitialState,
    /// Tells clusters apart that are made of the same addresses.
    #[arg(
        long,
        env = "ETCD_INITIAL_CLUSTER_TOKEN",
        value_name = "TOKEN",
        default_value = "etcd-cluster"
    )]
    initial_cluster_token: String,
    /// Where other members are heard; what --initial-cluster says of this one, if not said.
    #[arg(
        long,
        env = "ETCD_LISTEN_PEER_URLS",
        value_name = "URL",
        value_delimiter = ',',
        value_parser = url,
    )]
    listen_peer_urls: Vec<Url>,
    /// Where other members are told to come; what --initial-cluster says of this one, if not said.
    #[arg(
        long,
        env = "ETCD_INITIAL_ADVERTISE_PEER_URLS",
        value_name = "URL",
        value_delimiter = ',',
        value_parser = url,
    )]
    initial_advertise_peer_urls: Vec<Url>,
    /// How often a leader says that it is there.
    #[arg(
        long,
        env = "ETCD_HEARTBEAT_INTERVAL",
        value_name = "MILLISECONDS",
        default_value_t = 50
    )]
    heartbeat_interval: u64,
    /// Who hears nothing of a leader for this long stands for election, at the latest.
    #[arg(long, env = "ETCD_ELECTION_TIMEOUT", value_name = "MILLISECONDS", default_value_t = 400)]
    election_timeout: u64,
    /// The certificate that this member shows to others, whoever connects to whom.
    #[arg(long, env = "ETCD_PEER_CERT_FILE", value_name = "FILE")]
    peer_cert_file: Option<PathBuf>,
    /// That certificate's key.
    #[arg(long, env = "ETCD_PEER_KEY_FILE", value_name = "FILE")]
    peer_key_file: Option<PathBuf>,
    /// Who vouches for other members: nobody else is let in, and nobody else is believed.
    #[arg(long, env = "ETCD_PEER_TRUSTED_CA_FILE", value_name = "FILE")]
    peer_trusted_ca_file: Option<PathBuf>,
    /// Let members in with a certificate only, which goes with --peer-trusted-ca-file.
    #[arg(long, env = "ETCD_PEER_CLIENT_CERT_AUTH")]
    peer_client_cert_auth: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum InitialState {
    New,
    Existing,
}

impl Others {
    /// Whom this server, called `name`, is with; nobody, if no such flag was given.
    pub(super) fn membership(
        &self,
        name: &str,
        insecure: bool,
    ) -> Result<Option<Membership>, Vec<String>> {
        if self.initial_cluster.is_empty() && self.listen_peer_urls.is_empty() {
            if self.initial_advertise_peer_urls.is_empty() {
                return Ok(None);
            }
            return Err(vec![
                "--initial-advertise-peer-urls: expected --initial-cluster or --listen-peer-urls, \
                 too"
                .to_owned(),
            ]);
        }
        let mut mistakes = Vec::new();
        let tls = self.tls().unwrap_or_else(|why| {
            mistakes.push(why);
            None
        });
        let mut initial = BTreeMap::<String, Vec<String>>::new();
        for member in &self.initial_cluster {
            match parse(member) {
                Ok((name, url)) => initial.entry(name).or_default().push(origin(&url)),
                Err(why) => mistakes.push(why),
            }
        }
        let advertise = match &self.initial_advertise_peer_urls[..] {
            [] => initial
                .get(name)
                .cloned()
                .unwrap_or_else(|| self.listen_peer_urls.iter().map(origin).collect()),
            urls => urls.iter().map(origin).collect(),
        };
        if self.initial_cluster.is_empty() {
            initial.insert(name.to_owned(), advertise.clone());
        }
        mistakes.extend(mismatch(name, &initial, &advertise));
        let mut listen = Vec::new();
        let own: Vec<Url> = advertise.iter().filter_map(|url| url.parse().ok()).collect();
        let wanted = if self.listen_peer_urls.is_empty() { &own } else { &self.listen_peer_urls };
        for url in wanted {
            match settings::listen(url, &MEMBERS, tls.is_some(), insecure) {
                Ok(Listen { tls: false, .. }) if tls.is_some() => mistakes
                    .push(format!("{url}: not encrypted, although there is --peer-cert-file")),
                Ok(door) => listen.push(door),
                Err(why) => mistakes.push(why),
            }
        }
        let encrypted = initial.values().flatten().find(|url| url.starts_with("https://"));
        if let Some(url) = encrypted.filter(|_| tls.is_none() && mistakes.is_empty()) {
            mistakes.push(format!("{url}: expected {} for https://", MEMBERS.all));
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let token = self.initial_cluster_token.clone();
        let is_existing = self.initial_cluster_state == InitialState::Existing;
        Ok(Some(Membership { listen, advertise, token, initial, is_existing, tls }))
    }

    /// The certificates, if there are any; that they can be used is seen here.
    fn tls(&self) -> Result<Option<PeerTls>, String> {
        let files = [&self.peer_cert_file, &self.peer_key_file, &self.peer_trusted_ca_file];
        let [certificate, key, authority] = match files.map(Clone::clone) {
            [None, None, None] if self.peer_client_cert_auth => {
                return Err(format!("--peer-client-cert-auth: expected {}, too", MEMBERS.all));
            }
            [None, None, None] => return Ok(None),
            [Some(certificate), Some(key), Some(authority)] => [certificate, key, authority],
            _ => {
                return Err("--peer-cert-file, --peer-key-file and --peer-trusted-ca-file come \
                            together"
                    .to_owned());
            }
        };
        let tls = PeerTls { certificate, key, authority };
        tls.check().map_err(|error| error.to_string())?;
        Ok(Some(tls))
    }

    pub(super) fn timing(&self) -> Result<Timing, String> {
        let (heartbeat, election) = (self.heartbeat_interval, self.election_timeout);
        if heartbeat < 1 {
            return Err("--heartbeat-interval: expected at least 1, found 0".to_owned());
        }
        if election < heartbeat.saturating_mul(5) {
            return Err(format!(
                "--election-timeout: expected at least five times --heartbeat-interval, which is \
                 {heartbeat}; found {election}"
            ));
        }
        if !(50..=50_000).contains(&election) {
            return Err(format!("--election-timeout: expected 50 to 50000, found {election}"));
        }
        let [heartbeat, election] = [heartbeat, election].map(Duration::from_millis);
        Ok(Timing { heartbeat, election })
    }
}

fn parse(member: &str) -> Result<(String, Url), String> {
    let wrong = || format!("--initial-cluster: expected NAME=http://HOST:PORT, found {member}");
    let (name, url) = member.split_once('=').ok_or_else(wrong)?;
    let url: Url = url.parse().map_err(|_| wrong())?;
    let is_url = matches!(url.scheme(), "http" | "https") && url.port_or_known_default().is_some();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    (is_url && is_name).then(|| (name.to_owned(), url)).ok_or_else(wrong)
}

/// What is wrong with what others are told of this member.
fn mismatch(
    name: &str,
    initial: &BTreeMap<String, Vec<String>>,
    advertise: &[String],
) -> Option<String> {
    let sorted = |urls: &[String]| {
        let mut urls = urls.to_vec();
        urls.sort_unstable();
        urls
    };
    if name.contains(char::is_whitespace) {
        return Some(format!("--name: expected no spaces in a cluster, found {name}"));
    }
    let Some(own) = initial.get(name) else {
        return Some(format!(
            "--initial-cluster: expected this server, which is called {name} (--name), among its \
             members"
        ));
    };
    (sorted(own) != sorted(advertise)).then(|| {
        format!(
            "--initial-advertise-peer-urls: expected what --initial-cluster says of {name}, {}; \
             found {}",
            own.join(","),
            advertise.join(",")
        )
    })
}
