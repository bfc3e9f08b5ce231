//! What a sample of numbers says: mean, spread, percentiles, fairness.

use serde::Serialize;

/// A sample in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub count: u64,
    pub mean: f64,
    /// How far the numbers lie from their mean: the square root of the sample variance.
    pub deviation: f64,
    pub min: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Summary {
    /// `None` of nothing. The order of the numbers does not matter, to the last bit.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        assert!(sorted.iter().all(|number| number.is_finite()), "only finite numbers add up");
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let mean = mean(&sorted);
        let squares: Vec<f64> = sorted.iter().map(|number| (number - mean).powi(2)).collect();
        let deviation = match sorted.len() {
            1 => 0.0,
            count => (squares.iter().sum::<f64>() / size(count - 1)).sqrt(),
        };
        Some(Self {
            count: sorted.len() as u64,
            // Rounding must not put the mean of equal numbers beside them.
            mean: mean.clamp(min, max),
            deviation: if min < max { deviation } else { 0.0 },
            min,
            p50: percentile(&sorted, 50.0),
            p99: percentile(&sorted, 99.0),
            max,
        })
    }

    /// Half the width of the interval that holds the true mean in 19 samples of 20, if there are
    /// enough numbers for the mean to be normally distributed.
    #[expect(clippy::cast_precision_loss, reason = "samples are small")]
    pub fn error(&self) -> f64 {
        1.96 * self.deviation / (self.count as f64).sqrt()
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / size(numbers.len())
}

#[expect(clippy::cast_precision_loss, reason = "samples are small")]
fn size(count: usize) -> f64 {
    count as f64
}

/// The smallest number that at least `percent` of a sorted sample do not exceed: always one of
/// the sample.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    assert!(!sorted.is_empty() && (0.0..=100.0).contains(&percent));
    // Before rounding up, so much is taken off as rounding may have put on.
    let rank = (percent / 100.0 * size(sorted.len()) - 1e-9).ceil();
    #[expect(clippy::cast_sign_loss, reason = "at least 0")]
    let rank = (rank.max(1.0) as usize).min(sorted.len());
    sorted[rank - 1]
}

/// Jain's index of fairness, `(Σx)² / (n·Σx²)`: 1 if all get alike, `1/n` if one gets everything.
/// Where nobody gets anything, nobody is worse off: 1.
pub fn jain(shares: &[f64]) -> Option<f64> {
    assert!(shares.iter().all(|share| share.is_finite() && 0.0 <= *share));
    let largest = shares.iter().copied().reduce(f64::max)?;
    if largest == 0.0 {
        return Some(1.0);
    }
    // In parts of the largest, so that no square is too large or too small.
    let parts = || shares.iter().map(|share| share / largest);
    let (sum, squares) = (parts().sum::<f64>(), parts().map(|part| part * part).sum::<f64>());
    Some((sum * sum / (size(shares.len()) * squares)).min(1.0))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "numbers of the sample come out as they went in")]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Summary, jain, percentile};

    /// A failure prints its input; no files are kept of it.
    fn unsaved() -> ProptestConfig {
        ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
    }

    #[test]
    fn a_sample_is_summed_up() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.count, summary.mean), (4, 2.5));
        assert_eq!((summary.min, summary.p50, summary.p99, summary.max), (1.0, 2.0, 4.0, 4.0));
        assert!((summary.deviation - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        let error = 1.96 * (5.0_f64 / 3.0).sqrt() / 2.0;
        assert!((summary.error() - error).abs() < 1e-15);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[7.0]).unwrap().deviation, 0.0);
    }

    #[test]
    fn percentiles_are_numbers_of_the_sample() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        for (percent, expected) in
            [(0.0, 1.0), (1.0, 1.0), (50.0, 50.0), (99.0, 99.0), (99.1, 100.0), (100.0, 100.0)]
        {
            assert_eq!(percentile(&sorted, percent), expected, "{percent}");
        }
        assert_eq!(percentile(&[3.0], 99.0), 3.0);
    }

    #[test]
    fn fairness_has_its_closed_forms() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), Some(1.0));
        for n in 1_u32..=50 {
            let n_f = f64::from(n);
            let alike = vec![3.0; n as usize];
            assert!((jain(&alike).unwrap() - 1.0).abs() < 1e-12);
            let mut greedy = vec![0.0; n as usize];
            greedy[0] = 9.0;
            assert!((jain(&greedy).unwrap() - 1.0 / n_f).abs() < 1e-12);
            // 1, 2, …, n: three quarters in the limit.
            let stairs: Vec<f64> = (1..=n).map(f64::from).collect();
            let expected = 3.0 * (n_f + 1.0) / (2.0 * (2.0 * n_f + 1.0));
            assert!((jain(&stairs).unwrap() - expected).abs() < 1e-12, "{n}");
        }
        assert!(jain(&[1e300, 1e300]).unwrap() > 0.999);
        assert!(jain(&[1e-300, 1e-300]).unwrap() > 0.999);
    }

    proptest! {
        #![proptest_config(unsaved())]

        #[test]
        fn percentiles_are_what_counting_says(
            mut numbers in prop::collection::vec(-1e6..1e6_f64, 1..200),
            percent in 0_u32..=100,
        ) {
            numbers.sort_by(f64::total_cmp);
            let found = percentile(&numbers, f64::from(percent));
            let below = |x: f64| numbers.iter().filter(|&&other| other <= x).count();
            let enough = |x: f64| 100 * below(x) >= percent as usize * numbers.len();
            let expected = numbers.iter().copied().find(|&x| enough(x)).unwrap();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn fairness_lies_between_one_and_its_part_and_minds_neither_scale_nor_order(
            shares in prop::collection::vec(0.0..1e6_f64, 1..100),
            scale in 0.001..1000.0_f64,
        ) {
            let index = jain(&shares).unwrap();
            let n = super::size(shares.len());
            prop_assert!(1.0 / n - 1e-9 <= index && index <= 1.0);
            let scaled: Vec<f64> = shares.iter().rev().map(|share| share * scale).collect();
            prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-9);
        }

        #[test]
        fn a_summary_minds_no_order_and_keeps_its_order(
            mut numbers in prop::collection::vec(0.0..1e6_f64, 1..100),
        ) {
            let summary = Summary::of(&numbers).unwrap();
            numbers.reverse();
            prop_assert_eq!(Summary::of(&numbers).unwrap(), summary);
            prop_assert!(summary.min <= summary.p50 && summary.p50 <= summary.p99);
            prop_assert!(summary.p99 <= summary.max);
            prop_assert!(summary.min <= summary.mean && summary.mean <= summary.max);
        }
    }
}
