//! A search under way: a line on the terminal that keeps up with it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vez_check::Progress;

use crate::checking::{grouped, size};

/// The line, and since when it has been there.
pub(super) struct Meter {
    begun: Instant,
    shows: bool,
    /// Milliseconds after `begun` at which it was last drawn.
    drawn: AtomicU64,
    line: Mutex<bool>,
}

/// Searches shorter than this need no line; a line need not change more often.
const PATIENCE: Duration = Duration::from_millis(500);
const PERIOD: u64 = 100;

impl Meter {
    #[expect(clippy::disallowed_methods, reason = "how long a search takes is part of its result")]
    pub(super) fn new() -> Self {
        let shows = io::stderr().is_terminal();
        Self { begun: Instant::now(), shows, drawn: AtomicU64::new(0), line: Mutex::new(false) }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(super) fn show(&self, progress: Progress) {
        let elapsed = self.begun.elapsed();
        if !self.shows || elapsed < PATIENCE {
            return;
        }
        let now = elapsed.as_millis() as u64;
        let last = self.drawn.load(Ordering::Relaxed);
        let is_mine = now >= last + PERIOD
            && self.drawn.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let Ok(mut is_drawn) = self.line.lock() else { return };
        if is_mine {
            let Progress { states, depth, frontier, memory, .. } = progress;
            let (states, rate, frontier) =
                (grouped(states), grouped(per_second(states, elapsed)), grouped(frontier));
            let memory = size(memory);
            // Who does not read our complaints does not read our progress either.
            let _ = write!(
                io::stderr(),
                "\r{states} states, {rate}/s, {frontier} waiting, {depth} deep, {memory}\x1b[K"
            );
            *is_drawn = true;
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.line.lock().is_ok_and(|is_drawn| *is_drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

pub(super) fn per_second(states: u64, elapsed: Duration) -> u64 {
    let micros = elapsed.as_micros().max(1);
    (u128::from(states) * 1_000_000 / micros) as u64
}
