//! Round values along an axis, and the axis itself as plotters wants it.

use std::ops::Range;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged};

use super::number::{readable, scaled, stepped};
use super::{Axis, Scale};

/// A part of an axis, in places (see [`Scale::place`]), with its ticks.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    from: f64,
    to: f64,
    pub(super) ticks: Vec<Tick>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

impl Stretch {
    /// Long enough for all values, with a little air at both ends.
    pub(super) fn around(axis: &Axis, values: &[f64]) -> Self {
        let all = values.iter().chain(&axis.reach);
        let places: Vec<f64> = all.filter_map(|&value| axis.scale.place(value)).collect();
        let (mut from, mut to) =
            places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &at| {
                (low.min(at), high.max(at))
            });
        if places.is_empty() {
            (from, to) = (0.0, 1.0);
        }
        // What starts at 0, or ends there, is not given air that no value can have.
        let grounded =
            |end: f64| axis.reach.iter().any(|&value| axis.scale.place(value) == Some(end));
        let length = to - from;
        let (low, high) = if length <= f64::EPSILON * from.abs().max(1.0) {
            // A single value: show where it lies among its neighbours.
            let air = from.abs().max(1.0) * 0.5;
            (if grounded(from) { 0.0 } else { air }, air)
        } else {
            let air = |end: f64| if grounded(end) { 0.0 } else { length * 0.03 };
            (air(from), air(to))
        };
        Self { from: from - low, to: to + high, ticks: Vec::new() }
    }

    /// Sets as many ticks as fit, at most `most`: labels take `room` of an axis that is `length`.
    pub(super) fn set_ticks(
        &mut self,
        scale: Scale,
        whole: bool,
        most: usize,
        length: f64,
        room: impl Fn(&str) -> f64,
    ) {
        for most in (2..=most).rev() {
            self.ticks = ticks(scale, self.from, self.to, most, whole);
            let px = |tick: &Tick| (tick.at - self.from) / (self.to - self.from) * length;
            let fits = self.ticks.windows(2).all(|pair| {
                f64::midpoint(room(&pair[0].label), room(&pair[1].label))
                    <= px(&pair[1]) - px(&pair[0])
            });
            if fits {
                return;
            }
        }
    }

    pub(super) fn label(&self, at: f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.at.total_cmp(&at).is_eq());
        tick.map_or_else(String::new, |tick| tick.label.clone())
    }
}

impl Ranged for Stretch {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (share * length).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.ticks.iter().map(|tick| tick.at).collect(),
            // One set of lines is enough.
            KeyPointWeight::Any => Vec::new(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Stretch {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

fn ticks(scale: Scale, from: f64, to: f64, most: usize, whole: bool) -> Vec<Tick> {
    let powers = to.floor() - from.ceil();
    match scale {
        Scale::Linear => linear(from, to, most, whole),
        Scale::Log2 if 2.0 <= powers => {
            let steps = multiples(from, to, whole_step(from, to, most));
            let label = |at: f64| match 0.0 <= at {
                true => stepped(at.exp2(), 1.0),
                false => readable(at.exp2()),
            };
            steps.into_iter().map(|at| Tick { at, label: label(at) }).collect()
        }
        Scale::Log10 | Scale::Exponent if 2.0 <= powers => {
            let steps = multiples(from, to, whole_step(from, to, most));
            let plainly = plain(from, to);
            let label = |at: f64| scaled(1, at as i64, plainly);
            steps.into_iter().map(|at| Tick { at, label: label(at) }).collect()
        }
        Scale::Log10 | Scale::Exponent if 0.7 <= to - from => within_decades(from, to),
        Scale::Exponent => linear(from, to, most, false)
            .into_iter()
            .map(|tick| Tick { label: format!("10^{}", tick.label), ..tick })
            .collect(),
        Scale::Log2 | Scale::Log10 => {
            let base = if scale == Scale::Log2 { 2.0 } else { 10.0_f64 };
            let values = linear(base.powf(from), base.powf(to), most, whole);
            let placed = values
                .into_iter()
                .filter_map(|tick| Some(Tick { at: scale.place(tick.at)?, label: tick.label }));
            placed.collect()
        }
    }
}

fn linear(from: f64, to: f64, most: usize, whole: bool) -> Vec<Tick> {
    let step = round_step((to - from) / real(most));
    let step = if whole { step.max(1.0) } else { step };
    let steps = multiples(from, to, step);
    steps.into_iter().map(|at| Tick { at, label: stepped(at, step) }).collect()
}

/// 1, 2 and 5 of every decade.
fn within_decades(from: f64, to: f64) -> Vec<Tick> {
    let plainly = plain(from, to);
    let mut ticks = Vec::new();
    for exponent in from.floor() as i32..=to.ceil() as i32 {
        for digits in [1, 2, 5] {
            let at = f64::from(exponent) + f64::from(digits).log10();
            if from <= at && at <= to {
                ticks.push(Tick { at, label: scaled(digits, exponent.into(), plainly) });
            }
        }
    }
    ticks
}

/// Whether all powers of ten between are easier to read as plain numbers.
fn plain(from: f64, to: f64) -> bool {
    -3.0 <= from.ceil() && to.floor() <= 6.0
}

fn multiples(from: f64, to: f64, step: f64) -> Vec<f64> {
    let tolerance = 1e-9;
    let first = (from / step - tolerance).ceil();
    let count = ((to / step + tolerance).floor() - first).clamp(-1.0, 100.0) as i32;
    // Adding 0 turns a -0 into 0.
    (0..=count).map(|i| (first + f64::from(i)) * step + 0.0).collect()
}

/// The smallest of 1, 2, 5, 10, … times a power of ten that is no smaller.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
    steps.into_iter().find(|step| least <= step * (1.0 + 1e-9)).unwrap_or(steps[3])
}

fn whole_step(from: f64, to: f64, most: usize) -> f64 {
    round_step((to - from) / real(most)).max(1.0)
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Axis, Scale, Stretch};

    fn labels(scale: Scale, values: &[f64], whole: bool) -> String {
        let mut stretch = Stretch::around(&Axis::new("", scale), values);
        let room = |label: &str| 8.0 * f64::from(u32::try_from(label.chars().count()).unwrap());
        stretch.set_ticks(scale, whole, 8, 400.0, room);
        let labels: Vec<_> = stretch.ticks.into_iter().map(|tick| tick.label).collect();
        labels.join(" ")
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Scale::Linear, &[0.0, 1.0], false), "0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(Scale::Linear, &[1.0, 3.0], true), "1 2 3");
        assert_eq!(labels(Scale::Linear, &[-3e9, 2e9], false), "−3·10⁹ −2·10⁹ −10⁹ 0 10⁹ 2·10⁹");
        assert_eq!(labels(Scale::Log2, &[2.0, 1024.0], true), "4 16 64 256 1,024");
        assert_eq!(labels(Scale::Log2, &[0.25, 8.0], false), "0.25 0.5 1 2 4 8");
        assert_eq!(labels(Scale::Log2, &[5.0, 7.0], true), "5 6 7");
        assert_eq!(labels(Scale::Log10, &[0.001, 1.0], false), "0.001 0.01 0.1 1");
        assert_eq!(labels(Scale::Log10, &[1e-20, 1.0], false), "10⁻²⁰ 10⁻¹⁵ 10⁻¹⁰ 10⁻⁵ 1");
        assert_eq!(labels(Scale::Log10, &[3.0, 40.0], false), "5 10 20");
        assert_eq!(labels(Scale::Log10, &[3.0, 3.5], false), "3.0 3.1 3.2 3.3 3.4 3.5");
        assert_eq!(
            labels(Scale::Exponent, &[-59.5, -58.2], false),
            "5·10⁻⁶⁰ 10⁻⁵⁹ 2·10⁻⁵⁹ 5·10⁻⁵⁹"
        );
    }

    #[test]
    fn an_axis_reaches_as_far_as_it_is_told() {
        let axis = Axis::new("", Scale::Linear).reaching(0.0);
        let stretch = Stretch::around(&axis, &[50.0, 100.0]);
        assert!(stretch.from.abs() < f64::EPSILON);
        assert!(100.0 < stretch.to && stretch.to < 105.0);
        let nothing = Stretch::around(&axis, &[0.0]);
        assert!(nothing.from.abs() < f64::EPSILON && 0.1 < nothing.to);
    }
}
