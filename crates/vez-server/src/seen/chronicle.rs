//! What became of locks and elections: who got which turn, after how long, and how it ended.
//!
//! All of it is derived here, from what a command changed. A lock is a directory whose first key
//! stands in a queue: its last part is the lease that it is bound to.
//!
//! **Invariant:** memory is bounded whatever the number of locks, and a write that is not about a
//! lock costs two looks at an index at most, and no allocation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;
use vez_api::log::{self, Reason, command::Command};
use vez_api::mvccpb::event::EventType;
use vez_api::mvccpb::{Event, KeyValue};

use super::meter::{Counter, Histogram};
use super::times::Times;
use crate::state::State;

/// So many happenings are remembered.
const REMEMBERED: usize = 1024;
/// Of names and values so much is remembered.
const BYTES_MAX: usize = 256;
/// Of so many that waited for their turn it is known when they got it. Beyond that, who holds is
/// taken to have held since it asked.
const TURNS_MAX: usize = 100_000;

/// How long something took; perhaps longer, if it began before this server did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lapse {
    pub time: Duration,
    pub is_least: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Whoever had it gave it up, or whoever waited went away.
    Asked,
    ByHand,
    /// Its lease ran out.
    Expired,
    /// Its lease was revoked.
    Revoked,
}

impl Why {
    pub const ALL: [Self; 4] = [Self::Asked, Self::ByHand, Self::Expired, Self::Revoked];

    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::ByHand => "by hand",
            Self::Expired => "lease expired",
            Self::Revoked => "lease revoked",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Nobody was ahead.
    Granted,
    /// Whoever was ahead went.
    HandedOver,
    /// A turn was over.
    Ended(Why),
    /// A wait was over without a turn.
    Left(Why),
}

/// Something that happened to a lock or an election.
#[derive(Clone, Debug)]
pub struct Happening {
    /// Counted from 1 since the server began.
    pub number: u64,
    /// Since the server began.
    pub at: Duration,
    pub what: What,
    pub name: Bytes,
    /// What the key's value says of whoever made it.
    pub who: Bytes,
    pub lease: i64,
    pub fence: i64,
    /// How long it had waited, or held.
    pub took: Lapse,
}

/// By whom the keys that a command deleted were taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Client,
    ByHand,
    Expiry,
    Revocation,
}

impl Cause {
    /// The same at every member: the log says it.
    pub(crate) fn of(command: &log::Command) -> Self {
        match (&command.command, command.reason()) {
            (Some(Command::LeaseRevoke(_)), Reason::Expired) => Self::Expiry,
            (Some(Command::LeaseRevoke(_)), _) => Self::Revocation,
            (_, Reason::ByHand) => Self::ByHand,
            _ => Self::Client,
        }
    }

    fn why(self) -> Why {
        match self {
            Self::Client => Why::Asked,
            Self::ByHand => Why::ByHand,
            Self::Expiry => Why::Expired,
            Self::Revocation => Why::Revoked,
        }
    }
}

#[derive(Debug)]
struct Book {
    times: Times,
    /// For those who waited: since which revision it is their turn, by their fence.
    turns: BTreeMap<i64, i64>,
    happenings: VecDeque<Happening>,
    last: u64,
    logged: u64,
    /// Forgotten before they were logged.
    lost: u64,
    held: u64,
    waiting: u64,
}

#[derive(Debug)]
pub(crate) struct Chronicle {
    begun: Instant,
    book: Mutex<Book>,
    /// There is something to log.
    news: Notify,
    pub(crate) grants: Counter,
    pub(crate) hand_overs: Counter,
    /// In the order of [`Why::ALL`].
    pub(crate) ends: [Counter; 4],
    pub(crate) leaves: [Counter; 4],
    pub(crate) waits: Histogram,
    pub(crate) holds: Histogram,
}

impl Chronicle {
    /// Begins with what there is; call before anything is applied that it is not told of.
    pub(crate) fn new(state: &State) -> Self {
        let (held, waiting) = count(state);
        let book = Book {
            times: Times::new(state.revision(), Duration::ZERO),
            turns: BTreeMap::new(),
            happenings: VecDeque::with_capacity(REMEMBERED),
            last: 0,
            logged: 0,
            lost: 0,
            held,
            waiting,
        };
        Self {
            begun: Instant::now(),
            book: Mutex::new(book),
            news: Notify::new(),
            grants: Counter::default(),
            hand_overs: Counter::default(),
            ends: Default::default(),
            leaves: Default::default(),
            waits: Histogram::slow(),
            holds: Histogram::slow(),
        }
    }

    /// Everything became another: only what is now can be known.
    pub(crate) fn begin_anew(&self, state: &State) {
        let (held, waiting) = count(state);
        let mut book = self.book();
        book.times = Times::new(state.revision(), self.begun.elapsed());
        book.turns.clear();
        (book.held, book.waiting) = (held, waiting);
    }

    /// Takes note of what a command did. Call with the state held, in the order of the commands.
    pub(crate) fn note(&self, state: &State, cause: Cause, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let mut book = self.book();
        let now = self.begun.elapsed();
        book.times.mark(state.revision(), now);
        let first_gone = Vec::new();
        let mut scribe =
            Scribe { chronicle: self, book: &mut book, state, events, cause, now, first_gone };
        let deleted = || {
            let gone = events.iter().filter(|event| event.r#type() == EventType::Delete);
            gone.filter_map(|event| event.prev_kv.as_ref()).filter(|kv| kv.key.contains(&b'/'))
        };
        if deleted().nth(1).is_none() {
            deleted().for_each(|kv| scribe.gone(kv, true));
        } else {
            let mut all: Vec<&KeyValue> = deleted().collect();
            all.sort_unstable_by_key(|kv| (directory(kv), kv.create_revision, &kv.key));
            let mut before: Option<&KeyValue> = None;
            for kv in all {
                let is_ahead = before.is_none_or(|before| directory(before) != directory(kv));
                scribe.gone(kv, is_ahead);
                before = Some(kv);
            }
        }
        for event in events.iter().filter(|event| event.r#type() == EventType::Put) {
            if let Some(kv) = event.kv.as_ref().filter(|kv| kv.key.contains(&b'/')) {
                scribe.put(kv, event.prev_kv.as_ref());
            }
        }
    }

    /// How many turns are taken, and how many wait for one.
    pub(crate) fn standing(&self) -> (u64, u64) {
        let book = self.book();
        (book.held, book.waiting)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long ago each of these asked, and how long those who hold have held.
    pub(crate) fn since<'a>(
        &self,
        keys: impl Iterator<Item = &'a KeyValue>,
    ) -> Vec<(Lapse, Lapse)> {
        let book = self.book();
        let now = self.begun.elapsed();
        let lapses = |kv: &KeyValue| {
            (book.since(kv.create_revision, now), book.held_since(kv.create_revision, now))
        };
        keys.map(lapses).collect()
    }

    /// The newest that came after a number, oldest first, at most so many.
    pub(crate) fn after(&self, number: u64, most: usize) -> Vec<Happening> {
        let book = self.book();
        let newest = book.happenings.iter().rev().take(most);
        let mut found: Vec<_> =
            newest.take_while(|happening| number < happening.number).cloned().collect();
        found.reverse();
        found
    }

    /// Waits for what should be logged, and takes it; and how many were forgotten before.
    pub(crate) async fn news(&self) -> (Vec<Happening>, u64) {
        self.news.notified().await;
        let mut book = self.book();
        let logged = book.logged;
        book.logged = book.last;
        let new = book.happenings.iter().filter(|happening| logged < happening.number);
        let new: Vec<_> = new.filter(|happening| happening.is_logged()).cloned().collect();
        (new, std::mem::take(&mut book.lost))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn since(&self, revision: i64, now: Duration) -> Lapse {
        let (at, is_known) = self.times.when(revision);
        Lapse { time: now.saturating_sub(at), is_least: !is_known }
    }

    fn held_since(&self, fence: i64, now: Duration) -> Lapse {
        self.since(self.turns.get(&fence).copied().unwrap_or(fence), now)
    }
}

/// At work on one command.
struct Scribe<'a> {
    chronicle: &'a Chronicle,
    book: &'a mut Book,
    state: &'a State,
    events: &'a [Event],
    cause: Cause,
    now: Duration,
    /// Keys that stood first in their directories and are gone, if more than that changed.
    first_gone: Vec<&'a KeyValue>,
}

impl<'a> Scribe<'a> {
    /// A key is gone; `is_ahead` of all others that went from its directory with it.
    fn gone(&mut self, kv: &'a KeyValue, is_ahead: bool) {
        let next = self.state.first_beside(&kv.key);
        let place = (kv.create_revision, &kv.key);
        let was_first =
            is_ahead && next.is_none_or(|next| place < (next.create_revision, &next.key));
        if stands_in_queue(kv) {
            let why = self.cause.why();
            let took = if was_first {
                self.book.held_since(kv.create_revision, self.now)
            } else {
                self.book.since(kv.create_revision, self.now)
            };
            self.book.turns.remove(&kv.create_revision);
            let chronicle = self.chronicle;
            let index = Why::ALL.iter().position(|other| *other == why).unwrap_or_default();
            if was_first {
                self.book.held = self.book.held.saturating_sub(1);
                chronicle.ends[index].add(1);
                chronicle.holds.observe(took.time);
                self.write(What::Ended(why), kv, took);
            } else {
                self.book.waiting = self.book.waiting.saturating_sub(1);
                chronicle.leaves[index].add(1);
                self.write(What::Left(why), kv, took);
            }
        }
        if was_first && 1 < self.events.len() {
            self.first_gone.push(kv);
        }
        if was_first && let Some(next) = next.filter(|next| self.stood_before(next)) {
            self.hand_over(next);
        }
    }

    /// Whether a key stands in a queue, and did before the command.
    fn stood_before(&self, kv: &KeyValue) -> bool {
        let is_new = kv.create_revision == self.state.revision();
        let is_untouched = kv.mod_revision < self.state.revision();
        let before = || {
            let of_key = |event: &&Event| event.kv.as_ref().is_some_and(|new| new.key == kv.key);
            let event = self.events.iter().find(of_key);
            event.and_then(|event| event.prev_kv.as_ref()).is_some_and(stands_in_queue)
        };
        stands_in_queue(kv) && !is_new && (is_untouched || before())
    }

    fn hand_over(&mut self, next: &KeyValue) {
        let took = self.book.since(next.create_revision, self.now);
        self.book.waiting = self.book.waiting.saturating_sub(1);
        self.book.held += 1;
        if self.book.turns.len() < TURNS_MAX {
            self.book.turns.insert(next.create_revision, self.state.revision());
        }
        self.chronicle.grants.add(1);
        self.chronicle.hand_overs.add(1);
        self.chronicle.waits.observe(took.time);
        self.write(What::HandedOver, next, took);
    }

    fn put(&mut self, kv: &KeyValue, before: Option<&KeyValue>) {
        let (was, is) = (before.is_some_and(stands_in_queue), stands_in_queue(kv));
        let is_new = kv.create_revision == kv.mod_revision;
        if was == is && !is_new || !(was || is) {
            return;
        }
        let first = self.state.first_beside(&kv.key);
        let is_first = first.is_some_and(|first| first.key == kv.key);
        if is_new {
            // One transaction may make a key and delete it.
            if is && self.state.get(&kv.key).is_some() {
                self.stood(kv, is_first);
            }
            return;
        }
        // Bound to another lease, it joined the line where it is, or left it where it was.
        let is_beside = |gone: &&KeyValue| directory(gone) == directory(kv);
        let was_first = is_first && !self.first_gone.iter().any(is_beside);
        let holds = if is { is_first } else { was_first };
        let number = if holds { &mut self.book.held } else { &mut self.book.waiting };
        *number = if is { *number + 1 } else { number.saturating_sub(1) };
    }

    fn stood(&mut self, kv: &KeyValue, is_first: bool) {
        if !is_first {
            self.book.waiting += 1;
            return;
        }
        self.book.held += 1;
        self.chronicle.grants.add(1);
        self.chronicle.waits.observe(Duration::ZERO);
        let took = Lapse { time: Duration::ZERO, is_least: false };
        self.write(What::Granted, kv, took);
    }

    fn write(&mut self, what: What, kv: &KeyValue, took: Lapse) {
        let book = &mut *self.book;
        book.last += 1;
        let happening = Happening {
            number: book.last,
            at: self.now,
            what,
            name: bounded(&kv.key.slice(..directory(kv).len().saturating_sub(1))),
            who: bounded(&kv.value),
            lease: kv.lease,
            fence: kv.create_revision,
            took,
        };
        let is_logged = happening.is_logged();
        if book.happenings.len() == REMEMBERED {
            let oldest = book.happenings.pop_front();
            let is_lost = |oldest: &Happening| book.logged < oldest.number && oldest.is_logged();
            book.lost += u64::from(oldest.as_ref().is_some_and(is_lost));
        }
        book.happenings.push_back(happening);
        if is_logged {
            self.chronicle.news.notify_one();
        }
    }
}

impl Happening {
    /// What nobody did on purpose, and every hand-over, is worth a line; the rest, to who asks.
    fn is_logged(&self) -> bool {
        match self.what {
            What::Granted | What::Ended(Why::Asked) | What::Left(Why::Asked) => {
                tracing::enabled!(tracing::Level::DEBUG)
            }
            _ => tracing::enabled!(tracing::Level::INFO),
        }
    }

    pub(crate) fn log(&self) {
        let lock = self.name.escape_ascii().to_string();
        let who = self.who.escape_ascii().to_string();
        let (lease, fence) = (format!("{:x}", self.lease), self.fence);
        let ms = u64::try_from(self.took.time.as_millis()).unwrap_or(u64::MAX);
        match self.what {
            What::Granted => tracing::debug!(lock, lease, fence, who, "granted"),
            What::HandedOver => {
                tracing::info!(lock, lease, fence, who, waited_ms = ms, "handed over");
            }
            What::Ended(Why::Asked) => {
                tracing::debug!(lock, lease, fence, who, held_ms = ms, "released");
            }
            What::Left(Why::Asked) => {
                tracing::debug!(lock, lease, fence, who, waited_ms = ms, "stopped waiting");
            }
            What::Ended(why) => {
                let why = why.name();
                tracing::info!(lock, lease, fence, who, why, held_ms = ms, "taken away");
            }
            What::Left(why) => {
                let why = why.name();
                tracing::info!(lock, lease, fence, who, why, waited_ms = ms, "lost its place");
            }
        }
    }
}

/// Whether a key stands in a queue: its last part is its own lease in hex.
pub(crate) fn stands_in_queue(kv: &KeyValue) -> bool {
    let directory = directory(kv).len();
    let last = &kv.key[directory..];
    if kv.lease == 0 || directory == 0 || last.is_empty() || 16 < last.len() || last[0] == b'0' {
        return false;
    }
    let digit = |value: u64, byte: &u8| match byte {
        b'0'..=b'9' => Some(value << 4 | u64::from(byte - b'0')),
        b'a'..=b'f' => Some(value << 4 | u64::from(byte - b'a' + 10)),
        _ => None,
    };
    last.iter().try_fold(0, digit) == Some(kv.lease.cast_unsigned())
}

/// All of a key up to and with its last slash.
pub(crate) fn directory(kv: &KeyValue) -> &[u8] {
    let length = kv.key.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    &kv.key[..length]
}

/// Does not hold on to what is large.
fn bounded(bytes: &Bytes) -> Bytes {
    match BYTES_MAX < bytes.len() {
        true => Bytes::copy_from_slice(&bytes[..BYTES_MAX]),
        false => bytes.clone(),
    }
}

/// How many hold, and how many wait.
fn count(state: &State) -> (u64, u64) {
    let (mut held, mut waiting) = (0, 0);
    let mut directory = state.directory_after(None);
    while let Some(found) = directory {
        for (index, kv) in state.line(&found).enumerate() {
            if stands_in_queue(kv) {
                *(if index == 0 { &mut held } else { &mut waiting }) += 1;
            }
        }
        directory = state.directory_after(Some(&found));
    }
    (held, waiting)
}

#[cfg(test)]
mod tests;
