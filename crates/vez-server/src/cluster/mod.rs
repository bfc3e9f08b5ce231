//! Several members that keep one state: how they are reached, what they say, who is asked.
//!
//! **Invariant:** a member listens only to members of its own cluster that mean it.

mod ask;
pub(crate) mod card;
pub(crate) mod gate;
pub(crate) mod handover;
pub(crate) mod ids;
pub(crate) mod leadership;
pub(crate) mod link;
mod members;
mod passing;
pub(crate) mod progress;
pub(crate) mod reception;
pub(crate) mod rounds;
pub(crate) mod way;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use vez_tls::{Acceptor, ClientFiles, Connector, Identity, ServerFiles};

pub use self::card::Card;
pub use self::ids::{cluster_id, member_id};
pub(crate) use self::members::Changed;

use crate::serve::Listen;

/// How soon a leader is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often a leader says that it is there.
    pub heartbeat: Duration,
    /// Who hears nothing of a leader for this long stands for election, at the latest.
    pub election: Duration,
}

impl Default for Timing {
    /// For members that are in one data centre.
    fn default() -> Self {
        Self { heartbeat: Duration::from_millis(50), election: Duration::from_millis(400) }
    }
}

/// The cluster that a server belongs to, and where other members find it.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Where this member is heard, and where others are told to come.
    pub listen: Vec<Listen>,
    pub advertise: Vec<String>,
    /// Tells clusters apart that are made of the same addresses.
    pub token: String,
    /// The first members by name, with their URLs; this one is among them.
    pub initial: BTreeMap<String, Vec<String>>,
    /// They are a cluster already, to which this one was added.
    pub is_existing: bool,
    /// Needed at `https://` addresses.
    pub tls: Option<PeerTls>,
}

/// What members show each other, and who vouches for them: each to each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTls {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub authority: PathBuf,
}

impl PeerTls {
    /// Whether the files can be used.
    pub fn check(&self) -> Result<(), vez_tls::Error> {
        self.acceptor()?;
        self.connector().map(|_| ())
    }

    pub(crate) fn acceptor(&self) -> Result<Acceptor, vez_tls::Error> {
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        let clients = Some(self.authority.clone());
        Acceptor::load(ServerFiles { certificate, key, clients }, &["h2"])
    }

    pub(crate) fn connector(&self) -> Result<Connector, vez_tls::Error> {
        let (certificate, key) = (self.certificate.clone(), self.key.clone());
        let identity = Some(Identity { certificate, key });
        Connector::load(ClientFiles { servers: self.authority.clone(), identity }, &["h2"])
    }
}

impl Membership {
    /// The first members by number; none, if they are a cluster already.
    pub(crate) fn members(&self) -> BTreeMap<u64, Card> {
        if self.is_existing {
            return BTreeMap::new();
        }
        let member = |(name, urls): (&String, &Vec<String>)| {
            let (name, peer_urls) = (name.clone(), urls.clone());
            (member_id(urls, &self.token), Card { name, peer_urls, ..Card::default() })
        };
        self.initial.iter().map(member).collect()
    }
}
