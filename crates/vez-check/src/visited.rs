//! Which worlds have been seen: their fingerprints, eight bytes each, or sixteen if they are wide,
//! in tables that many threads fill at once without locks.
//!
//! **Invariant:** a fingerprint, once in, stays in; of several threads that bring the same one,
//! exactly one is told that it is new.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::Options;

/// What became of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    New,
    /// Known since the layer that is being explored; or longer.
    Fresh,
    Old,
    /// There is no room for it before the tables have grown.
    Full,
}

#[expect(clippy::large_enum_variant, reason = "there is one in a search")]
pub(crate) enum Visited {
    Exact(Tables),
    Bits(Bits),
}

/// Grown one at a time, so that growing never takes much more memory than having grown.
pub(crate) struct Tables {
    shards: Vec<Shard>,
    is_wide: bool,
    fill: Fill,
}

/// How full the tables are. On lines of memory of its own: it is written to now and then, and what
/// else there is to know of the tables is read all the time.
#[repr(align(128))]
#[derive(Default)]
struct Fill {
    count: AtomicUsize,
    crowded: AtomicBool,
}

/// As many fingerprints as the processor fetches at once. To look for one is, nearly always, to
/// fetch one line.
#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; LINE]);

const LINE: usize = 8;

struct Shard {
    lines: Vec<Line>,
    /// The other halves of wide fingerprints; empty if they are not. 0 until it is written, which
    /// is right after its slot was taken.
    seconds: Vec<Line>,
}

const SHARD_BITS: u32 = 6;
const FIRST_LINES: usize = 8;
/// Tables with fewer slots are grown by one thread alone.
const SHARED_SLOTS: usize = 1 << 16;
/// The lowest bit says that the world was found while exploring the current layer.
const FRESH: u64 = 1;
/// And of the other half, that it is there.
const WRITTEN: u64 = 1;

impl Visited {
    pub(crate) fn new(options: &Options) -> Self {
        match options.reductions.bitstate {
            Some(bytes) => Self::bits(bytes),
            None => Self::Exact(Tables::new(options.wide)),
        }
    }

    pub(crate) fn bits(bytes: u64) -> Self {
        Self::Bits(Bits::new(bytes))
    }

    /// `second` is the other half of a wide fingerprint, and of no account otherwise.
    #[inline]
    pub(crate) fn insert(&self, fingerprint: u64, second: u64) -> Seen {
        match self {
            Self::Exact(tables) => tables.insert(fingerprint, second),
            Self::Bits(bits) => bits.insert(fingerprint),
        }
    }

    /// Looks where each of several fingerprints would be. To look at all of them before anything is
    /// made of one lets the processor fetch them at once, instead of waiting for each in turn.
    #[inline]
    pub(crate) fn glance(&self, fingerprints: impl Iterator<Item = u64>) {
        if let Self::Exact(tables) = self {
            let all = fingerprints.fold(0, |all, fingerprint| {
                let key = key(fingerprint);
                let shard = tables.shard(key);
                all ^ shard.lines[shard.line(key)].0[0].load(Ordering::Relaxed)
            });
            std::hint::black_box(all);
        }
    }

    /// Ends a layer: what was fresh no longer is.
    pub(crate) fn age(&self, fingerprint: u64, second: u64) {
        if let Self::Exact(tables) = self {
            tables.age(fingerprint, second);
        }
    }

    /// Takes note that so many were new. Who inserts says so now and then, not every time: else
    /// all would wait for each other here.
    pub(crate) fn note(&self, count: usize) {
        if let Self::Exact(tables) = self {
            let count = tables.fill.count.fetch_add(count, Ordering::Relaxed) + count;
            if 3 * tables.slots() < 4 * count {
                tables.fill.crowded.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn is_crowded(&self) -> bool {
        match self {
            Self::Exact(tables) => tables.fill.crowded.load(Ordering::Relaxed),
            Self::Bits(_) => false,
        }
    }

    pub(crate) fn grow(&mut self, threads: usize) {
        if let Self::Exact(tables) = self {
            tables.grow(threads);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Exact(tables) => {
                let lines = |shard: &Shard| shard.lines.len() + shard.seconds.len();
                (tables.shards.iter().map(lines).sum::<usize>() * size_of::<Line>()) as u64
            }
            Self::Bits(bits) => bits.words.len() as u64 * 8,
        }
    }

    /// The chance that, among this many states with so many faces each, some was taken for another.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn collision_probability(&self, states: u64, faces: u64) -> f64 {
        let states = states as f64;
        match self {
            // The birthday bound: of each half one bit is used otherwise.
            Self::Exact(tables) => {
                let bits = if tables.is_wide { 126 } else { 63 };
                let pairs = states * (states - 1.0) * faces as f64;
                -(-pairs / 2.0_f64.powi(bits + 1)).exp_m1()
            }
            Self::Bits(bits) => 1.0 - (1.0 - bits.fill().powi(3)).powf(states),
        }
    }

    /// The share of states that were probably not taken for another.
    pub(crate) fn coverage(&self) -> Option<f64> {
        match self {
            Self::Exact(_) => None,
            Self::Bits(bits) => Some(1.0 - bits.fill().powi(3)),
        }
    }
}

impl Tables {
    fn new(is_wide: bool) -> Self {
        let shard = |_| Shard {
            lines: empty(FIRST_LINES),
            seconds: empty(if is_wide { FIRST_LINES } else { 0 }),
        };
        let shards = (0..1 << SHARD_BITS).map(shard).collect();
        Self { shards, is_wide, fill: Fill::default() }
    }

    #[inline]
    fn shard(&self, key: u64) -> &Shard {
        &self.shards[(key >> (u64::BITS - SHARD_BITS)) as usize]
    }

    /// All have as many.
    fn slots(&self) -> usize {
        self.shards.len() * self.shards[0].lines.len() * LINE
    }

    #[inline]
    fn insert(&self, fingerprint: u64, second: u64) -> Seen {
        let key = key(fingerprint);
        let shard = self.shard(key);
        let mut number = shard.line(key);
        for _ in 0..shard.lines.len() {
            for (index, slot) in shard.lines[number].0.iter().enumerate() {
                let mut found = slot.load(Ordering::Relaxed);
                if found == 0 {
                    // Relaxed will do: the fingerprint is all that is handed over here.
                    let order = Ordering::Relaxed;
                    match slot.compare_exchange(0, key | FRESH, order, order) {
                        Ok(_) => {
                            if self.is_wide {
                                shard.seconds[number].0[index].store(second | WRITTEN, order);
                            }
                            return Seen::New;
                        }
                        Err(other) => found = other,
                    }
                }
                if found | FRESH == key | FRESH && self.is_second(shard, (number, index), second) {
                    return if found & FRESH == 0 { Seen::Old } else { Seen::Fresh };
                }
            }
            number = shard.after(number);
        }
        self.fill.crowded.store(true, Ordering::Relaxed);
        Seen::Full
    }

    #[inline]
    fn is_second(&self, shard: &Shard, place: (usize, usize), second: u64) -> bool {
        !self.is_wide || shard.second(place) == second | WRITTEN
    }

    fn age(&self, fingerprint: u64, second: u64) {
        let key = key(fingerprint);
        let shard = self.shard(key);
        let mut number = shard.line(key);
        loop {
            for (index, slot) in shard.lines[number].0.iter().enumerate() {
                if slot.load(Ordering::Relaxed) | FRESH == key | FRESH
                    && self.is_second(shard, (number, index), second)
                {
                    return slot.store(key, Ordering::Relaxed);
                }
            }
            number = shard.after(number);
        }
    }

    fn grow(&mut self, threads: usize) {
        let is_shared = 1 < threads && SHARED_SLOTS <= self.slots();
        let each = if is_shared { self.shards.len().div_ceil(threads) } else { self.shards.len() };
        let mut parts = self.shards.chunks_mut(each);
        let first = parts.next().unwrap_or_default();
        thread::scope(|scope| {
            for part in parts {
                scope.spawn(|| part.iter_mut().for_each(Shard::grow));
            }
            first.iter_mut().for_each(Shard::grow);
        });
        self.fill.crowded.store(false, Ordering::Relaxed);
    }
}

impl Shard {
    fn grow(&mut self) {
        let more = self.lines.len() + (self.lines.len() * 3 / 8).max(1);
        let old = std::mem::replace(&mut self.lines, empty(more));
        let more_seconds = empty(if self.seconds.is_empty() { 0 } else { more });
        let old_seconds = std::mem::replace(&mut self.seconds, more_seconds);
        for (number, line) in old.iter().enumerate() {
            for (index, slot) in line.0.iter().enumerate() {
                let value = slot.load(Ordering::Relaxed);
                if value == 0 {
                    continue;
                }
                let free = self.free(value & !FRESH);
                self.lines[free.0].0[free.1].store(value, Ordering::Relaxed);
                if let Some(seconds) = old_seconds.get(number) {
                    let second = seconds.0[index].load(Ordering::Relaxed);
                    self.seconds[free.0].0[free.1].store(second, Ordering::Relaxed);
                }
            }
        }
    }

    /// Where there is room for a key: a line, and a slot in it.
    fn free(&self, key: u64) -> (usize, usize) {
        let mut number = self.line(key);
        loop {
            let line = &self.lines[number].0;
            if let Some(index) = line.iter().position(|slot| slot.load(Ordering::Relaxed) == 0) {
                return (number, index);
            }
            number = self.after(number);
        }
    }

    /// The line to look in when one is full.
    #[inline]
    fn after(&self, number: usize) -> usize {
        if number + 1 == self.lines.len() { 0 } else { number + 1 }
    }

    /// The line where a key is looked for first: its middle bits, scaled to the table.
    #[inline]
    fn line(&self, key: u64) -> usize {
        ((u128::from(key << SHARD_BITS) * self.lines.len() as u128) >> 64) as usize
    }

    /// The other half of what is in a slot.
    fn second(&self, (number, index): (usize, usize)) -> u64 {
        loop {
            match self.seconds[number].0[index].load(Ordering::Relaxed) {
                0 => std::hint::spin_loop(), // Another thread is about to write it.
                second => return second,
            }
        }
    }
}

fn empty(lines: usize) -> Vec<Line> {
    (0..lines).map(|_| Line::default()).collect()
}

/// Never 0, which is an empty slot.
#[inline]
fn key(fingerprint: u64) -> u64 {
    match fingerprint & !FRESH {
        0 => 2,
        key => key,
    }
}

/// Three bits for each state, out of one large field.
pub(crate) struct Bits {
    words: Vec<AtomicU64>,
    ones: AtomicU64,
}

impl Bits {
    fn new(bytes: u64) -> Self {
        let words = (bytes / 8).max(8);
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { words, ones: AtomicU64::new(0) }
    }

    fn insert(&self, fingerprint: u64) -> Seen {
        let mut ones = 0;
        for round in 0..3 {
            let hash = crate::intern::mix(fingerprint ^ round);
            let word = ((u128::from(hash) * self.words.len() as u128) >> 64) as usize;
            let bit = 1 << (hash & 63);
            let before = self.words[word].fetch_or(bit, Ordering::Relaxed);
            ones += u64::from(before & bit == 0);
        }
        self.ones.fetch_add(ones, Ordering::Relaxed);
        if ones == 0 { Seen::Old } else { Seen::New }
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn fill(&self) -> f64 {
        self.ones.load(Ordering::Relaxed) as f64 / (self.words.len() * 64) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, Tables, Visited};
    use crate::intern::mix;

    fn put(visited: &mut Visited, fingerprint: u64, second: u64) {
        loop {
            match visited.insert(fingerprint, second) {
                Seen::Full => visited.grow(2),
                Seen::New => break visited.note(1),
                Seen::Fresh | Seen::Old => break,
            }
        }
        if visited.is_crowded() {
            visited.grow(2);
        }
    }

    #[test]
    fn what_was_inserted_is_found_again_however_often_the_tables_grew() {
        let mut visited = Visited::Exact(Tables::new(false));
        for i in 0..100_000_u64 {
            put(&mut visited, mix(i), 0);
        }
        for i in 0..100_000 {
            assert_eq!(visited.insert(mix(i), 0), Seen::Fresh);
            visited.age(mix(i), 0);
        }
        assert!((0..100_000).all(|i| visited.insert(mix(i), 0) == Seen::Old));
        assert_eq!(visited.insert(mix(100_000), 0), Seen::New);
        assert!(visited.bytes() < 16 * 100_000, "{}", visited.bytes());
    }

    #[test]
    fn many_threads_find_each_new_once() {
        let mut visited = Visited::Exact(Tables::new(false));
        for i in 0..20_000_u64 {
            put(&mut visited, mix(i), 0);
        }
        visited.grow(1);
        let count = |_| {
            let news = (10_000..30_000_u64).filter(|&i| visited.insert(mix(i), 0) == Seen::New);
            news.count()
        };
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || count(i))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Some found the tables full; none was new twice.
        assert!(total <= 10_000);
    }

    #[test]
    fn wide_fingerprints_with_one_half_in_common_are_told_apart() {
        let mut visited = Visited::Exact(Tables::new(true));
        for i in 0..40_000_u64 {
            put(&mut visited, mix(i / 4), mix(i));
        }
        for i in 0..40_000 {
            assert_eq!(visited.insert(mix(i / 4), mix(i)), Seen::Fresh);
            visited.age(mix(i / 4), mix(i));
            assert_eq!(visited.insert(mix(i / 4), mix(i)), Seen::Old);
        }
        let (chance, narrow) = (visited.collision_probability(1 << 30, 1), Tables::new(false));
        assert!(0.0 < chance && chance < 1e-18, "{chance}");
        assert!(1e-2 < Visited::Exact(narrow).collision_probability(1 << 30, 1));
    }

    #[test]
    fn bits_overlook_few_while_few_are_set() {
        let visited = Visited::bits(1 << 16);
        let news = (0..10_000_u64).filter(|&i| visited.insert(mix(i), 0) == Seen::New).count();
        assert!((9_900..=10_000).contains(&news), "{news}");
        assert!(visited.coverage().unwrap() > 0.9);
    }
}
