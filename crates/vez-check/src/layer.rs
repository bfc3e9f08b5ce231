//! Worlds waiting to be explored, packed end to end.

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

    pub(crate) fn append(&mut self, mut other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let shift = self.words.len() as u32;
        self.ends.extend(other.ends.iter().map(|end| end + shift));
        self.words.append(&mut other.words);
        self.fingerprints.append(&mut other.fingerprints);
        self.seconds.append(&mut other.seconds);
        self.parents.append(&mut other.parents);
    }

    /// The other half of a world's fingerprint.
    pub(crate) fn second(&self, position: usize) -> u64 {
        self.seconds.get(position).copied().unwrap_or(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.words.capacity() * 4 + self.ends.capacity() * 16 + self.seconds.capacity() * 8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Layer;

    #[test]
    fn worlds_come_out_as_they_went_in() {
        let mut layer = Layer::default();
        layer.push(&[1, 2, 3], 7, 70, 0);
        layer.push(&[4], 8, 80, 0);
        let mut other = Layer::default();
        other.push(&[5, 6], 9, 90, 1);
        layer.append(other);
        let worlds: Vec<_> = (0..layer.len()).map(|i| layer.get(i)).collect();
        assert_eq!(worlds, [(&[1, 2, 3][..], 7), (&[4][..], 8), (&[5, 6][..], 9)]);
        assert_eq!(layer.parents, [0, 0, 1]);
        assert_eq!([0, 1, 2].map(|i| layer.second(i)), [70, 80, 90]);
    }
}
