//! The formula against the dice: coordinators that restart or do not, many times over.

use serde::Serialize;
use vez_core::Seeded;

use crate::{Fraction, Interval, clopper_pearson};

/// What was seen in so many trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Trials {
    pub trials: u64,
    /// Some second quorum could form.
    pub violations: u64,
    /// The one rival quorum with the smallest overlap could.
    pub fixed_rival: u64,
}

/// Plays the story, not the formula: the first m coordinators let the holder in; each of them
/// restarts or does not; whoever has restarted, or was never asked, lets a rival in. The rival's
/// own quorum is the last m.
pub fn simulate(n: u32, m: u32, restart: &Fraction, trials: u64, seed: u64) -> Trials {
    assert!(0 < m && m <= n);
    let mut chance = Seeded::stream(seed, 0);
    let bar = restart.of_two_to_the_64();
    let mut counts = Trials { trials, violations: 0, fixed_rival: 0 };
    for _ in 0..trials {
        let mut willing = n - m;
        let mut willing_in_rival = n - m;
        for coordinator in 0..m {
            if u128::from(chance.next_u64()) < bar {
                willing += 1;
                willing_in_rival += u32::from(n - m <= coordinator);
            }
        }
        counts.violations += u64::from(m <= willing);
        counts.fixed_rival += u64::from(m == willing_in_rival);
    }
    counts
}

impl Trials {
    /// So rarely seen, or so rarely missed, that the trials tell nothing: fewer than five of the
    /// rarer outcome are to be expected.
    pub fn are_too_few_for(&self, probability: &Fraction) -> bool {
        if probability.is_zero() || probability.is_one() {
            return false;
        }
        let rarer =
            probability.complement().map_or(0.0, |other| other.to_f64().min(probability.to_f64()));
        real(self.trials) * rarer < 5.0
    }

    pub fn violation_interval(&self, confidence: f64) -> Interval {
        clopper_pearson(self.violations, self.trials, confidence)
    }

    pub fn fixed_rival_interval(&self, confidence: f64) -> Interval {
        clopper_pearson(self.fixed_rival, self.trials, confidence)
    }
}

/// How many trials show about a hundred cases of what is this rare: enough for ±20 %.
pub fn trials_needed(probability: &Fraction) -> Option<Fraction> {
    let hundred = "100".parse::<Fraction>().expect("a number");
    let rarer = probability.complement()?.min(probability.clone());
    if rarer.is_zero() {
        return None;
    }
    let over = Fraction::new(rarer.denominator().clone(), rarer.numerator().clone());
    Some(hundred.times(&over))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn real(count: u64) -> f64 {
    count as f64
}
