//! The server as people see it: numbers, history, who holds what; and the one thing they may do.
//!
//! **Invariant:** looking changes nothing, and costs a bounded part of the server's time.

pub(crate) mod calls;
pub(crate) mod chronicle;
pub(crate) mod keep;
pub(crate) mod meter;
mod metrics;
mod queues;
mod samples;
mod text;
mod times;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vez_api::etcdserverpb::Member;
use vez_api::log::{Left, Reason};

pub use self::chronicle::{Happening, Lapse, What, Why};
pub use self::queues::{Line, NAMED, Order, Page, Search, Standing};
pub use self::samples::Sample;
pub use self::text::CONTENT_TYPE;

use self::calls::Calls;
use self::chronicle::Chronicle;
use self::keep::LeaseCounts;
use self::meter::Counter;
use self::queues::Finder;
use self::samples::Samples;
use crate::api::{Service, VERSION};
use crate::door::Doors;
use crate::raft::Health;

/// What people may see of a server; clones are the same.
#[derive(Clone)]
pub struct View(Arc<Inner>);

pub struct Inner {
    pub(crate) service: Service,
    pub(crate) chronicle: Arc<Chronicle>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) samples: Samples,
    pub(crate) leases: Arc<LeaseCounts>,
    doors: Arc<Doors>,
    /// How many leaders were seen.
    pub(crate) leaders: Arc<Counter>,
    finder: Finder,
}

impl std::ops::Deref for View {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// A lease, and what hangs on it.
#[derive(Clone, Debug)]
pub struct LeaseSeen {
    pub id: i64,
    pub ttl: Duration,
    pub left: Duration,
    /// The first of its keys, and how many there are.
    pub key: Option<Bytes>,
    pub keys: usize,
}

/// A member of the cluster.
#[derive(Clone, Debug)]
pub struct MemberSeen {
    pub id: u64,
    pub name: String,
    pub client_urls: Vec<String>,
    pub leads: bool,
    pub is_learner: bool,
    /// What only the member itself knows.
    pub own: Option<OwnSeen>,
}

/// What the member that is asked says of itself.
#[derive(Clone, Debug)]
pub struct OwnSeen {
    pub term: u64,
    pub revision: i64,
    pub keys: usize,
    pub disk_bytes: u64,
    pub version: &'static str,
}

/// What became of a release by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    Done,
    /// It had been given up already, or is another's now.
    Gone,
}

impl View {
    pub(crate) fn new(
        service: Service,
        chronicle: Arc<Chronicle>,
        leases: Arc<LeaseCounts>,
        doors: Arc<Doors>,
    ) -> Self {
        Self(Arc::new(Inner {
            service,
            chronicle,
            leases,
            doors,
            calls: Arc::default(),
            samples: Samples::default(),
            leaders: Arc::default(),
            finder: Finder::default(),
        }))
    }

    /// Why it should not be asked now, if so: in one sentence.
    pub fn trouble(&self) -> Option<String> {
        let replica = &self.service.replica;
        match replica.health() {
            Health::Failed(why) => {
                Some(format!("nothing can be written: {why}; it must be started again"))
            }
            Health::Hangs(so_far) => {
                Some(format!("the disk has not finished a write for {} s", so_far.as_secs()))
            }
            Health::Well if replica.leadership().borrow().leader.is_none() => {
                Some("no leader is known".to_owned())
            }
            Health::Well => None,
        }
    }

    /// Locks or elections, a page at a time; `is_lock` tells them apart by what a holder wrote.
    pub async fn queues(
        &self,
        search: Search,
        offset: usize,
        most: usize,
        is_lock: impl Fn(&[u8]) -> bool,
    ) -> Page {
        let told = (&*self.chronicle, &*self.service.lessor);
        self.finder.page(&self.service.replica, told, search, (offset, most), is_lock).await
    }

    /// Whether the time of leases is counted here, which only the leader does.
    pub fn counts_leases(&self) -> bool {
        self.service.lessor.leads()
    }

    /// How many leases there are, and those that end next, as far as that is known here.
    pub fn ending_leases(&self, most: usize) -> (usize, Vec<LeaseSeen>) {
        let soonest = self.service.lessor.soonest(most);
        self.service.replica.read(|state| {
            let seen = soonest.into_iter().filter_map(|(id, left, ttl)| {
                let lease = state.lease(id)?;
                let key = lease.keys().next().cloned();
                Some(LeaseSeen { id, ttl, left, key, keys: lease.keys().count() })
            });
            (state.leases().len(), seen.collect())
        })
    }

    pub fn members(&self) -> Vec<MemberSeen> {
        let replica = &self.service.replica;
        let leader = replica.leadership().borrow().leader;
        let own = || {
            let (revision, keys) = replica.read(|state| (state.revision(), state.len()));
            let (term, disk_bytes) = (replica.term(), replica.disk_bytes());
            OwnSeen { term, revision, keys, disk_bytes, version: VERSION }
        };
        let seen = |Member { id, name, client_urls, is_learner, .. }| MemberSeen {
            id,
            name,
            client_urls,
            leads: leader == Some(id),
            is_learner,
            own: (id == replica.member_id()).then(own),
        };
        let mut members: Vec<_> = self.service.members().into_iter().map(seen).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        members
    }

    /// Taken, and waited for.
    pub fn standing(&self) -> (u64, u64) {
        self.chronicle.standing()
    }

    pub fn watchers(&self) -> usize {
        self.service.hub.watchers()
    }

    /// A sample a second of the last minutes, oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.all()
    }

    /// What happened after a number, at most so much of the newest, oldest first.
    pub fn history(&self, after: u64, most: usize) -> Vec<Happening> {
        self.chronicle.after(after, most)
    }

    /// Since it was started.
    pub fn uptime(&self) -> Duration {
        self.chronicle.elapsed()
    }

    /// Takes a turn, or a place in a line, away from whoever has it, if it still has the one with
    /// this fence: what is decided late never hits another.
    pub async fn release(&self, key: Bytes, fence: i64) -> Result<Release, String> {
        match self.service.release(&key, fence, Reason::ByHand).await {
            Ok(Left { left: true, .. }) => Ok(Release::Done),
            Ok(_) => Ok(Release::Gone),
            Err(status) => Err(status.message().to_owned()),
        }
    }
}
