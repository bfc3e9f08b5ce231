//! How long a live process takes to answer: measured, or as a law says.

use std::f64::consts::SQRT_2;

use crate::{Interval, clopper_pearson};

/// Times are in one unit, whichever; rates are of the same.
#[derive(Clone, Debug)]
pub enum Law {
    Exponential { rate: f64 },
    Lognormal { median: f64, sigma: f64 },
    Uniform { from: f64, to: f64 },
    Measured(Measured),
}

/// Answers that were measured; at least one.
#[derive(Clone, Debug)]
pub struct Measured {
    /// In growing order.
    times: Vec<f64>,
}

impl Law {
    /// p(T): the probability that a live process answers later than this.
    pub fn late(&self, timeout: f64) -> f64 {
        match self {
            Self::Exponential { rate } => libm::exp(-rate * timeout),
            Self::Lognormal { median, sigma } => {
                libm::erfc(libm::log(timeout / median) / sigma / SQRT_2) / 2.0
            }
            Self::Uniform { from, to } => ((to - timeout) / (to - from)).clamp(0.0, 1.0),
            Self::Measured(measured) => share(measured.later(timeout), measured.times.len()),
        }
    }

    /// Between which bounds p(T) lies, as far as measurements say.
    pub fn late_between(&self, timeout: f64, confidence: f64) -> Option<Interval> {
        let Self::Measured(measured) = self else { return None };
        let (late, all) = (measured.later(timeout) as u64, measured.times.len() as u64);
        Some(clopper_pearson(late, all, confidence))
    }

    /// A time that all but about this share of the answers take at most.
    pub fn quantile(&self, late: f64) -> f64 {
        match self {
            Self::Exponential { rate } => -libm::log(late) / rate,
            Self::Uniform { from, to } => to - late * (to - from),
            Self::Measured(measured) => {
                let times = &measured.times;
                let enough = |index: usize| share(times.len() - 1 - index, times.len()) <= late;
                let first = (0..times.len()).find(|&index| enough(index));
                times[first.unwrap_or(times.len() - 1)]
            }
            Self::Lognormal { median, sigma } => {
                // Where p(T) falls to it; no law of use has an answer at e^±700 times its median.
                let (mut low, mut high) = (-700.0, 700.0);
                for _ in 0..100 {
                    let middle = f64::midpoint(low, high);
                    match self.late(median * libm::exp(middle * sigma.min(1.0))) <= late {
                        true => high = middle,
                        false => low = middle,
                    }
                }
                median * libm::exp(high * sigma.min(1.0))
            }
        }
    }
}

impl Measured {
    /// `None` of nothing. All times are finite and not negative.
    pub fn new(mut times: Vec<f64>) -> Option<Self> {
        assert!(times.iter().all(|time| time.is_finite() && 0.0 <= *time));
        times.sort_by(f64::total_cmp);
        (!times.is_empty()).then_some(Self { times })
    }

    pub fn times(&self) -> &[f64] {
        &self.times
    }

    pub fn largest(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    /// How many took longer than this.
    pub fn later(&self, timeout: f64) -> usize {
        self.times.len() - self.times.partition_point(|&time| time <= timeout)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples, far below 2⁵³")]
fn share(part: usize, all: usize) -> f64 {
    part as f64 / all as f64
}
