//! What happens when: a priority queue for moments that only move forward.
//!
//! A hierarchical wheel: eleven levels of 64 slots, each slot a bucket, each level's occupied
//! slots a bitmap. An item goes where its moment first differs from the present, so pushing is a
//! few shifts and the earliest slot two bit scans. All items of one instant that were pushed into
//! an otherwise empty slot move as one bucket, which is every item when delays are fixed.
//!
//! Within an instant, items come out by `(key, seq)`. A bucket that is in that order, or is the
//! rotation of one (a ring makes those), is walked as it lies. Any other is split by key, and each
//! part again when its turn comes, until it is small enough to sort.
//!
//! Buckets are made of chunks, which are used again as soon as they have been walked: a million
//! messages in flight take the memory of a million, and once warm nothing is allocated.

mod bucket;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem;

use vez_core::Time;

pub use bucket::Item;
use bucket::{Bucket, Chunk};

const DIGIT: u32 = 6;
const SLOTS: usize = 1 << DIGIT;
const LEVELS: usize = 64_usize.div_ceil(DIGIT as usize);

/// A bucket is split into up to 2 to this many parts: as many as can be written to at once without
/// falling out of the cache.
const SPLIT: u32 = 8;

/// How far [`Queue::ahead`] looks: about as many reads as a processor keeps under way at once.
const AHEAD: usize = 16;

#[derive(Debug)]
pub struct Queue<T> {
    /// The instant under way. Everything in the wheel is later.
    now: u64,
    /// What comes next of it, the first at the end; then the buckets of `rest`, from the last to
    /// the first, none of them empty.
    current: Chunk<T>,
    rest: Vec<Bucket<T>>,
    /// What was pushed for this instant while it was under way.
    late: BinaryHeap<Late<T>>,
    /// The earliest instant in the wheel, so that asking for it costs nothing.
    next: u64,
    /// The levels with an occupied slot, and the occupied slots of each.
    levels: u32,
    occupied: [u64; LEVELS],
    /// Those of all levels, up to the last that was ever used.
    slots: Vec<Slot<T>>,
    /// Where the last item went, if all there are due at one instant: the next is likely to
    /// follow it. Nothing there is due now, so `now` says that there is no such slot.
    open: usize,
    open_at: u64,
    /// Empty ones that keep their memory.
    spare: Vec<Bucket<T>>,
    chunks: Vec<Chunk<T>>,
    len: usize,
}

#[derive(Debug)]
struct Slot<T> {
    bucket: Bucket<T>,
    earliest: u64,
    /// When each item is due; empty while all are due at `earliest`.
    moments: Vec<u64>,
}

/// A heap gives its largest first: the largest is the one that comes out first.
#[derive(Debug)]
struct Late<T>(Item<T>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            now: 0,
            current: Vec::new(),
            rest: Vec::new(),
            late: BinaryHeap::new(),
            next: u64::MAX,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Vec::new(),
            open: 0,
            open_at: 0,
            spare: Vec::new(),
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Queue<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let buckets = self.slots.iter().map(|slot| &slot.bucket).chain(&self.spare);
        let buckets = buckets.chain(&self.rest);
        let chunks = buckets.flat_map(|bucket| bucket.full.iter().chain([&bucket.tail]));
        let chunks = chunks.chain(&self.chunks).chain([&self.current]);
        let items: usize = chunks.map(Vec::capacity).sum();
        let moments: usize = self.slots.iter().map(|slot| slot.moments.capacity()).sum();
        (items + self.late.capacity()) * size_of::<Item<T>>()
            + moments * size_of::<u64>()
            + self.slots.capacity() * size_of::<Slot<T>>()
            + (self.spare.capacity() + self.rest.capacity()) * size_of::<Bucket<T>>()
            + self.chunks.capacity() * size_of::<Chunk<T>>()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "else items go through memory, in pieces")]
    pub fn push(&mut self, at: Time, key: u64, seq: u64, what: T) {
        self.len += 1;
        let at = at.as_micros();
        let bucket = match self.slots.get_mut(self.open) {
            Some(slot) if at == self.open_at && at != self.now => &mut slot.bucket,
            _ => return self.push_elsewhere(at, key, seq, what),
        };
        if !bucket.has_room() {
            return bucket.push_with_room(Item { key, seq, what }, &mut self.chunks);
        }
        bucket.push(Item { key, seq, what });
    }

    /// The instant of the earliest item.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        if self.is_under_way() {
            return Some(Time::from_micros(self.now));
        }
        (self.levels != 0).then_some(Time::from_micros(self.next))
    }

    /// Whether an item of the instant `at` is left, which must not be later than
    /// [`Self::next_time`].
    #[inline]
    pub fn is_due(&mut self, at: Time) -> bool {
        let ready = at.as_micros() == self.now && self.late.is_empty() && !self.current.is_empty();
        ready || (self.len != 0 && self.make_ready(at.as_micros()))
    }

    /// Takes the next item, which [`Self::is_due`] has said there is.
    ///
    /// Two calls rather than an `Option`, which would be copied as a tag and a rest: reading it as
    /// a whole again, the processor waits for both to arrive.
    #[inline]
    pub fn take(&mut self) -> Item<T> {
        self.len -= 1;
        self.current.pop().expect("`is_due` said so")
    }

    /// Once every few items, as many of those that come next; otherwise none.
    #[inline]
    pub fn ahead(&self) -> &[Item<T>] {
        let left = self.current.len();
        if left.is_multiple_of(AHEAD) && left != 0 { &self.current[left - AHEAD..] } else { &[] }
    }

    /// Whether anything is left of the present instant.
    #[inline]
    fn is_under_way(&self) -> bool {
        !(self.current.is_empty() && self.rest.is_empty() && self.late.is_empty())
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, at: u64, key: u64, seq: u64, what: T) {
        let item = Item { key, seq, what };
        if at == self.now {
            self.late.push(Late(item));
        } else {
            self.place(at, item);
        }
    }

    fn place(&mut self, at: u64, item: Item<T>) {
        assert!(self.now < at, "nothing is scheduled in the past");
        let level = ((at ^ self.now).ilog2() / DIGIT) as usize;
        let digit = (at >> (level as u32 * DIGIT)) as usize % SLOTS;
        let index = level * SLOTS + digit;
        if self.slots.len() <= index {
            self.slots.resize_with((level + 1) * SLOTS, Slot::default);
        }
        let slot = &mut self.slots[index];
        let occupied = &mut self.occupied[level];
        if *occupied & (1 << digit) == 0 {
            *occupied |= 1 << digit;
            self.levels |= 1 << level;
            self.next = self.next.min(at);
            slot.earliest = at;
        } else if at != slot.earliest || !slot.moments.is_empty() {
            self.next = self.next.min(at);
            slot.mix(at);
        }
        let pure = slot.moments.is_empty();
        (self.open, self.open_at) = (index, if pure { at } else { self.now });
        slot.bucket.push_with_room(item, &mut self.chunks);
    }

    /// Sees to it that the next item of the instant `at`, if any, is the last of `current`.
    #[inline(never)]
    fn make_ready(&mut self, at: u64) -> bool {
        if at != self.now || !self.is_under_way() {
            if self.levels == 0 || self.next != at {
                return false;
            }
            debug_assert!(!self.is_under_way());
            self.turn();
        }
        self.refill();
        if let Some(Late(late)) = self.late.peek()
            && self.current.last().is_none_or(|next| late.order() < next.order())
        {
            self.current.extend(self.late.pop().map(|Late(item)| item));
        }
        true
    }

    /// Makes the earliest instant the present one. There must be one.
    fn turn(&mut self) {
        let index = self.earliest_slot();
        let (level, digit) = (index / SLOTS, index % SLOTS);
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
        (self.now, self.next) = (self.next, u64::MAX);
        self.open_at = self.now;
        let slot = &mut self.slots[index];
        if slot.moments.is_empty() && slot.bucket.full.is_empty() {
            let chunk = slot.bucket.take_tail();
            self.chunks.push(mem::replace(&mut self.current, chunk));
        } else {
            self.turn_to_many(index);
        }
        if self.levels != 0 {
            self.next = self.slots[self.earliest_slot()].earliest;
        }
    }

    /// Does so where the slot holds several chunks, or several instants.
    #[inline(never)]
    fn turn_to_many(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let empty = self.spare.pop().unwrap_or_default();
        let mut bucket = mem::replace(&mut slot.bucket, empty);
        if !slot.moments.is_empty() {
            let mut moments = mem::take(&mut slot.moments);
            bucket = self.sort_out(bucket, &moments);
            moments.clear();
            self.slots[index].moments = moments;
        }
        self.rest.push(bucket);
    }

    fn earliest_slot(&self) -> usize {
        let level = self.levels.trailing_zeros() as usize;
        level * SLOTS + self.occupied[level].trailing_zeros() as usize
    }

    /// Puts the items of later instants where they belong now, and returns those of this one.
    fn sort_out(&mut self, mut mixed: Bucket<T>, moments: &[u64]) -> Bucket<T> {
        let mut due = self.spare.pop().unwrap_or_default();
        let mut moments = moments.iter();
        while let Some(mut chunk) = mixed.first_chunk() {
            for (item, &at) in chunk.drain(..).zip(&mut moments) {
                if at == self.now {
                    due.push_with_room(item, &mut self.chunks);
                } else {
                    self.place(at, item);
                }
            }
            self.chunks.push(chunk);
        }
        mixed.forget_order();
        self.spare.push(mixed);
        due
    }

    /// Puts what comes next in order, if nothing that is remains; splits a bucket as need be.
    fn refill(&mut self) {
        while self.current.is_empty()
            && let Some(mut bucket) = self.rest.pop()
        {
            if bucket.full.is_empty() {
                let chunk = bucket.take_tail();
                self.chunks.push(mem::replace(&mut self.current, chunk));
                self.spare.push(bucket);
            } else if bucket.breaks == 0 {
                let chunk = bucket.full.pop_front().unwrap_or_default();
                self.chunks.push(mem::replace(&mut self.current, chunk));
                self.current.reverse();
                self.rest.push(bucket);
            } else if bucket.is_rotated() {
                bucket.rotate(&mut self.chunks);
                self.rest.push(bucket);
            } else {
                self.split(bucket);
            }
        }
    }

    /// Replaces `bucket` by parts of it, by key.
    fn split(&mut self, mut bucket: Bucket<T>) {
        let (low, high) = bucket.range();
        let shift = (u128::BITS - (high - low).leading_zeros()).saturating_sub(SPLIT);
        let part_max = ((high - low) >> shift) as usize;
        let first = self.rest.len();
        for _ in 0..=part_max {
            self.rest.push(self.spare.pop().unwrap_or_default());
        }
        while let Some(mut chunk) = bucket.first_chunk() {
            for item in chunk.drain(..) {
                // The last is popped first.
                let part = part_max - ((item.order() - low) >> shift) as usize;
                self.rest[first + part].push_with_room(item, &mut self.chunks);
            }
            self.chunks.push(chunk);
        }
        bucket.forget_order();
        self.spare.push(bucket);
        let mut kept = first;
        for index in first..self.rest.len() {
            if !self.rest[index].tail.is_empty() {
                self.rest.swap(kept, index);
                kept += 1;
            }
        }
        self.spare.extend(self.rest.drain(kept..));
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { bucket: Bucket::default(), earliest: 0, moments: Vec::new() }
    }
}

impl<T> Slot<T> {
    /// Makes ready for an item due at `at`, where not all are due at one instant.
    fn mix(&mut self, at: u64) {
        if self.moments.is_empty() {
            self.moments.resize(self.bucket.len(), self.earliest);
        }
        self.moments.push(at);
        self.earliest = self.earliest.min(at);
    }
}

impl<T> Ord for Late<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.order().cmp(&self.0.order())
    }
}

impl<T> PartialOrd for Late<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Late<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Late<T> {}

#[cfg(test)]
mod tests {
    use vez_core::{Chance, Seeded, Time};

    use super::Queue;
    use super::bucket::CHUNK;

    /// Drives the wheel and a plain sorted list side by side.
    fn agrees_with_a_sorted_list(seed: u64, delays: &[u64], keys: u32) {
        let mut chance = Seeded(seed);
        let mut queue = Queue::default();
        let mut list: Vec<(u64, u64, u64)> = Vec::new();
        let (mut now, mut seq) = (0, 0);
        for round in 0..2_000 {
            let pushes = if round < 1_000 { chance.below(4) } else { 0 };
            for _ in 0..pushes {
                let delay = delays[chance.below(delays.len() as u32) as usize];
                let key = u64::from(chance.below(keys)) << 32 | u64::from(chance.below(3));
                seq += 1;
                queue.push(Time::from_micros(now + delay), key, seq, seq);
                list.push((now + delay, key, seq));
            }
            list.sort_unstable();
            assert_eq!(queue.len(), list.len());
            assert_eq!(queue.next_time().map(Time::as_micros), list.first().map(|first| first.0));
            // Time may also pass up to, and not including, the next item.
            if let Some(&(at, key, expected)) = list.first()
                && chance.below(4) != 0
            {
                assert!(queue.is_due(Time::from_micros(at)));
                let item = queue.take();
                assert_eq!((item.key, item.seq, item.what), (key, expected, expected));
                list.remove(0);
                now = at;
            }
        }
    }

    #[test]
    fn items_come_out_by_time_then_key_then_seq() {
        for seed in 0..20 {
            agrees_with_a_sorted_list(seed, &[1_000], 5);
            agrees_with_a_sorted_list(seed, &[0, 1, 63, 64, 65, 4_095, 4_096, 300_000], 1_000);
            agrees_with_a_sorted_list(seed, &[0, 1, u64::from(u32::MAX), 1 << 50], 3);
        }
    }

    /// Pushes these keys for one instant and takes them again; every `extra`-th item taken pushes
    /// another for the same instant.
    fn comes_out_sorted(keys: &[u64], extra: Option<u64>) {
        let (mut queue, at) = (Queue::default(), Time::from_millis(1));
        for (&key, seq) in keys.iter().zip(1..) {
            queue.push(at, key, seq, key);
        }
        let (mut last, mut taken, mut pushed) = ((0, 0), 0, keys.len());
        while queue.is_due(at) {
            let item = queue.take();
            assert_eq!(item.key, item.what);
            assert!(last < (item.key, item.seq), "{last:?} came before {item:?}");
            last = (item.key, item.seq);
            taken += 1;
            if extra.is_some_and(|extra| item.seq % extra == 0) && pushed < 2 * keys.len() {
                pushed += 1;
                queue.push(at, item.key, pushed as u64, item.key);
            }
        }
        assert_eq!(taken, pushed);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_large_instant_comes_out_in_order_however_it_was_pushed() {
        const N: u64 = 3 * CHUNK as u64 + 7;
        let in_order: Vec<u64> = (0..N).map(|to| to << 32).collect();
        let mut orders = vec![in_order.clone(), in_order.iter().copied().rev().collect()];
        for turn in [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, N as usize - 1] {
            let mut rotated = in_order.clone();
            rotated.rotate_left(turn);
            orders.push(rotated);
        }
        // Everyone to everyone; everyone to one, in any order; and one to one, over and over.
        orders.push((0..60).flat_map(|from| (0..60).map(move |to| to << 32 | from)).collect());
        let mut chance = Seeded(4);
        orders.push((0..N).map(|_| 5 << 32 | u64::from(chance.below(9_000))).collect());
        orders.push(vec![7; N as usize]);
        for keys in &orders {
            comes_out_sorted(keys, None);
            comes_out_sorted(keys, Some(1));
            comes_out_sorted(keys, Some(100));
        }
    }

    #[test]
    fn an_instant_with_nothing_gives_nothing() {
        let mut queue = Queue::default();
        queue.push(Time::from_millis(2), 0, 0, ());
        assert!(!queue.is_due(Time::from_millis(1)));
        assert_eq!(queue.next_time(), Some(Time::from_millis(2)));
    }
}
