//! Where a process's choices come from.

/// A source of choices. The simulator draws them from a seed; the model checker
/// enumerates them all.
pub trait Chance {
    /// A number in `0..bound`.
    fn below(&mut self, bound: u32) -> u32;
}

/// `SplitMix64`. Written out here rather than imported: a seed printed in a bug
/// report must replay the same run after any dependency upgrade.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`, for ranges wider than a choice.
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        assert!(0 < bound);
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A seed for an independent stream, so that one purpose's draws never shift another's.
    #[must_use]
    pub fn stream(seed: u64, purpose: u64) -> Self {
        let mut mix = Self(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(mix.next_u64())
    }
}

impl Chance for Seeded {
    fn below(&mut self, bound: u32) -> u32 {
        assert!(0 < bound);
        self.below_u64(u64::from(bound)) as u32
    }
}

/// Enumerates every sequence of choices a step can make.
///
/// Run the step once per [`Script::advance`]; each run replays a prefix and takes
/// the next untried branch.
#[derive(Clone, Debug, Default)]
pub struct Script {
    taken: Vec<(u32, u32)>, // (choice, bound)
    at: usize,
    started: bool,
}

impl Script {
    /// Moves to the next sequence. `false` once all have been run.
    pub fn advance(&mut self) -> bool {
        self.at = 0;
        if !self.started {
            self.started = true;
            return true;
        }
        while let Some((choice, bound)) = self.taken.pop() {
            if choice + 1 < bound {
                self.taken.push((choice + 1, bound));
                return true;
            }
        }
        false
    }
}

impl Chance for Script {
    fn below(&mut self, bound: u32) -> u32 {
        assert!(0 < bound);
        if self.at == self.taken.len() {
            self.taken.push((0, bound));
        }
        let (choice, recorded) = self.taken[self.at];
        assert_eq!(recorded, bound, "a step must ask the same questions when replayed");
        self.at += 1;
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Script, Seeded};

    #[test]
    fn seeds_are_forever() {
        let mut seeded = Seeded(42);
        assert_eq!(seeded.next_u64(), 0xbdd7_3226_2feb_6e95);
        assert_eq!(seeded.below(1000), 159);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&seeded.unit())));
    }

    #[test]
    fn script_enumerates_every_sequence_once() {
        let mut script = Script::default();
        let mut seen = Vec::new();
        while script.advance() {
            let first = script.below(2);
            // The second question depends on the first answer.
            let second = if first == 0 { script.below(3) } else { 9 };
            seen.push((first, second));
        }
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 9)]);
    }
}
