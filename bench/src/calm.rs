//! Whether the machine was there all the time. A virtual one is stopped by its host when others
//! want the processor: then a pause is measured, and nobody who was measured made it. A round in
//! which that happened much is had again.

use std::fs;
use std::time::Instant;

/// So much of a round may be taken away.
const MOST: f64 = 0.02;
/// What the kernel counts in.
const TICKS: f64 = 100.0;

pub(crate) struct Calm {
    /// So many rounds may still be had again.
    left: u32,
    since: Instant,
    stolen: u64,
}

impl Calm {
    pub(crate) fn new(left: u32) -> Self {
        Self { left, since: Instant::now(), stolen: stolen() }
    }

    /// A round begins.
    pub(crate) fn begin(&mut self) {
        (self.since, self.stolen) = (Instant::now(), stolen());
    }

    /// Whether the round that ends counts. If there were too many that should not, it does.
    pub(crate) fn counts(&mut self) -> bool {
        let processors = std::thread::available_parallelism().map_or(1.0, |many| many.get() as f64);
        let whole = self.since.elapsed().as_secs_f64() * TICKS * processors;
        self.judge(stolen().saturating_sub(self.stolen) as f64 / whole)
    }

    fn judge(&mut self, share: f64) -> bool {
        if share <= MOST || self.left == 0 {
            return true;
        }
        self.left -= 1;
        eprintln!("the host took {:.0} % of that round: once more …", share * 100.0);
        false
    }
}

/// What the host has taken so far; nothing, where nobody says.
fn stolen() -> u64 {
    fs::read_to_string("/proc/stat").map_or(0, |text| stolen_in(&text))
}

fn stolen_in(text: &str) -> u64 {
    let all = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
    all.and_then(|all| all.split_whitespace().nth(7)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_took_is_the_eighth_number_of_all_processors() {
        let text = "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 44 9 10\n";
        assert_eq!(stolen_in(text), 88);
        assert_eq!(stolen_in("cpu 1 2 3"), 0);
        assert_eq!(stolen_in(""), 0);
    }

    #[test]
    fn a_round_is_had_again_if_much_was_taken_and_not_for_ever() {
        let mut calm = Calm::new(2);
        let counted = [0.01, 0.3, 0.0, 0.03, 0.5, 0.02].map(|share| calm.judge(share));
        assert_eq!(counted, [true, false, true, false, true, true]);
    }
}
