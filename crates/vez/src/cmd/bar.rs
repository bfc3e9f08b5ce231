//! A bar on standard error for what takes longer than a second, if a person is watching.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

/// Says how much is done.
pub(crate) struct Bar {
    what: &'static str,
    began: Instant,
    drawn: Option<Instant>,
    is_watched: bool,
}

/// How long before a bar appears, and how often it changes.
const PATIENCE: Duration = Duration::from_secs(1);
pub(crate) const TICK: Duration = Duration::from_millis(100);
const WIDTH: u64 = 30;

impl Bar {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, began: now(), drawn: None, is_watched: stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, done: u64, total: u64, remark: &str) {
        let now = now();
        let due = self.drawn.map_or(self.began + PATIENCE, |drawn| drawn + TICK);
        if !self.is_watched || now < due {
            return;
        }
        self.drawn = Some(now);
        let done = done.min(total);
        let filled = (WIDTH * done / total.max(1)) as usize;
        let bar = "█".repeat(filled) + &"·".repeat(WIDTH as usize - filled);
        let left = self.left(now, done, total);
        let line = format!("{bar} {done}/{total} {}{left}{remark}", self.what);
        // A bar that cannot be drawn is no reason to stop.
        let _ = write!(stderr(), "\r\x1b[K{line}").and_then(|()| stderr().flush());
    }

    fn left(&self, now: Instant, done: u64, total: u64) -> String {
        if done == 0 {
            return String::new();
        }
        let spent = now.duration_since(self.began).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let left = spent * (total - done) as f64 / done as f64;
        match left {
            left if left < 120.0 => format!(", about {left:.0} s left"),
            left => format!(", about {:.0} min left", left / 60.0),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(stderr(), "\r\x1b[K").and_then(|()| stderr().flush());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "people wait in real time")]
fn now() -> Instant {
    Instant::now()
}
