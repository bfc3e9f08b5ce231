//! Calls that wait with the same place: a client that asks again, perhaps because its connection
//! broke, finds the place that its lease has already.
//!
//! **Invariant:** whoever goes while others wait with his place leaves it to them; the last to go
//! gives it up, unless one of them was granted it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Who waits here with which place, by its key and its fence.
#[derive(Debug, Default)]
pub(super) struct Sharing(Mutex<BTreeMap<(Bytes, i64), Calls>>);

#[derive(Clone, Copy, Debug)]
struct Calls {
    number: usize,
    /// Of the key, as far as any of them knows.
    version: i64,
    is_kept: bool,
}

impl Sharing {
    /// One more waits with it, for whom the key has this version.
    pub(super) fn join(&self, place: (Bytes, i64), version: i64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = Calls { number: 0, version, is_kept: false };
        let calls = waiting.entry(place).or_insert(calls);
        calls.number += 1;
        calls.version = calls.version.max(version);
    }

    /// Somebody goes, who had joined or not, and keeps the place or not: at which version of its
    /// key it is to be given up, if it is.
    pub(super) fn leave(
        &self,
        place: (Bytes, i64),
        version: i64,
        [had_joined, is_kept]: [bool; 2],
    ) -> Option<i64> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Entry::Occupied(mut entry) = waiting.entry(place) else {
            return (!is_kept).then_some(version);
        };
        let calls = entry.get_mut();
        calls.number -= usize::from(had_joined);
        calls.version = calls.version.max(version);
        calls.is_kept |= is_kept;
        let Calls { number, version, is_kept } = *calls;
        if number == 0 {
            entry.remove();
        }
        (number == 0 && !is_kept).then_some(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOINED: [bool; 2] = [true, false];
    const GRANTED: [bool; 2] = [true, true];
    const NEW: [bool; 2] = [false, false];

    fn place() -> (Bytes, i64) {
        ("door/1".into(), 7)
    }

    #[test]
    fn the_last_to_go_gives_up_what_the_latest_relied_upon() {
        let sharing = Sharing::default();
        for version in [1, 2] {
            sharing.join(place(), version);
        }
        assert_eq!(sharing.leave(place(), 3, NEW), None, "two wait");
        assert_eq!(sharing.leave(place(), 2, JOINED), None, "one waits");
        assert_eq!(sharing.leave(place(), 1, JOINED), Some(3));
        assert_eq!(sharing.leave(place(), 4, NEW), Some(4), "nobody waits");
        assert!(sharing.0.lock().unwrap().is_empty());
    }

    #[test]
    fn what_was_granted_to_one_is_not_given_up_by_another() {
        let sharing = Sharing::default();
        for version in [1, 2] {
            sharing.join(place(), version);
        }
        assert_eq!(sharing.leave(place(), 1, GRANTED), None);
        assert_eq!(sharing.leave(place(), 2, JOINED), None);
        assert!(sharing.0.lock().unwrap().is_empty());
        sharing.join(place(), 3);
        assert_eq!(sharing.leave(place(), 3, JOINED), Some(3), "another time");
    }
}
