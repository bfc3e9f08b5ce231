//! Who holds what and who waits, as a page shows it: a few of very many.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;
use vez_api::mvccpb::KeyValue;

use super::chronicle::{Chronicle, Lapse, stands_in_queue};
use crate::lessor::Lessor;
use crate::raft::Replica;
use crate::state::State;

/// So many directories are looked at before writers get their turn.
const STRETCH: usize = 500;
/// Of those who wait for one lock, so many are named.
pub const NAMED: usize = 12;
/// Looking takes at most this part of the time: what was found is shown for so much longer than
/// it took to find.
const IDLENESS: u32 = 20;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Part of the name, in lower case.
    pub text: String,
    pub is_lock: bool,
    pub order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those first for which most wait.
    Waiting,
    Name,
}

/// One in a line.
#[derive(Clone, Debug)]
pub struct Standing {
    pub key: Bytes,
    pub value: Bytes,
    pub lease: i64,
    /// What is left of its lease, and of how much.
    pub left: Option<(Duration, Duration)>,
    pub fence: i64,
    /// Since it asked; for the first, since it has its turn.
    pub since: Lapse,
}

/// A lock or an election that somebody has.
#[derive(Clone, Debug)]
pub struct Line {
    pub name: Bytes,
    pub first: Standing,
    /// The first few of those who wait.
    pub waiting: Vec<Standing>,
    pub waiting_total: usize,
}

/// Some of what was found.
#[derive(Clone, Debug)]
pub struct Page {
    pub total: usize,
    pub lines: Vec<Line>,
}

/// A directory that was found, and how many wait in it.
type Found = (Bytes, usize);

struct Kept {
    search: Search,
    found: Vec<Found>,
    until: Instant,
}

/// What was found last, for everybody who looks for the same.
#[derive(Default)]
pub(super) struct Finder([Mutex<Option<Kept>>; 2]);

impl Finder {
    /// `is_lock` tells a lock from an election by what its holder wrote.
    pub(super) async fn page(
        &self,
        replica: &Replica,
        (chronicle, lessor): (&Chronicle, &Lessor),
        search: Search,
        (offset, most): (usize, usize),
        is_lock: impl Fn(&[u8]) -> bool,
    ) -> Page {
        // One at a time: who comes meanwhile gets what was found.
        let mut kept = self.0[usize::from(search.is_lock)].lock().await;
        let now = Instant::now();
        if !kept.as_ref().is_some_and(|kept| kept.search == search && now < kept.until) {
            let found = find(replica, &search, is_lock).await;
            let until = Instant::now() + now.elapsed() * IDLENESS;
            *kept = Some(Kept { search, found, until });
        }
        let found = kept.as_ref().map_or(&[][..], |kept| &kept.found);
        let total = found.len();
        let shown: Vec<Bytes> =
            found.iter().skip(offset).take(most).map(|(directory, _)| directory.clone()).collect();
        drop(kept);
        let lines: Vec<_> = replica.read(|state| {
            shown.iter().filter_map(|directory| line(state, chronicle, directory)).collect()
        });
        let left = |mut line: Line| {
            for standing in std::iter::once(&mut line.first).chain(&mut line.waiting) {
                standing.left = lessor.time_left(standing.lease);
            }
            line
        };
        Page { total, lines: lines.into_iter().map(left).collect() }
    }
}

async fn find(replica: &Replica, search: &Search, is_lock: impl Fn(&[u8]) -> bool) -> Vec<Found> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        after = replica.read(|state| {
            let mut after = after.take();
            for _ in 0..STRETCH {
                let directory = state.directory_after(after.as_ref())?;
                found.extend(look(state, &directory, search, &is_lock));
                after = Some(directory);
            }
            after
        });
        if after.is_none() {
            break;
        }
        tokio::task::yield_now().await;
    }
    if search.order == Order::Waiting {
        // What was found in the order of names stays so among equals.
        found.sort_by_key(|(_, waiting)| std::cmp::Reverse(*waiting));
    }
    found
}

fn look(
    state: &State,
    directory: &Bytes,
    search: &Search,
    is_lock: impl Fn(&[u8]) -> bool,
) -> Option<Found> {
    let mut line = state.line(directory);
    let first = line.next().filter(|first| stands_in_queue(first))?;
    if is_lock(&first.value) != search.is_lock || !is_named(directory, &search.text) {
        return None;
    }
    Some((directory.clone(), line.count()))
}

fn is_named(directory: &Bytes, text: &str) -> bool {
    text.is_empty() || String::from_utf8_lossy(directory).to_lowercase().contains(text)
}

fn line(state: &State, chronicle: &Chronicle, directory: &Bytes) -> Option<Line> {
    let first = state.line(directory).next().filter(|first| stands_in_queue(first))?;
    let named: Vec<&KeyValue> =
        std::iter::once(first).chain(state.line(directory).skip(1).take(NAMED)).collect();
    let lapses = chronicle.since(named.iter().copied());
    let mut all = named.iter().zip(lapses).enumerate().map(|(index, (kv, (asked, held)))| {
        let since = if index == 0 { held } else { asked };
        Standing {
            key: kv.key.clone(),
            value: kv.value.clone(),
            lease: kv.lease,
            left: None,
            fence: kv.create_revision,
            since,
        }
    });
    Some(Line {
        name: directory.slice(..directory.len() - 1),
        first: all.next()?,
        waiting: all.collect(),
        waiting_total: state.line(directory).count() - 1,
    })
}
