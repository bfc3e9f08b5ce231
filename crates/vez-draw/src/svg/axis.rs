//! Where a moment is drawn. Time runs down the page, as evenly as legibility allows: long idle
//! stretches are cut short, and moments that nearly coincide are pulled apart a little.

use vez_core::Time;

use super::real;
use crate::scene::{Fate, Scene};

pub(crate) struct Axis {
    /// Moments and their heights, both growing.
    knots: Vec<(Time, f64)>,
    /// Idle stretches that were cut short.
    pub(crate) breaks: Vec<(Time, Time)>,
    px_per_ms: f64,
    /// What a message usually takes, in pixels.
    pub(crate) flight: f64,
}

/// How far a usual message should fall; further where very many fly at once.
const FLIGHT: f64 = 46.0;
const FLIGHT_MAX: f64 = 170.0;
/// So many messages sent at one moment are still told apart.
const CROWD: f64 = 12.0;
/// How far two events of one process should be apart, where that does not stretch things much.
const APART: f64 = 14.0;
const STRETCH_MAX: f64 = 3.0;
/// An idle stretch longer than this is cut short, to this.
const IDLE_MAX: f64 = 190.0;
const IDLE_SHOWN: f64 = 56.0;
/// Two moments are never drawn closer than this, unless there are very many.
const NEAREST: f64 = 2.0;
/// The whole picture's height: what browsers still scroll smoothly.
const HEIGHT_MAX: f64 = 60_000.0;
/// Nearest ticks, and nearest numbers beside them.
const TICKS: f64 = 44.0;
const NUMBERS: f64 = 15.0;

impl Axis {
    pub(crate) fn new(scene: &Scene<'_>, top: f64) -> Self {
        let moments = moments(scene);
        let mut px_per_ms = scale(scene);
        let nearest = NEAREST.min(HEIGHT_MAX / real(moments.len()));
        let height = |px_per_ms: f64| -> f64 {
            moments.windows(2).map(|w| drawn(w[0], w[1], px_per_ms, nearest).0).sum()
        };
        let full = height(px_per_ms);
        if HEIGHT_MAX < full {
            px_per_ms *= HEIGHT_MAX / full;
        }
        let mut y = top;
        let mut knots = vec![(moments[0], y)];
        let mut breaks = Vec::new();
        for pair in moments.windows(2) {
            let (length, broken) = drawn(pair[0], pair[1], px_per_ms, nearest);
            y += length;
            knots.push((pair[1], y));
            if broken {
                breaks.push((pair[0], pair[1]));
            }
        }
        let flight = (usual_delay(scene) * px_per_ms).min(IDLE_SHOWN);
        Self { knots, breaks, px_per_ms, flight }
    }

    pub(crate) fn y(&self, time: Time) -> f64 {
        let after = self.knots.partition_point(|&(moment, _)| moment <= time);
        let Some(&(later, below)) = self.knots.get(after) else { return self.bottom() };
        let (earlier, above) = self.knots[after.saturating_sub(1)];
        let share = (time.saturating_sub(earlier)).as_millis_f64()
            / (later.saturating_sub(earlier)).as_millis_f64().max(0.001);
        above + (below - above) * share.clamp(0.0, 1.0)
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.knots[self.knots.len() - 1].1
    }

    /// Round moments, far enough apart for their numbers; and the ends of what was cut short.
    pub(crate) fn ticks(&self) -> Vec<Time> {
        let step = round_step(self.px_per_ms);
        let mut ticks: Vec<Time> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        let mut put = |time: Time, room_below: f64| {
            let y = self.y(time);
            if last + NUMBERS <= y && y + NUMBERS <= room_below {
                last = y;
                ticks.push(time);
            }
        };
        let ends = self.breaks.iter().map(|&(from, _)| from).chain([self.knots.last().unwrap().0]);
        let starts = [self.knots[0].0].into_iter().chain(self.breaks.iter().map(|&(_, to)| to));
        for (start, end) in starts.zip(ends) {
            put(start, f64::INFINITY);
            let first = start.as_micros() / step + 1;
            let beyond = end.as_micros().div_ceil(step);
            for multiple in first..beyond {
                put(Time::from_micros(multiple * step), self.y(end));
            }
            put(end, f64::INFINITY);
        }
        ticks
    }
}

/// Every moment at which something begins, happens or ends.
fn moments(scene: &Scene<'_>) -> Vec<Time> {
    let mut moments = vec![Time::ZERO, scene.end];
    moments.extend(scene.run.events.iter().map(|event| event.at));
    for spell in scene.spells.iter().flatten() {
        moments.extend([spell.from, spell.to]);
    }
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// Pixels from one moment to the next, and whether the stretch was cut short.
fn drawn(from: Time, to: Time, px_per_ms: f64, nearest: f64) -> (f64, bool) {
    let length = to.saturating_sub(from).as_millis_f64() * px_per_ms;
    if IDLE_MAX < length { (IDLE_SHOWN, true) } else { (length.max(nearest), false) }
}

/// Pixels a millisecond.
fn scale(scene: &Scene<'_>) -> f64 {
    let crowd = crowd(scene);
    let fall = FLIGHT * (crowd / CROWD).max(1.0).sqrt();
    let plain = fall.min(FLIGHT_MAX) / usual_delay(scene);
    let mut last = vec![None; scene.uids.len()];
    let mut gaps = Vec::new();
    for step in &scene.steps {
        let Some(lane) = step.node().and_then(|uid| scene.lane(uid)) else { continue };
        if let Some(before) = last[lane].replace(step.at())
            && before < step.at()
        {
            gaps.push(step.at().saturating_sub(before));
        }
    }
    let apart = median(gaps).map_or(plain, |gap| APART / gap.as_millis_f64());
    apart.clamp(plain, STRETCH_MAX * plain)
}

/// How many messages are sent at one moment, on average over the messages.
pub(crate) fn crowd(scene: &Scene<'_>) -> f64 {
    let runs = scene.flights.chunk_by(|a, b| a.sent == b.sent).map(<[_]>::len);
    let squares: f64 = runs.map(|run| real(run) * real(run)).sum();
    squares / real(scene.flights.len().max(1))
}

/// In milliseconds.
fn usual_delay(scene: &Scene<'_>) -> f64 {
    let delays = scene.flights.iter().filter_map(|flight| match flight.fate {
        Fate::Heard(at) => Some(at.saturating_sub(flight.sent)),
        _ => None,
    });
    median(delays.collect()).map_or(1.0, Time::as_millis_f64).max(0.001)
}

fn median(mut times: Vec<Time>) -> Option<Time> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// The smallest of 1, 2, 5, 10, … microseconds that leaves room between ticks.
fn round_step(px_per_ms: f64) -> u64 {
    let steps = (0..15).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let room = |step: &u64| TICKS <= Time::from_micros(*step).as_millis_f64() * px_per_ms;
    steps.into_iter().find(room).unwrap_or(u64::MAX)
}
