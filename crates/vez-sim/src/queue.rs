//! What happens when: a priority queue for moments that only move forward.
//!
//! A hierarchical wheel: eleven levels of 64 slots, each slot a bucket, each level's occupied
//! slots a bitmap. An item goes where its moment first differs from the present, so pushing is a
//! few shifts and the earliest slot two bit scans. All items of one instant that were pushed into
//! an otherwise empty slot move as one bucket, which is every item when delays are fixed.
//!
//! Within an instant, items come out by `(key, seq)`. A bucket that is in that order, or is the
//! rotation of one (a ring makes those), is walked as it lies; any other is sorted by counting.
//! Buckets are recycled: once warm, nothing is allocated.

use vez_core::Time;

const DIGIT: u32 = 6;
const SLOTS: usize = 1 << DIGIT;
const LEVELS: usize = 64_usize.div_ceil(DIGIT as usize);

#[derive(Clone, Debug)]
pub struct Item<T> {
    pub at: Time,
    /// Orders items of one instant: the receiver above, the sender below.
    pub key: u64,
    /// Orders items of one instant and key.
    pub seq: u64,
    what: Option<T>,
}

#[derive(Debug)]
pub struct Queue<T> {
    /// The instant of the current batch. Everything in the wheel is later.
    now: u64,
    levels: Vec<Level<T>>,
    /// Empty buckets that keep their memory.
    spare: Vec<Vec<Item<T>>>,
    batch: Batch<T>,
    len: usize,
}

#[derive(Debug)]
struct Level<T> {
    occupied: u64,
    slots: Vec<Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    items: Vec<Item<T>>,
    earliest: u64,
    /// Whether all items are of the instant `earliest`.
    pure: bool,
}

/// The items of one instant, and in which order they come out.
#[derive(Debug)]
struct Batch<T> {
    items: Vec<Item<T>>,
    order: Order,
    /// How many have come out.
    taken: usize,
    ranks: Vec<u32>,
    counts: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    /// As they lie, from this position on and round.
    Rotated(usize),
    /// As `ranks` says.
    Ranked,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let slot = || Slot { items: Vec::new(), earliest: 0, pure: true };
        let level = || Level { occupied: 0, slots: (0..SLOTS).map(|_| slot()).collect() };
        Self {
            now: 0,
            levels: (0..LEVELS).map(|_| level()).collect(),
            spare: Vec::new(),
            batch: Batch::default(),
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
        let buckets = self.levels.iter().flat_map(|level| &level.slots).map(|slot| &slot.items);
        let items: usize = buckets.chain(&self.spare).map(Vec::capacity).sum();
        let items = items + self.batch.items.capacity();
        let words = self.batch.ranks.capacity() + self.batch.counts.capacity();
        items * size_of::<Item<T>>() + words * size_of::<u32>()
    }

    pub fn push(&mut self, at: Time, key: u64, seq: u64, what: T) {
        let item = Item { at, key, seq, what: Some(what) };
        self.len += 1;
        if at.as_micros() == self.now {
            self.batch.insert(item);
        } else {
            self.place(item);
        }
    }

    /// The instant of the earliest item.
    pub fn next_time(&self) -> Option<Time> {
        if !self.batch.is_empty() {
            return Some(Time::from_micros(self.now));
        }
        let level = self.levels.iter().find(|level| level.occupied != 0)?;
        let slot = &level.slots[level.occupied.trailing_zeros() as usize];
        Some(Time::from_micros(slot.earliest))
    }

    /// Takes the next item of the instant `at`, which must not be later than [`Self::next_time`].
    #[inline]
    pub fn pop_at(&mut self, at: Time) -> Option<(Item<()>, T)> {
        if self.now != at.as_micros() || self.batch.is_empty() {
            self.turn_to(at)?;
        }
        let taken = self.batch.take()?;
        self.len -= 1;
        Some(taken)
    }

    #[inline]
    fn place(&mut self, item: Item<T>) {
        let at = item.at.as_micros();
        assert!(self.now < at, "nothing is scheduled in the past");
        let level = ((at ^ self.now).ilog2() / DIGIT) as usize;
        let digit = (at >> (level as u32 * DIGIT)) as usize % SLOTS;
        let level = &mut self.levels[level];
        let slot = &mut level.slots[digit];
        if level.occupied & (1 << digit) == 0 {
            level.occupied |= 1 << digit;
            (slot.earliest, slot.pure) = (at, true);
            if slot.items.capacity() == 0 {
                slot.items = self.spare.pop().unwrap_or_default();
            }
        } else if at != slot.earliest {
            slot.pure = false;
            slot.earliest = slot.earliest.min(at);
        }
        slot.items.push(item);
    }

    /// Makes the items of the instant `at` the current batch; `None` if there are none.
    fn turn_to(&mut self, at: Time) -> Option<()> {
        debug_assert!(self.batch.is_empty());
        let level = self.levels.iter_mut().find(|level| level.occupied != 0)?;
        let digit = level.occupied.trailing_zeros();
        let slot = &mut level.slots[digit as usize];
        if slot.earliest != at.as_micros() {
            return None;
        }
        level.occupied &= !(1 << digit);
        let mut items = std::mem::take(&mut slot.items);
        let pure = slot.pure;
        self.now = at.as_micros();
        let mut used = self.batch.recycle();
        if pure {
            self.batch.load(items);
        } else {
            for item in items.drain(..) {
                if item.at == at {
                    used.push(item);
                } else {
                    self.place(item);
                }
            }
            self.batch.load(std::mem::replace(&mut used, items));
        }
        self.spare.push(used);
        Some(())
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        let (items, ranks, counts) = (Vec::new(), Vec::new(), Vec::new());
        Self { items, order: Order::Rotated(0), taken: 0, ranks, counts }
    }
}

impl<T> Batch<T> {
    fn is_empty(&self) -> bool {
        self.taken == self.items.len()
    }

    fn recycle(&mut self) -> Vec<Item<T>> {
        self.items.clear();
        self.taken = 0;
        std::mem::take(&mut self.items)
    }

    fn load(&mut self, items: Vec<Item<T>>) {
        self.items = items;
        self.taken = 0;
        self.order = match rotation(&self.items) {
            Some(start) => Order::Rotated(start),
            None => {
                self.rank();
                Order::Ranked
            }
        };
    }

    #[inline]
    fn take(&mut self) -> Option<(Item<()>, T)> {
        if self.is_empty() {
            return None;
        }
        let index = match self.order {
            Order::Rotated(start) => {
                let index = start + self.taken;
                if index < self.items.len() { index } else { index - self.items.len() }
            }
            Order::Ranked => self.ranks[self.taken] as usize,
        };
        self.taken += 1;
        let item = &mut self.items[index];
        let what = item.what.take().expect("each item comes out once");
        Some((Item { at: item.at, key: item.key, seq: item.seq, what: None }, what))
    }

    /// Sorts by counting receivers, then within a receiver where need be.
    fn rank(&mut self) {
        let items = &self.items;
        let to = |index: usize| (items[index].key >> 32) as usize;
        let (mut low, mut high) = (usize::MAX, 0);
        for index in 0..items.len() {
            (low, high) = (low.min(to(index)), high.max(to(index)));
        }
        let by_key = |&index: &u32| (items[index as usize].key, items[index as usize].seq);
        self.ranks.clear();
        if high - low > 4 * items.len() {
            self.ranks.extend(0..items.len() as u32);
            self.ranks.sort_unstable_by_key(by_key);
            return;
        }
        self.counts.clear();
        self.counts.resize(high - low + 2, 0);
        for index in 0..items.len() {
            self.counts[to(index) - low + 1] += 1;
        }
        for slot in 1..self.counts.len() {
            self.counts[slot] += self.counts[slot - 1];
        }
        self.ranks.resize(items.len(), 0);
        for index in 0..items.len() {
            let count = &mut self.counts[to(index) - low];
            self.ranks[*count as usize] = index as u32;
            *count += 1;
        }
        // `counts` now ends each receiver's group; within it, items lie in the order pushed.
        let mut start = 0;
        for &end in &self.counts[..self.counts.len() - 1] {
            let group = &mut self.ranks[start..end as usize];
            if !group.is_sorted_by_key(by_key) {
                group.sort_unstable_by_key(by_key);
            }
            start = end as usize;
        }
    }

    /// Adds an item to the instant that is under way, in its place among those still to come.
    fn insert(&mut self, item: Item<T>) {
        let mut rest: Vec<Item<T>> = Vec::with_capacity(self.items.len() - self.taken + 1);
        while let Some((head, what)) = self.take() {
            rest.push(Item { at: head.at, key: head.key, seq: head.seq, what: Some(what) });
        }
        let place = rest.partition_point(|other| (other.key, other.seq) < (item.key, item.seq));
        rest.insert(place, item);
        self.load(rest);
    }
}

/// Where to start so that walking round gives the items in order, if there is such a place.
fn rotation<T>(items: &[Item<T>]) -> Option<usize> {
    let order = |item: &Item<T>| (item.key, item.seq);
    let mut breaks = 0;
    let mut start = 0;
    for index in 1..items.len() {
        if order(&items[index]) < order(&items[index - 1]) {
            breaks += 1;
            start = index;
            if breaks > 1 {
                return None;
            }
        }
    }
    match items {
        [first, .., last] if breaks == 1 => (order(last) < order(first)).then_some(start),
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use vez_core::{Chance, Seeded, Time};

    use super::Queue;

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
                let (item, what) = queue.pop_at(Time::from_micros(at)).unwrap();
                assert_eq!(
                    (item.at.as_micros(), item.key, item.seq, what),
                    (at, key, expected, expected)
                );
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

    #[test]
    fn a_rotated_bucket_is_walked_round() {
        let mut queue = Queue::default();
        for to in [3_u64, 4, 0, 1] {
            queue.push(Time::from_millis(1), to << 32, to, to);
        }
        let order: Vec<u64> =
            std::iter::from_fn(|| queue.pop_at(Time::from_millis(1)).map(|(_, to)| to)).collect();
        assert_eq!(order, [0, 1, 3, 4]);
    }

    #[test]
    fn an_instant_with_nothing_gives_nothing() {
        let mut queue = Queue::default();
        queue.push(Time::from_millis(2), 0, 0, ());
        assert!(queue.pop_at(Time::from_millis(1)).is_none());
        assert_eq!(queue.next_time(), Some(Time::from_millis(2)));
    }
}
