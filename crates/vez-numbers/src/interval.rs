//! Between which bounds a share lies that was seen k times in n.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Clopper and Pearson's interval (1934): it misses the true share no more often than it admits,
/// also for shares near 0, where approximations by a bell curve fail.
pub fn clopper_pearson(seen: u64, of: u64, confidence: f64) -> Interval {
    assert!(seen <= of && 0 < of && 0.0 < confidence && confidence < 1.0);
    let tail = (1.0 - confidence) / 2.0;
    let (k, n) = (real(seen), real(of));
    // P[Binomial(n, x) ≥ k] is the incomplete beta function I_x(k, n−k+1).
    let low = match seen {
        0 => 0.0,
        _ => solve(|x| tail <= incomplete_beta(k, n - k + 1.0, x)),
    };
    let high = match seen == of {
        true => 1.0,
        false => solve(|x| 1.0 - tail <= incomplete_beta(k + 1.0, n - k, x)),
    };
    Interval { low, high }
}

/// Where a condition begins to hold between 0 and 1.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Down to neighbouring numbers, or nearly, also next to 0.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        match holds(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// The regularised incomplete beta function `I_x(a, b)`, by its continued fraction, evaluated from
/// the front (Lentz's method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || 1.0 <= x {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast only on this side.
    if (a + 1.0) / (a + b + 2.0) < x {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) - log_beta) / a;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    // Lentz's two running ratios, and their product.
    let mut lower = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut upper, mut fraction) = (1.0, lower);
    for i in 1..20_000_u32 {
        let i = f64::from(i);
        let even = i * (b - i) * x / ((a + 2.0 * i - 1.0) * (a + 2.0 * i));
        let odd = -(a + i) * (a + b + i) * x / ((a + 2.0 * i) * (a + 2.0 * i + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            lower = 1.0 / away_from_zero(1.0 + numerator * lower);
            upper = away_from_zero(1.0 + numerator / upper);
            change = upper * lower;
            fraction *= change;
        }
        if (change - 1.0_f64).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials, far below 2⁵³")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{clopper_pearson, incomplete_beta};

    /// P[Binomial(n, p) ≥ k], summed up.
    fn at_least(k: u32, n: u32, p: f64) -> f64 {
        let term = |i: u32| {
            let ways = (0..i).fold(1.0, |ways, j| ways * f64::from(n - j) / f64::from(j + 1));
            ways * p.powi(i.cast_signed()) * (1.0 - p).powi((n - i).cast_signed())
        };
        (k..=n).map(term).sum()
    }

    #[test]
    fn the_incomplete_beta_function_sums_binomials() {
        for n in 1..=30 {
            for k in 1..=n {
                for p in [1e-3, 0.1, 0.5, 0.77, 0.999] {
                    let found = incomplete_beta(f64::from(k), f64::from(n - k + 1), p);
                    assert!((found - at_least(k, n, p)).abs() < 1e-12, "{k} of {n}, {p}");
                }
            }
        }
    }

    #[test]
    fn the_bounds_are_where_the_tails_are_as_small_as_asked() {
        for (k, n) in [(1, 10), (3, 10), (9, 10), (7, 40)] {
            let interval = clopper_pearson(k.into(), n.into(), 0.95);
            assert!((at_least(k, n, interval.low) - 0.025).abs() < 1e-9);
            assert!((at_least(k + 1, n, interval.high) - 0.975).abs() < 1e-9);
        }
    }

    #[test]
    fn known_values() {
        // None of n: 1 − (α/2)^(1/n). Three of ten, from the tables.
        let none = clopper_pearson(0, 100, 0.95);
        assert!(none.low == 0.0 && (none.high - (1.0 - 0.025_f64.powf(0.01))).abs() < 1e-12);
        let all = clopper_pearson(100, 100, 0.95);
        assert!((all.low + none.high - 1.0).abs() < 1e-12 && all.high >= 1.0);
        let three = clopper_pearson(3, 10, 0.95);
        assert!((three.low - 0.066_739_5).abs() < 1e-6 && (three.high - 0.652_452_9).abs() < 1e-6);
        let many = clopper_pearson(500_000, 1_000_000, 0.95);
        assert!((many.low - 0.499_019_5).abs() < 1e-6 && (many.high - 0.500_980_5).abs() < 1e-6);
    }
}
