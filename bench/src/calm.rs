//! Whether the machine was there all the time. A virtual one is stopped by its host when others
//! want the processor: then a pause is measured, and nobody who was measured made it. A round in
//! which that happened much is had again.

use std::fs;
use std::num::NonZero;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use crate::measure::Rates;

/// So much of a round may be taken away.
const MOST: f64 = 0.02;
/// What the kernel counts in.
const TICKS: f64 = 100.0;
/// The machine rests if it has so little to do for so long; it is waited for no longer than this.
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

/// So often it is looked whether a processor still runs.
const LOOK: Duration = Duration::from_millis(1);

/// When a processor stood still. Not every host says what it takes; but whoever sleeps for a moment
/// on each processor, and runs at once when it wakes, whoever else does, wakes up late when it was
/// taken away.
pub(crate) struct Pauses {
    seen: Arc<Mutex<Vec<Pause>>>,
    is_over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<()>>,
}

/// From when to when.
type Pause = (Instant, Instant);

impl Pauses {
    /// Looks from now on. Whoever may not go before all others would take them for pauses, and sees
    /// nothing.
    pub(crate) fn watch() -> Self {
        let (seen, is_over) = (Arc::<Mutex<Vec<Pause>>>::default(), Arc::<AtomicBool>::default());
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let watchers = (0..processors).map(|processor| {
            let (seen, is_over) = (Arc::clone(&seen), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut here = CpuSet::new();
                here.set(processor);
                if sched_setaffinity(None, &here).is_err() || !go_first() {
                    return;
                }
                while !is_over.load(Ordering::Relaxed) {
                    let due = Instant::now() + LOOK;
                    std::thread::sleep(LOOK);
                    let woken = Instant::now();
                    if LOOK < woken - due {
                        seen.lock().unwrap_or_else(PoisonError::into_inner).push((due, woken));
                    }
                }
            })
        });
        let watchers = watchers.collect();
        Self { seen, is_over, watchers }
    }

    /// All that were seen.
    pub(crate) fn end(mut self) -> Taken {
        self.is_over.store(true, Ordering::Relaxed);
        self.watchers.drain(..).for_each(|watcher| watcher.join().expect("it only looks"));
        let mut pauses =
            std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        pauses.sort_unstable();
        Taken::of(&pauses)
    }
}

/// In real time, which takes being root.
fn go_first() -> bool {
    let thread = gettid().as_raw_nonzero().to_string();
    let done = Command::new("chrt").args(["--fifo", "--pid", "50", &thread]).output();
    done.is_ok_and(|output| output.status.success())
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What was taken of what is done one after the other, by whoever has to wait for whoever stands
/// still: pauses of several processors at the same time count once.
pub(crate) struct Taken(Vec<Pause>);

impl Taken {
    fn of(pauses: &[Pause]) -> Self {
        let mut apart: Vec<Pause> = Vec::new();
        for &(since, until) in pauses {
            match apart.last_mut() {
                Some((_, end)) if since <= *end => *end = until.max(*end),
                _ => apart.push((since, until)),
            }
        }
        Self(apart)
    }

    /// How much of it between two moments.
    pub(crate) fn between(&self, since: Instant, until: Instant) -> Duration {
        let Self(pauses) = self;
        let first = pauses.partition_point(|(_, end)| *end <= since);
        let within = pauses[first..].iter().take_while(|(begin, _)| *begin < until);
        within.map(|&(begin, end)| end.min(until) - begin.max(since)).sum()
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
    which.iter().filter_map(|place| numbers.get(*place)).sum()
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
        let pauses = [(10, 15), (12, 17), (16, 16), (30, 40)];
        let taken = Taken::of(&pauses.map(|(since, until)| (at(since), at(until))));
        let between = |since, until| taken.between(at(since), at(until)).as_millis();
        assert_eq!([between(0, 9), between(0, 10), between(17, 30), between(40, 99)], [0; 4]);
        assert_eq!(
            [between(0, 99), between(14, 16), between(5, 11), between(16, 32)],
            [17, 2, 1, 3]
        );
    }
}
