//! Whether clients were told the truth, whatever went wrong meanwhile.
//!
//! Judged: no acknowledged write is lost; no read is older than what was acknowledged, or read by
//! anybody, before it was asked for; nobody is in a room with another; and fences grow, so that
//! turns are taken in the order of asking. What is bound to a lease is there for as long as the
//! lease was said to last; and what was asked for once is done once, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) const WRITERS: usize = 3;

/// Who is judged for hours begins the story anew; no simulation's is so long.
const STORY_MAX: usize = 16 << 20;

/// A number that is counted up in a key by one writer.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    tried: u64,
    acknowledged: u64,
    revision: i64,
    /// The newest that anybody has seen.
    read: u64,
}

/// Where there is place for one.
#[derive(Clone, Debug, Default)]
struct Room {
    inside: Option<String>,
    fence: i64,
    entries: u64,
}

/// Something that is bound to a lease.
#[derive(Clone, Copy, Debug)]
struct Home {
    /// The lease was said to last at least so long.
    until: Duration,
    /// Somebody was told that it is there.
    is_there: bool,
}

/// Something that is written once, by whom and which; found so often, and where it was made.
pub(crate) type Note = ((usize, u64), i64, i64);

#[derive(Debug, Default)]
struct Seen {
    keys: [Key; WRITERS],
    rooms: BTreeMap<&'static str, Room>,
    /// By lease.
    homes: BTreeMap<i64, Home>,
    /// With the revision, once that was told.
    notes: BTreeMap<(usize, u64), Option<i64>>,
    reads: u64,
    /// How often everybody got what he wanted.
    steps: BTreeMap<String, u64>,
    is_over: bool,
    /// When somebody was last told that a write was made, and the longest time without that.
    last_write: Duration,
    longest_gap: Duration,
    /// All that happened, for people.
    story: String,
}

/// Panics as soon as a promise is broken.
pub(crate) struct Judge {
    seen: Mutex<Seen>,
    now: Box<dyn Fn() -> Duration + Send + Sync>,
}

/// A read that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    writer: usize,
    at_least: u64,
    revision: i64,
}

impl Judge {
    /// Time is needed to tell what happened when, and how long nothing did.
    pub(crate) fn new(
        rooms: &[&'static str],
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let rooms = rooms.iter().map(|room| (*room, Room::default())).collect();
        Self { seen: Mutex::new(Seen { rooms, ..Seen::default() }), now: Box::new(now) }
    }

    /// Whoever was judged guilty has said why: the others are judged all the same.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something that is not judged, and still belongs to the story.
    pub(crate) fn note(&self, what: &str) {
        let now = (self.now)();
        let mut seen = self.seen();
        if STORY_MAX < seen.story.len() {
            seen.story.clear();
        }
        writeln!(seen.story, "{:8.3} {what}", now.as_secs_f64()).expect("a text grows");
    }

    pub(crate) fn story(&self) -> String {
        self.seen().story.clone()
    }

    /// From now on this one is expected to get on.
    pub(crate) fn joins(&self, who: &str) {
        self.seen().steps.entry(who.to_owned()).or_default();
    }

    pub(crate) fn gets_on(&self, who: &str) {
        *self.seen().steps.entry(who.to_owned()).or_default() += 1;
    }

    /// How far everybody is.
    pub(crate) fn steps(&self) -> BTreeMap<String, u64> {
        self.seen().steps.clone()
    }

    /// The next number.
    pub(crate) fn writes(&self, writer: usize) -> u64 {
        let mut seen = self.seen();
        let key = &mut seen.keys[writer];
        key.tried += 1;
        key.tried
    }

    pub(crate) fn acknowledged(&self, writer: usize, number: u64, revision: i64) {
        self.note(&format!("writer {writer}: {number} written at {revision}"));
        let now = (self.now)();
        let mut seen = self.seen();
        let gap = now.saturating_sub(seen.last_write);
        (seen.last_write, seen.longest_gap) = (now, seen.longest_gap.max(gap));
        let key = &mut seen.keys[writer];
        let before = std::mem::replace(&mut key.revision, revision);
        key.acknowledged = number;
        assert!(before < revision, "revisions grow: {before}, then {revision}");
    }

    pub(crate) fn reads(&self, writer: usize) -> Asked {
        let key = self.seen().keys[writer];
        Asked { writer, at_least: key.acknowledged.max(key.read), revision: key.revision }
    }

    pub(crate) fn has_read(&self, asked: Asked, number: u64, found_at: i64) {
        let Asked { writer, at_least, revision } = asked;
        self.note(&format!("{number} of writer {writer} is read, from {found_at}"));
        let mut seen = self.seen();
        seen.reads += 1;
        let key = &mut seen.keys[writer];
        key.read = key.read.max(number);
        let tried = key.tried;
        drop(seen);
        assert!(at_least <= number, "{at_least} of writer {writer} was known, and {number} read");
        assert!(number <= tried, "{number} of writer {writer} was read, and {tried} written");
        assert!(revision <= found_at, "writer {writer} wrote at {revision}, and left {found_at}");
    }

    pub(crate) fn enters(&self, room: &str, who: &str, fence: i64) {
        self.note(&format!("{who} enters the {room} with {fence}"));
        let mut seen = self.seen();
        let place = seen.rooms.get_mut(room).expect("a room that is judged");
        let other = place.inside.replace(who.to_owned());
        let before = std::mem::replace(&mut place.fence, fence);
        drop(seen);
        self.gets_on(who);
        assert_eq!(other, None, "two are in the {room}, {who} the second");
        assert!(before < fence, "fences grow in the {room}: {before}, then {fence}");
    }

    pub(crate) fn leaves(&self, room: &str, who: &str) {
        self.note(&format!("{who} leaves the {room}"));
        let mut seen = self.seen();
        let place = seen.rooms.get_mut(room).expect("a room that is judged");
        place.inside = None;
        place.entries += 1;
    }

    /// A lease was said to last until then, at least.
    pub(crate) fn promises(&self, lease: i64, until: Duration) {
        self.note(&format!("lease {lease:x} lasts until {:.3}", until.as_secs_f64()));
        let mut seen = self.seen();
        let home = seen.homes.entry(lease).or_insert(Home { until, is_there: false });
        home.until = home.until.max(until);
    }

    /// Something is bound to that lease now.
    pub(crate) fn moves_in(&self, lease: i64) {
        if let Some(home) = self.seen().homes.get_mut(&lease) {
            home.is_there = true;
        }
    }

    /// It is not relied upon any more.
    pub(crate) fn moves_out(&self, lease: i64) {
        self.seen().homes.remove(&lease);
    }

    /// All that should be there, unless its lease ends.
    pub(crate) fn homes(&self) -> Vec<i64> {
        let seen = self.seen();
        seen.homes.iter().filter(|(_, home)| home.is_there).map(|(lease, _)| *lease).collect()
    }

    /// Of those that were there when somebody asked, these were found.
    pub(crate) fn finds(&self, asked: &[i64], found: &BTreeSet<i64>) {
        asked.iter().filter(|lease| !found.contains(lease)).for_each(|lease| self.is_gone(*lease));
    }

    /// A lease is over, or so it was said.
    pub(crate) fn is_gone(&self, lease: i64) {
        self.note(&format!("lease {lease:x} is gone"));
        let now = (self.now)();
        let home = self.seen().homes.remove(&lease);
        let left = home.map_or(Duration::ZERO, |home| home.until.saturating_sub(now));
        assert_eq!(left, Duration::ZERO, "lease {lease:x} was to last longer");
    }

    /// Whoever this is writes its next note.
    pub(crate) fn begins_note(&self, writer: usize, number: u64) {
        self.seen().notes.insert((writer, number), None);
    }

    pub(crate) fn noted(&self, writer: usize, number: u64, revision: i64) {
        self.note(&format!("note {number} of {writer} is written at {revision}"));
        self.seen().notes.insert((writer, number), Some(revision));
    }

    /// All of which somebody was told that they are written, and where.
    pub(crate) fn notes(&self) -> BTreeMap<(usize, u64), i64> {
        let seen = self.seen();
        seen.notes.iter().filter_map(|(note, at)| Some((*note, (*at)?))).collect()
    }

    /// When those were known to be written, somebody asked for all, and these were found.
    pub(crate) fn reads_notes(&self, known: &BTreeMap<(usize, u64), i64>, found: &[Note]) {
        for (note, version, _) in found {
            let is_known = self.seen().notes.contains_key(note);
            assert!(is_known, "nobody asked for note {note:?}");
            assert_eq!(*version, 1, "note {note:?} was asked for once");
        }
        let found: BTreeMap<_, _> = found.iter().map(|(note, _, at)| (note, *at)).collect();
        for (note, at) in known {
            assert_eq!(found.get(note), Some(at), "where note {note:?} is");
        }
    }

    pub(crate) fn now(&self) -> Duration {
        (self.now)()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.seen().is_over
    }

    /// Nobody shall begin anything more.
    pub(crate) fn end(&self) {
        self.seen().is_over = true;
    }

    /// How far every writer is, every room, and readers.
    pub(crate) fn progress(&self) -> Vec<u64> {
        let seen = self.seen();
        let writers = seen.keys.iter().map(|key| key.acknowledged);
        let rooms = seen.rooms.values().map(|room| room.entries);
        writers.chain(rooms).chain([seen.reads]).collect()
    }

    /// The longest time in which nobody was told that a write was made; counted anew from here.
    pub(crate) fn longest_gap(&self) -> Duration {
        std::mem::take(&mut self.seen().longest_gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For whom it is always the tenth second.
    fn judge() -> Judge {
        Judge::new(&["room"], || Duration::from_secs(10))
    }

    /// A number that was written at this revision.
    fn write(judge: &Judge, revision: i64) -> u64 {
        let number = judge.writes(0);
        judge.acknowledged(0, number, revision);
        number
    }

    /// Something that is there for as long as a lease lasts.
    fn settle(judge: &Judge, until: u64) {
        judge.promises(7, Duration::from_secs(until));
        judge.moves_in(7);
    }

    #[test]
    fn whoever_tells_the_truth_is_let_go() {
        let judge = judge();
        judge.enters("room", "anna", 1);
        judge.leaves("room", "anna");
        judge.enters("room", "bela", 3);
        judge.leaves("room", "bela");
        let asked = judge.reads(0);
        let number = write(&judge, 4);
        // What is written meanwhile may be read, or not.
        judge.has_read(asked, 0, 0);
        judge.has_read(asked, number, 4);
        judge.has_read(judge.reads(0), number, 4);
        // Nobody knows what became of the second.
        let tried = judge.writes(0);
        judge.has_read(judge.reads(0), tried, 5);
        settle(&judge, 10);
        judge.is_gone(7);
        judge.begins_note(0, 1);
        judge.noted(0, 1, 6);
        judge.begins_note(0, 2);
        let known = judge.notes();
        judge.reads_notes(&known, &[((0, 1), 1, 6), ((0, 2), 1, 7)]);
        assert_eq!(judge.progress(), [1, 0, 0, 2, 4]);
    }

    #[test]
    #[should_panic(expected = "two are in the room, bela the second")]
    fn two_in_a_room_at_once_are_noticed() {
        let judge = judge();
        judge.enters("room", "anna", 1);
        judge.enters("room", "bela", 2);
    }

    #[test]
    #[should_panic(expected = "fences grow in the room: 2, then 2")]
    fn a_fence_that_does_not_grow_is_noticed() {
        let judge = judge();
        judge.enters("room", "anna", 2);
        judge.leaves("room", "anna");
        judge.enters("room", "bela", 2);
    }

    #[test]
    #[should_panic(expected = "1 of writer 0 was known, and 0 read")]
    fn a_read_older_than_what_was_acknowledged_is_noticed() {
        let judge = judge();
        write(&judge, 4);
        judge.has_read(judge.reads(0), 0, 0);
    }

    #[test]
    #[should_panic(expected = "1 of writer 0 was known, and 0 read")]
    fn a_read_older_than_what_was_read_before_is_noticed() {
        let judge = judge();
        let number = judge.writes(0);
        judge.has_read(judge.reads(0), number, 4);
        judge.has_read(judge.reads(0), 0, 0);
    }

    #[test]
    #[should_panic(expected = "2 of writer 0 was read, and 1 written")]
    fn a_number_that_nobody_wrote_is_noticed() {
        let judge = judge();
        write(&judge, 4);
        judge.has_read(judge.reads(0), 2, 5);
    }

    #[test]
    #[should_panic(expected = "writer 0 wrote at 4, and left 3")]
    fn a_number_found_where_it_was_not_written_is_noticed() {
        let judge = judge();
        let number = write(&judge, 4);
        judge.has_read(judge.reads(0), number, 3);
    }

    #[test]
    #[should_panic(expected = "revisions grow: 4, then 4")]
    fn revisions_that_do_not_grow_are_noticed() {
        let judge = judge();
        write(&judge, 4);
        write(&judge, 4);
    }

    #[test]
    #[should_panic(expected = "lease 7 was to last longer")]
    fn a_lease_that_is_gone_too_early_is_noticed() {
        let judge = judge();
        settle(&judge, 11);
        judge.is_gone(7);
    }

    #[test]
    #[should_panic(expected = "lease 7 was to last longer")]
    fn what_is_not_found_while_its_lease_lasts_is_noticed() {
        let judge = judge();
        settle(&judge, 11);
        judge.finds(&judge.homes(), &BTreeSet::new());
    }

    #[test]
    #[should_panic(expected = "note (0, 1) was asked for once")]
    fn a_note_that_was_written_twice_is_noticed() {
        let judge = judge();
        judge.begins_note(0, 1);
        judge.noted(0, 1, 6);
        judge.reads_notes(&judge.notes(), &[((0, 1), 2, 6)]);
    }

    #[test]
    #[should_panic(expected = "nobody asked for note (0, 1)")]
    fn a_note_that_nobody_wrote_is_noticed() {
        judge().reads_notes(&BTreeMap::new(), &[((0, 1), 1, 6)]);
    }

    #[test]
    #[should_panic(expected = "where note (0, 1) is")]
    fn a_note_that_is_lost_is_noticed() {
        let judge = judge();
        judge.begins_note(0, 1);
        judge.noted(0, 1, 6);
        judge.reads_notes(&judge.notes(), &[]);
    }
}
