//! Whether the machine was there all the time. A virtual one is stopped by its host when others
//! want the processor: then a pause is measured, and nobody who was measured made it. A round in
//! which that happened much is had again.

use std::fs;
use std::time::{Duration, Instant};

use crate::measure::Rates;

/// So much of a round may be taken away.
const MOST: f64 = 0.02;
/// What the kernel counts in.
const TICKS: f64 = 100.0;
/// The machine rests if it has so little to do for so long; it is waited for no longer than this,
/// since whoever is silent for half a minute while others have their turns is taken for gone.
const REST: Duration = Duration::from_millis(200);
const BUSY: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(1);

/// Has so many contestants take turns until so many rounds count. A turn is given the contestant
/// and the round, and says `N` figures: of each of them, what the contestants made of it.
pub(crate) async fn in_turns<const N: usize>(
    contestants: usize,
    rounds: u32,
    mut turn: impl AsyncFnMut(usize, u32) -> anyhow::Result<[f64; N]>,
) -> anyhow::Result<[Vec<Rates>; N]> {
    let mut figures = std::array::from_fn(|_| vec![Rates::default(); contestants]);
    let mut calm = Calm { left: 2 * rounds };
    let (mut counted, mut round) = (0, 0);
    while counted < rounds {
        let begun = (Instant::now(), stolen());
        let mut turns = Vec::new();
        for contestant in 0..contestants {
            rest().await;
            turns.push(turn(contestant, round).await?);
        }
        round += 1;
        // Whoever is cold has a turn that is not counted.
        if round == 1 || !calm.counts(share_since(begun)) {
            continue;
        }
        counted += 1;
        for (contestant, turn) in turns.into_iter().enumerate() {
            for (rates, figure) in figures.iter_mut().zip(turn) {
                rates[contestant].push(figure);
            }
        }
    }
    Ok(figures)
}

/// Waits until whoever had the turn before has come to rest: a service that tidies up or compiles
/// what it just ran would do so in the time of the next.
async fn rest() {
    let begun = Instant::now();
    loop {
        let before = busy();
        tokio::time::sleep(REST).await;
        if busy().saturating_sub(before) <= BUSY || PATIENCE <= begun.elapsed() {
            return;
        }
    }
}

struct Calm {
    /// So many rounds may still be had again.
    left: u32,
}

impl Calm {
    /// Whether a round counts of which the host took this share. If there were too many that
    /// should not, it does, and that is said.
    fn counts(&mut self, share: f64) -> bool {
        if share <= MOST {
            return true;
        }
        let what = if self.left == 0 { "it counts, for want of a better one" } else { "once more" };
        eprintln!("the host took {:.0} % of that round: {what} …", share * 100.0);
        let counts = self.left == 0;
        self.left = self.left.saturating_sub(1);
        counts
    }
}

/// What the host has taken, looked at now and then: nobody waits for a server that does not run.
#[derive(Default)]
pub(crate) struct Pauses(Vec<(Instant, u64)>);

impl Pauses {
    pub(crate) fn look(&mut self) {
        self.0.push((Instant::now(), stolen()));
    }

    /// How much it took at most of what was done one after the other between two moments.
    pub(crate) fn between(&self, since: Instant, until: Instant) -> Duration {
        let Self(looks) = self;
        let before = looks.partition_point(|(at, _)| *at <= since).saturating_sub(1);
        let after = looks.partition_point(|(at, _)| *at < until).min(looks.len() - 1);
        let taken = looks[after].1.saturating_sub(looks[before].1);
        Duration::from_secs_f64(taken as f64 / TICKS)
    }
}

/// How much of the machine the host took since then.
fn share_since((begun, before): (Instant, u64)) -> f64 {
    let processors = std::thread::available_parallelism().map_or(1.0, |many| many.get() as f64);
    let whole = begun.elapsed().as_secs_f64() * TICKS * processors;
    stolen().saturating_sub(before) as f64 / whole
}

/// What the host has taken so far; nothing, where nobody says.
fn stolen() -> u64 {
    fs::read_to_string("/proc/stat").map_or(0, |text| of_all(&text, &[STOLEN]))
}

/// What all who run here have used so far, and the kernel for them.
fn busy() -> u64 {
    fs::read_to_string("/proc/stat").map_or(0, |text| of_all(&text, &WORK))
}

/// Which numbers of a processor say what: of users, of users who are nice and of the kernel; and
/// for interrupts, hard and soft.
const WORK: [usize; 5] = [0, 1, 2, 5, 6];
const STOLEN: usize = 7;

/// The sum of some of the numbers of all processors.
fn of_all(text: &str, which: &[usize]) -> u64 {
    let all = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or("");
    let numbers: Vec<u64> = all.split_whitespace().flat_map(str::parse).collect();
    which.iter().flat_map(|place| numbers.get(*place)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_took_is_the_eighth_number_of_all_processors() {
        let text = "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 44 9 10\n";
        assert_eq!(of_all(text, &[STOLEN]), 88);
        assert_eq!(of_all(text, &WORK), 1 + 2 + 3 + 6 + 7);
        assert_eq!(of_all("cpu 1 2 3", &[STOLEN]), 0);
        assert_eq!(of_all("", &[STOLEN]), 0);
    }

    #[test]
    fn a_round_is_had_again_if_much_was_taken_and_not_for_ever() {
        let mut calm = Calm { left: 2 };
        let counted = [0.01, 0.3, 0.0, 0.03, 0.5, 0.02].map(|share| calm.counts(share));
        assert_eq!(counted, [true, false, true, false, true, true]);
    }

    #[test]
    fn what_was_taken_while_somebody_waited_is_known() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let pauses = Pauses(vec![(at(0), 7), (at(10), 7), (at(20), 9), (at(30), 12)]);
        let taken = |since, until| pauses.between(at(since), at(until)).as_millis();
        assert_eq!([taken(0, 10), taken(1, 9), taken(5, 12), taken(12, 19)], [0, 0, 20, 20]);
        assert_eq!([taken(0, 30), taken(25, 99), taken(40, 99)], [50, 30, 0]);
    }
}
