//! How long to wait before suspecting: what a mistake costs against what waiting costs.
//!
//! C is the cost of suspecting a process that is alive, p(T) the probability that it answers later
//! than T, E(T) = e·T the cost of waiting. No T is safe; this only prices the mistakes.

use crate::Law;

#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// C: of one wrong suspicion. Not negative.
    pub mistake: f64,
    /// e: of a unit of time spent waiting. More than 0.
    pub wait: f64,
}

/// A timeout and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub timeout: f64,
    /// p(T).
    pub late: f64,
    /// C·p(T).
    pub mistakes: f64,
    /// e·T.
    pub waiting: f64,
}

impl Choice {
    /// e·T + C·p(T).
    pub fn expected(&self) -> f64 {
        self.mistakes + self.waiting
    }

    /// C·p(T) < E(T): the lecture notes' condition.
    pub fn is_acceptable(&self) -> bool {
        self.mistakes < self.waiting
    }
}

impl Costs {
    pub fn of(&self, law: &Law, timeout: f64) -> Choice {
        let late = law.late(timeout);
        Choice { timeout, late, mistakes: self.mistake * late, waiting: self.wait * timeout }
    }

    /// From where on a timeout is acceptable: every longer one is, no shorter one is.
    pub fn smallest_acceptable(&self, law: &Law) -> Choice {
        let timeout = match law {
            Law::Measured(measured) => self.crossing(measured.times(), law),
            _ => self.bisected(law),
        };
        self.of(law, timeout)
    }

    /// The cheapest: where e·T + C·p(T) is smallest; the shortest such.
    pub fn cheapest(&self, law: &Law) -> Choice {
        let candidates = match law {
            Law::Exponential { rate } => {
                let ratio = self.mistake * rate / self.wait;
                vec![if 1.0 < ratio { libm::log(ratio) / rate } else { 0.0 }]
            }
            // The cost grows but where answers arrive, and falls evenly or not at all there.
            Law::Uniform { to, .. } => vec![0.0, *to],
            Law::Lognormal { median, sigma } => {
                vec![0.0, self.where_density_falls(*median, *sigma)]
            }
            // It grows but where an answer arrives.
            Law::Measured(measured) => [&[0.0], measured.times()].concat(),
        };
        let choices = candidates.into_iter().map(|timeout| self.of(law, timeout));
        let cheaper = |best: Choice, next: Choice| match next.expected() < best.expected() {
            true => next,
            false => best,
        };
        choices.reduce(cheaper).expect("at least one candidate")
    }

    /// Between samples p(T) is level, so the line e·T crosses it there or jumps over it at one.
    fn crossing(&self, times: &[f64], law: &Law) -> f64 {
        let mut from = 0.0;
        for &next in times {
            let level = self.mistake * law.late(from) / self.wait;
            if level < next {
                return level.max(from);
            }
            from = next;
        }
        // Nothing is later than the last sample.
        from
    }

    /// e·T − C·p(T) grows from at most 0, and is at least 0 at C/e.
    fn bisected(&self, law: &Law) -> f64 {
        let (mut low, mut high) = (0.0, self.mistake / self.wait);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            match self.of(law, middle).is_acceptable() {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }

    /// Beyond its mode a lognormal density only falls; where C times it is e, the cost is smallest
    /// of all nearby. If it is never so dense, at the mode.
    fn where_density_falls(&self, median: f64, sigma: f64) -> f64 {
        let density = |time: f64| {
            let z = libm::log(time / median) / sigma;
            libm::exp(-z * z / 2.0) / (time * sigma * libm::sqrt(std::f64::consts::TAU))
        };
        let mode = median * libm::exp(-sigma * sigma);
        // The density is at most 1/(T·σ·√τ): beyond C/(e·σ) it is too thin.
        let (mut low, mut high) = (mode, mode.max(self.mistake / self.wait / sigma));
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            match self.mistake * density(middle) <= self.wait {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }
}
