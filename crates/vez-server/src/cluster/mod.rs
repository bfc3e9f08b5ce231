//! Several members that keep one state: how they are reached, what they say, who is asked.
//!
//! **Invariant:** a member listens only to members of its own cluster that mean it.

mod ask;
pub(crate) mod card;
pub(crate) mod gate;
pub(crate) mod ids;
pub(crate) mod leadership;
pub(crate) mod link;
pub(crate) mod progress;
pub(crate) mod rounds;
pub(crate) mod way;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::card::Card;
pub use self::ids::{cluster_id, member_id};

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
        Self { heartbeat: Duration::from_millis(50), election: Duration::from_millis(500) }
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
}

impl Membership {
    /// The first members by number.
    pub(crate) fn members(&self) -> BTreeMap<u64, Card> {
        let member = |(name, urls): (&String, &Vec<String>)| {
            let (name, peer_urls) = (name.clone(), urls.clone());
            (member_id(urls, &self.token), Card { name, peer_urls, client_urls: Vec::new() })
        };
        self.initial.iter().map(member).collect()
    }
}
