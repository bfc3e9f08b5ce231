//! What is counted: numbers that many hands may add to at once, at the price of an addition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds in nanoseconds.
type Bounds = &'static [u64];

/// For what takes as long as a disk or a network: from 125 µs to 8 s, doubling. Has every bound
/// that etcd's histogram of its disk has.
const QUICK: [u64; 17] = growing(125_000, 2);
/// For what takes as long as people and programs take: from 1 ms to 12 days, fourfold.
const SLOW: [u64; 16] = growing(1_000_000, 4);

const fn growing<const N: usize>(first: u64, factor: u64) -> [u64; N] {
    let mut bounds = [first; N];
    let mut index = 1;
    while index < N {
        bounds[index] = bounds[index - 1] * factor;
        index += 1;
    }
    bounds
}

/// How long things took, by how many took at most so long.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: Bounds,
    /// One more than bounds: what took longer than all of them.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn quick() -> Self {
        Self::new(&QUICK)
    }

    pub(crate) fn slow() -> Self {
        Self::new(&SLOW)
    }

    fn new(bounds: Bounds) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0) }
    }

    pub(crate) fn observe(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < took);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(took, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Distribution {
        let load = |bucket: &AtomicU64| bucket.load(Ordering::Relaxed);
        Distribution {
            bounds: self.bounds,
            counts: self.buckets.iter().map(load).collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A histogram at one moment, or what was added to it between two.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    bounds: Bounds,
    counts: Vec<u64>,
    sum: u64,
}

impl Distribution {
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn sum_seconds(&self) -> f64 {
        seconds(self.sum)
    }

    /// Each bound in seconds, with how many took at most so long.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.counts.iter().scan(0, |below, count| {
            *below += count;
            Some(*below)
        });
        self.bounds.iter().map(|bound| seconds(*bound)).zip(counts)
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self {
            bounds: self.bounds,
            counts: counts.map(|(now, then)| now.saturating_sub(*then)).collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// Seconds that so large a part of all took at most, as well as the buckets tell.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = self.count() as f64 * part;
        let (mut below, mut lower) = (0.0, 0.0);
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            let (upper, count) = (seconds(*bound), *count as f64);
            if 0.0 < count && rank <= below + count {
                return Some(lower + (upper - lower) * (rank - below) / count);
            }
            (below, lower) = (below + count, upper);
        }
        (0 < self.count()).then_some(lower)
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = self.count();
        (0 < count).then(|| self.sum_seconds() / count as f64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody sees the 53rd bit of a second")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_says_how_many_took_how_long() {
        let histogram = Histogram::quick();
        let before = histogram.now();
        for micros in [1, 125, 126, 900, 20_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let now = histogram.now();
        assert_eq!((before.count(), now.count()), (0, 5));
        let cumulative: Vec<(f64, u64)> = now.cumulative().collect();
        assert_eq!(cumulative[..4], [(0.000_125, 2), (0.000_25, 3), (0.000_5, 3), (0.001, 4)]);
        assert_eq!(cumulative.last(), Some(&(8.192, 4)), "one took longer than all bounds");
        assert!((now.sum_seconds() - 20.001_152).abs() < 1e-9, "{}", now.sum_seconds());
    }

    #[test]
    fn a_quantile_lies_where_the_buckets_say() {
        let histogram = Histogram::quick();
        assert_eq!(histogram.now().quantile(0.5), None);
        for _ in 0..99 {
            histogram.observe(Duration::from_micros(200));
        }
        let before = histogram.now();
        histogram.observe(Duration::from_millis(3));
        let now = histogram.now();
        let median = now.quantile(0.5).expect("there are some");
        assert!((0.000_125..0.000_25).contains(&median), "{median}");
        let last = now.since(&before).quantile(0.5).expect("there is one");
        assert!((0.002..0.004).contains(&last), "{last}");
    }
}
