//! Which worlds have been seen: their fingerprints, eight bytes each, or sixteen if they are wide,
//! in tables that many threads fill at once without locks.
//!
//! **Invariant:** a fingerprint, once in, stays in; of several threads that bring the same one,
//! exactly one is told that it is new.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

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

pub(crate) enum Visited {
    Exact(Tables),
    Bits(Bits),
}

/// Grown one at a time, so that growing never takes much more memory than having grown.
pub(crate) struct Tables {
    shards: Vec<Shard>,
    crowded: AtomicBool,
    is_wide: bool,
}

struct Shard {
    slots: Vec<AtomicU64>,
    /// The other halves of wide fingerprints; empty if they are not. 0 until it is written, which
    /// is right after its slot was taken.
    seconds: Vec<AtomicU64>,
    len: AtomicUsize,
}

const SHARDS: usize = 256;
const FIRST_SLOTS: usize = 16;
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
                let shard = &tables.shards[(key >> 56) as usize];
                all ^ shard.slots[shard.start(key)].load(Ordering::Relaxed)
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

    pub(crate) fn is_crowded(&self) -> bool {
        match self {
            Self::Exact(tables) => tables.crowded.load(Ordering::Relaxed),
            Self::Bits(_) => false,
        }
    }

    pub(crate) fn grow(&mut self) {
        if let Self::Exact(tables) = self {
            tables.grow();
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Exact(tables) => {
                let words = |shard: &Shard| shard.slots.len() + shard.seconds.len();
                tables.shards.iter().map(words).sum::<usize>() as u64 * 8
            }
            Self::Bits(bits) => bits.words.len() as u64 * 8,
        }
    }

    /// The chance that, among this many states, some was taken for another.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn collision_probability(&self, states: u64) -> f64 {
        let states = states as f64;
        match self {
            // The birthday bound: of each half one bit is used otherwise.
            Self::Exact(tables) => {
                let bits = if tables.is_wide { 126 } else { 63 };
                -(-states * (states - 1.0) / 2.0_f64.powi(bits + 1)).exp_m1()
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
            slots: empty(FIRST_SLOTS),
            seconds: empty(if is_wide { FIRST_SLOTS } else { 0 }),
            len: AtomicUsize::new(0),
        };
        let shards = (0..SHARDS).map(shard).collect();
        Self { shards, crowded: AtomicBool::new(false), is_wide }
    }

    #[inline]
    fn insert(&self, fingerprint: u64, second: u64) -> Seen {
        let key = key(fingerprint);
        let shard = &self.shards[(key >> 56) as usize];
        let mut slot = shard.start(key);
        for _ in 0..shard.slots.len() {
            let mut found = shard.slots[slot].load(Ordering::Relaxed);
            if found == 0 {
                if shard.is_full() {
                    self.crowded.store(true, Ordering::Relaxed);
                    return Seen::Full;
                }
                // Relaxed will do: the fingerprint is all that is handed over here.
                let claim = shard.slots[slot].compare_exchange(
                    0,
                    key | FRESH,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                match claim {
                    Ok(_) => {
                        shard.len.fetch_add(1, Ordering::Relaxed);
                        if self.is_wide {
                            shard.seconds[slot].store(second | WRITTEN, Ordering::Relaxed);
                        }
                        return Seen::New;
                    }
                    Err(other) => found = other,
                }
            }
            if found & !FRESH == key && (!self.is_wide || shard.second(slot) == second | WRITTEN) {
                return if found & FRESH == 0 { Seen::Old } else { Seen::Fresh };
            }
            slot = if slot + 1 == shard.slots.len() { 0 } else { slot + 1 };
        }
        self.crowded.store(true, Ordering::Relaxed);
        Seen::Full
    }

    fn age(&self, fingerprint: u64, second: u64) {
        let key = key(fingerprint);
        let shard = &self.shards[(key >> 56) as usize];
        let mut slot = shard.start(key);
        while shard.slots[slot].load(Ordering::Relaxed) & !FRESH != key
            || (self.is_wide && shard.second(slot) != second | WRITTEN)
        {
            slot = if slot + 1 == shard.slots.len() { 0 } else { slot + 1 };
        }
        shard.slots[slot].store(key, Ordering::Relaxed);
    }

    fn grow(&mut self) {
        for shard in &mut self.shards {
            if 16 * shard.len.load(Ordering::Relaxed) < 11 * shard.slots.len() {
                continue;
            }
            let more = shard.slots.len() + shard.slots.len() * 3 / 8;
            let old = std::mem::replace(&mut shard.slots, empty(more));
            let more_seconds = empty(if self.is_wide { more } else { 0 });
            let old_seconds = std::mem::replace(&mut shard.seconds, more_seconds);
            for (index, slot) in old.into_iter().enumerate() {
                let value = slot.into_inner();
                if value == 0 {
                    continue;
                }
                let mut place = shard.start(value & !FRESH);
                while *shard.slots[place].get_mut() != 0 {
                    place = if place + 1 == more { 0 } else { place + 1 };
                }
                *shard.slots[place].get_mut() = value;
                if let Some(second) = old_seconds.get(index) {
                    *shard.seconds[place].get_mut() = second.load(Ordering::Relaxed);
                }
            }
        }
        self.crowded.store(false, Ordering::Relaxed);
    }
}

impl Shard {
    /// Where a key is looked for first: its middle bits, scaled to the table.
    #[inline]
    fn start(&self, key: u64) -> usize {
        ((u128::from(key << 8) * self.slots.len() as u128) >> 64) as usize
    }

    /// The other half of what is in a slot.
    fn second(&self, slot: usize) -> u64 {
        loop {
            match self.seconds[slot].load(Ordering::Relaxed) {
                0 => std::hint::spin_loop(), // Another thread is about to write it.
                second => return second,
            }
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        3 * self.slots.len() < 4 * self.len.load(Ordering::Relaxed)
    }
}

fn empty(len: usize) -> Vec<AtomicU64> {
    (0..len).map(|_| AtomicU64::new(0)).collect()
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
        Self { words: empty((bytes / 8).max(8) as usize), ones: AtomicU64::new(0) }
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

    #[test]
    fn what_was_inserted_is_found_again_however_often_the_tables_grew() {
        let mut visited = Visited::Exact(Tables::new(false));
        for i in 0..100_000_u64 {
            while visited.insert(mix(i), 0) == Seen::Full {
                visited.grow();
            }
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
            while visited.insert(mix(i), 0) == Seen::Full {
                visited.grow();
            }
        }
        visited.grow();
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
            while visited.insert(mix(i / 4), mix(i)) == Seen::Full {
                visited.grow();
            }
        }
        for i in 0..40_000 {
            assert_eq!(visited.insert(mix(i / 4), mix(i)), Seen::Fresh);
            visited.age(mix(i / 4), mix(i));
            assert_eq!(visited.insert(mix(i / 4), mix(i)), Seen::Old);
        }
        let (chance, narrow) = (visited.collision_probability(1 << 30), Tables::new(false));
        assert!(0.0 < chance && chance < 1e-18, "{chance}");
        assert!(1e-2 < Visited::Exact(narrow).collision_probability(1 << 30));
    }

    #[test]
    fn bits_overlook_few_while_few_are_set() {
        let visited = Visited::bits(1 << 16);
        let news = (0..10_000_u64).filter(|&i| visited.insert(mix(i), 0) == Seen::New).count();
        assert!((9_900..=10_000).contains(&news), "{news}");
        assert!(visited.coverage().unwrap() > 0.9);
    }
}
