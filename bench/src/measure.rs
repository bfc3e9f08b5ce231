//! Measuring side by side: contestants take turns, so that whatever else the machine is doing
//! befalls them all, and what is compared is what ran next to each other. Time is time on the
//! processor: waiting for others to leave it is nobody's fault.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// One run of a contestant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) messages: u64,
    pub(crate) took: Duration,
}

impl Sample {
    /// Times `work`, which says how many messages it passed.
    pub(crate) fn of(work: impl FnOnce() -> u64) -> Self {
        let began = worked();
        let messages = black_box(work());
        Self { messages, took: worked().saturating_sub(began) }
    }

    /// Times `work` by the clock on the wall, for what runs on several threads.
    pub(crate) fn on_the_wall(work: impl FnOnce() -> u64) -> Self {
        let now = || clock_gettime(ClockId::Monotonic);
        let moment = |time: rustix::time::Timespec| {
            Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
        };
        let began = moment(now());
        let messages = black_box(work());
        Self { messages, took: moment(now()).saturating_sub(began) }
    }

    /// Times the same work several times over, where once is too short to time.
    pub(crate) fn of_many(times: u32, mut work: impl FnMut() -> u64) -> Self {
        Self::of(|| (0..times).map(|_| black_box(work())).sum())
    }

    /// Several samples as one.
    pub(crate) fn sum(samples: impl Iterator<Item = Self>) -> Self {
        samples.fold(Self { messages: 0, took: Duration::ZERO }, |sum, sample| Self {
            messages: sum.messages + sample.messages,
            took: sum.took + sample.took,
        })
    }

    fn rate(self) -> f64 {
        self.messages as f64 / self.took.as_secs_f64()
    }
}

/// How long this program has been on a processor. All contestants run on one thread.
pub(crate) fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What a contestant did in each round: messages a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates(Vec<f64>);

impl Rates {
    /// Of what can be done only once.
    pub(crate) fn once(sample: Sample) -> Self {
        Self(vec![sample.rate()])
    }

    pub(crate) fn push(&mut self, rate: f64) {
        self.0.push(rate);
    }

    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    pub(crate) fn largest(&self) -> f64 {
        self.0.iter().copied().fold(f64::MIN, f64::max)
    }

    /// How many times as fast as `other`: the median over the rounds.
    pub(crate) fn over(&self, other: &Self) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(mine, other)| mine / other).collect())
    }
}

/// Lets the contestants take turns, `rounds` times. The first turn of each is not counted: caches
/// and allocator are cold.
pub(crate) fn in_turns<const N: usize>(
    rounds: usize,
    mut contestants: [&mut dyn FnMut() -> Sample; N],
) -> [Rates; N] {
    let mut rates = [const { Rates(Vec::new()) }; N];
    for round in 0..=rounds {
        for (contestant, rates) in contestants.iter_mut().zip(&mut rates) {
            let sample = contestant();
            if 0 < round {
                rates.0.push(sample.rate());
            }
        }
    }
    rates
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Sample, in_turns, median};

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_the_first_does_not_count() {
        // The second contestant is always half as fast, whatever the machine does.
        let mut slowness = [100, 1, 10, 3, 100, 1, 10, 3].into_iter();
        let sample = |millis| Sample { messages: 10, took: Duration::from_millis(millis) };
        let mut round = 0;
        let mut fast = || {
            round = slowness.next().unwrap();
            sample(round)
        };
        let mut again = [100, 1, 10, 3].into_iter();
        let mut slow = || sample(2 * again.next().unwrap());
        let [fast, slow] = in_turns(3, [&mut fast, &mut slow]);
        assert!((fast.over(&slow) - 2.0).abs() < 1e-9);
        assert!((fast.median() - 10.0 / 0.003).abs() < 1e-6);
    }
}
