//! The φ accrual detector: Hayashibara, Défago, Yared and Katayama, *The φ Accrual Failure
//! Detector*, SRDS 2004.
//!
//! It learns how long the silences of a peer usually are, and suspects when one is so long that,
//! were they normally distributed, a live peer would be silent for longer only once in 10^φ times.
//! Whole numbers only: mean and deviation are in thousandths of a tick, and instead of computing φ
//! from the silence it computes the silence at which φ is reached.

use std::collections::VecDeque;

use serde::Serialize;

use super::{Detector, DetectorConfig};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct PhiAccrual {
    window: u32,
    /// Whether it was ever heard: what came before says nothing of its rhythm.
    heard: bool,
    /// The last silences in ticks, the oldest first. Of one that ended a suspicion, the part that
    /// was counted: enough to be more patient next time.
    silences: VecDeque<u64>,
}

/// By how many deviations, in thousandths, a normal variable exceeds its mean once in 10^φ times,
/// for φ = 1, 2, …
const DEVIATIONS: [u128; 12] =
    [1_282, 2_327, 3_091, 3_720, 4_265, 4_754, 5_200, 5_613, 5_998, 6_362, 6_707, 7_035];

pub(super) const THRESHOLD_MAX: u32 = DEVIATIONS.len() as u32;

impl PhiAccrual {
    pub(super) fn new(window: u32) -> Self {
        Self { window, heard: false, silences: VecDeque::new() }
    }
}

impl Detector for PhiAccrual {
    fn patience(&self, config: &DetectorConfig) -> u64 {
        let count = self.silences.len() as u128;
        if count < 2 {
            return config.ticks(config.timeout);
        }
        let sum: u128 = self.silences.iter().map(|&silent| u128::from(silent)).sum();
        let squares: u128 = self.silences.iter().map(|&silent| u128::from(silent).pow(2)).sum();
        let mean = 1_000 * sum / count;
        let deviation = (1_000_000 * (count * squares - sum * sum)).isqrt() / count;
        // Silence is measured to a tick: no deviation smaller than that is believed.
        let deviation = deviation.max(1_000);
        let deviations = DEVIATIONS[config.threshold as usize - 1];
        (mean + deviations * deviation / 1_000).div_ceil(1_000) as u64
    }

    fn on_heartbeat(&mut self, silent: u64, _suspected: bool) {
        if std::mem::replace(&mut self.heard, true) {
            self.silences.push_back(silent);
        }
        if self.silences.len() > self.window as usize {
            self.silences.pop_front();
        }
    }
}
