//! Worlds waiting to be explored, packed end to end.

use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    words: Vec<u32>,
    /// Where each world ends.
    ends: Vec<u32>,
    pub(crate) fingerprints: Vec<u64>,
    /// The other halves of wide fingerprints; all 0, and none kept, if they are not.
    seconds: Vec<u64>,
    /// The number of the state each was found from.
    pub(crate) parents: Vec<u32>,
}

impl Layer {
    pub(crate) fn push(&mut self, world: &[u32], fingerprint: u64, second: u64, parent: u32) {
        self.words.extend_from_slice(world);
        self.ends.push(self.words.len() as u32);
        self.fingerprints.push(fingerprint);
        if second != 0 {
            self.seconds.push(second);
        }
        self.parents.push(parent);
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> (&[u32], u64) {
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        let world = &self.words[start as usize..self.ends[position] as usize];
        (world, self.fingerprints[position])
    }

    /// Empties it. What it held is kept for the next worlds, unless that is far too much.
    fn clear(&mut self) {
        if self.ends.capacity() > 4 * self.ends.len() {
            *self = Self::default();
            return;
        }
        self.words.clear();
        self.ends.clear();
        self.fingerprints.clear();
        self.seconds.clear();
        self.parents.clear();
    }

    /// The other half of a world's fingerprint.
    pub(crate) fn second(&self, position: usize) -> u64 {
        self.seconds.get(position).copied().unwrap_or(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.ends.capacity() * 16 + self.seconds.capacity() * 8) as u64
    }
}

/// All worlds of one distance, as each thread found its share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier {
    pub(crate) shares: Vec<Layer>,
}

/// Some worlds of a frontier.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) share: usize,
    /// How many worlds come before this share.
    pub(crate) before: usize,
    pub(crate) places: Range<usize>,
}

impl Frontier {
    /// Cuts it into pieces of at most `size` worlds.
    pub(crate) fn tasks(&self, size: usize) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut before = 0;
        for (share, layer) in self.shares.iter().enumerate() {
            let firsts = (0..layer.len()).step_by(size);
            let places = firsts.map(|first| first..layer.len().min(first + size));
            tasks.extend(places.map(|places| Task { share, before, places }));
            before += layer.len();
        }
        tasks
    }

    pub(crate) fn clear(&mut self) {
        self.shares.iter_mut().for_each(Layer::clear);
    }

    pub(crate) fn len(&self) -> usize {
        self.shares.iter().map(Layer::len).sum()
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.shares.iter().map(Layer::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Frontier, Layer};

    #[test]
    fn worlds_come_out_as_they_went_in() {
        let mut layer = Layer::default();
        layer.push(&[1, 2, 3], 7, 70, 0);
        layer.push(&[4], 8, 80, 0);
        layer.push(&[5, 6], 9, 90, 1);
        let worlds: Vec<_> = (0..layer.len()).map(|i| layer.get(i)).collect();
        assert_eq!(worlds, [(&[1, 2, 3][..], 7), (&[4][..], 8), (&[5, 6][..], 9)]);
        assert_eq!(layer.parents, [0, 0, 1]);
        assert_eq!([0, 1, 2].map(|i| layer.second(i)), [70, 80, 90]);
    }

    #[test]
    fn every_world_is_in_one_task() {
        let mut frontier = Frontier { shares: vec![Layer::default(); 3] };
        for (share, count) in [(0, 5), (2, 4)] {
            (0..count).for_each(|i| frontier.shares[share].push(&[i], u64::from(i), 0, 0));
        }
        let tasks = frontier.tasks(2);
        assert_eq!(tasks.len(), 5);
        let numbers = tasks.iter().flat_map(|task| task.places.clone().map(|at| task.before + at));
        assert!(numbers.eq(0..frontier.len()));
        frontier.clear();
        assert_eq!((frontier.len(), frontier.tasks(2).len()), (0, 0));
    }
}
