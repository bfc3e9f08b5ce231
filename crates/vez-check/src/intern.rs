//! Every value once, and a number for it.
//!
//! A million states of a system are made of a few hundred states of its processes. Numbers are
//! compared, hashed and stored in their stead.

use std::hash::{Hash, Hasher};

/// Scatters the bits of a number: `SplitMix64`'s finalizer.
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes a value the same way on every run and every machine of the same word size.
pub(crate) struct Mixer(pub u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut mixer = Mixer(0);
    value.hash(&mut mixer);
    mixer.finish()
}

/// Values numbered in the order they were first seen.
#[derive(Debug)]
pub(crate) struct Intern<T> {
    items: Vec<T>,
    hashes: Vec<u64>,
    /// Open addressing; `0` is empty, else the number plus one.
    slots: Vec<u32>,
}

impl<T> Default for Intern<T> {
    fn default() -> Self {
        Self { items: Vec::new(), hashes: Vec::new(), slots: vec![0; 16] }
    }
}

impl<T: Hash + Eq> Intern<T> {
    pub(crate) fn id(&mut self, item: T) -> u32 {
        if let Some(id) = self.find(&item) {
            return id;
        }
        let hash = hash_of(&item);
        let mut slot = self.slot(hash);
        while self.slots[slot] != 0 {
            slot = (slot + 1) % self.slots.len();
        }
        let id = self.items.len() as u32;
        self.items.push(item);
        self.hashes.push(hash);
        self.slots[slot] = id + 1;
        if self.slots.len() < 2 * self.items.len() {
            self.grow();
        }
        id
    }

    /// The number of a value, if it was seen before.
    pub(crate) fn find(&self, item: &T) -> Option<u32> {
        let hash = hash_of(item);
        let mut slot = self.slot(hash);
        while let Some(id) = self.slots[slot].checked_sub(1) {
            if self.hashes[id as usize] == hash && self.items[id as usize] == *item {
                return Some(id);
            }
            slot = (slot + 1) % self.slots.len();
        }
        None
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        for id in 0..self.items.len() {
            let mut slot = self.slot(self.hashes[id]);
            while self.slots[slot] != 0 {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = id as u32 + 1;
        }
    }
}

impl<T> Intern<T> {
    pub(crate) fn get(&self, id: u32) -> &T {
        &self.items[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

/// A map from pairs of numbers to something small.
#[derive(Clone, Debug)]
pub(crate) struct PairMap<V = u32> {
    /// Keys with their values beside them: a lookup waits for memory once.
    slots: Vec<(u64, V)>,
    len: usize,
}

const EMPTY: u64 = u64::MAX;

impl<V: Copy + Default> Default for PairMap<V> {
    fn default() -> Self {
        Self { slots: vec![(EMPTY, V::default()); 64], len: 0 }
    }
}

impl<V: Copy + Default> PairMap<V> {
    #[inline]
    pub(crate) fn get(&self, a: u32, b: u32) -> Option<V> {
        let key = pair(a, b);
        let mask = self.slots.len() - 1;
        let mut slot = start(key) & mask;
        loop {
            match self.slots[slot] {
                (found, value) if found == key => return Some(value),
                (EMPTY, _) => return None,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    pub(crate) fn insert(&mut self, a: u32, b: u32, value: V) {
        if self.slots.len() < 2 * (self.len + 1) {
            let larger = vec![(EMPTY, V::default()); 2 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, larger);
            self.len = 0;
            for (key, value) in old {
                if key != EMPTY {
                    self.place(key, value);
                }
            }
        }
        self.place(pair(a, b), value);
    }

    fn place(&mut self, key: u64, value: V) {
        let mask = self.slots.len() - 1;
        let mut slot = start(key) & mask;
        while self.slots[slot].0 != EMPTY && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        self.len += usize::from(self.slots[slot].0 == EMPTY);
        self.slots[slot] = (key, value);
    }
}

#[inline]
fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// One multiplication: a miss costs a few more probes, a lookup is what everything waits for.
#[inline]
fn start(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::{Intern, PairMap};

    #[test]
    fn equal_values_have_one_number() {
        let mut intern = Intern::default();
        let ids: Vec<u32> = (0..1000).map(|i| intern.id(format!("{}", i % 300))).collect();
        assert_eq!(intern.len(), 300);
        assert!(ids.iter().enumerate().all(|(i, &id)| id == i as u32 % 300));
        assert_eq!(intern.get(7), "7");
    }

    #[test]
    fn pairs_are_found_again() {
        let mut map = PairMap::default();
        for i in 0..5_000 {
            map.insert(i, i * 7, i + 1);
        }
        map.insert(3, 21, 99);
        assert_eq!(map.get(3, 21), Some(99));
        assert!((4..5_000).all(|i| map.get(i, i * 7) == Some(i + 1)));
        assert_eq!(map.get(21, 3), None);
    }
}
