//! Leases: what was granted, and which keys they take with them. When they end is a matter of
//! clocks, and so of the leader, not of the state.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::error::Error;

/// etcd's, with its default election timeout: a lease must outlive the change of a leader.
pub const TTL_SECONDS_MIN: i64 = 2;

/// etcd's: what fits into its clock.
pub const TTL_SECONDS_MAX: i64 = 9_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: i64,
    /// As granted, which may be more than was asked for. In seconds.
    pub ttl: i64,
    keys: Keys,
}

impl Lease {
    /// In order.
    pub fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.keys.iter()
    }
}

/// A lock's lease has one key, and there may be very many locks: a set for each would be dear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Keys {
    #[default]
    None,
    One(Bytes),
    Many(BTreeSet<Bytes>),
}

impl Keys {
    fn iter(&self) -> impl Iterator<Item = &Bytes> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(key) => (Some(key), None),
            Self::Many(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn insert(&mut self, key: Bytes) {
        match self {
            Self::None => *self = Self::One(key),
            Self::One(one) => *self = Self::Many(BTreeSet::from([std::mem::take(one), key])),
            Self::Many(keys) => {
                keys.insert(key);
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        match self {
            Self::One(one) if one == key => *self = Self::None,
            Self::None | Self::One(_) => {}
            Self::Many(keys) => {
                keys.remove(key);
                if keys.is_empty() {
                    *self = Self::None;
                }
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    by_id: BTreeMap<i64, Lease>,
}

impl Leases {
    pub(super) fn get(&self, id: i64) -> Option<&Lease> {
        self.by_id.get(&id)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Lease> + DoubleEndedIterator {
        self.by_id.values()
    }

    /// Gives the time to live that was granted.
    pub(super) fn grant(&mut self, id: i64, ttl: i64) -> Result<i64, Error> {
        if id == 0 {
            return Err(Error::LeaseNotFound);
        }
        if ttl > TTL_SECONDS_MAX {
            return Err(Error::LeaseTtlTooLarge);
        }
        if self.by_id.contains_key(&id) {
            return Err(Error::LeaseExists);
        }
        let ttl = ttl.max(TTL_SECONDS_MIN);
        self.by_id.insert(id, Lease { id, ttl, keys: Keys::None });
        Ok(ttl)
    }

    /// The lease goes; its keys are the caller's to delete.
    pub(super) fn revoke(&mut self, id: i64) -> Result<Lease, Error> {
        self.by_id.remove(&id).ok_or(Error::LeaseNotFound)
    }

    /// A key leaves one lease for another; 0 is none.
    pub(super) fn move_key(&mut self, key: &Bytes, from: i64, to: i64) {
        if from == to {
            return;
        }
        if let Some(lease) = self.by_id.get_mut(&from) {
            lease.keys.remove(key);
        }
        if let Some(lease) = self.by_id.get_mut(&to) {
            lease.keys.insert(key.clone());
        }
    }
}
