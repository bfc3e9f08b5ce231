//! The whole service under chance that can be had again: three servers and their clients in one
//! process, with a network that is cut and slow, crashes, and disks that hang.
//!
//! `SEEDS=5000 cargo test --workspace --test sim` runs more seeds than usual, `SEED=7` that one
//! alone, and tells its story; with `LOG=debug`, also what the servers say meanwhile.

mod clients;
mod disk;
mod faults;
#[expect(dead_code, reason = "real members are asked for more")]
mod judge;
mod net;
mod panics;
mod world;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::Level;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use self::world::{Run, run};

/// As many as the tests have time for.
const SEEDS: u64 = 500;
/// So many are run twice, and compared.
const SEEDS_TWICE: u64 = 5;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a whole number, not {text:?}")))
}

/// Runs all of these, on all cores.
fn run_all(seeds: Range<u64>, run: &(dyn Fn(u64) -> Vec<Run> + Sync)) -> Vec<(u64, Run)> {
    panics::catch();
    let (next, runs) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds.end <= seed {
                        return;
                    }
                    let done = run(seed).into_iter().map(|run| (seed, run));
                    runs.lock().expect("nobody panicked").extend(done);
                }
            };
            let builder = std::thread::Builder::new().name(format!("sim {thread}"));
            builder.spawn_scoped(scope, work).expect("there is room for a thread");
        }
    });
    let mut runs = runs.into_inner().expect("nobody panicked");
    runs.sort_by_key(|(seed, _)| *seed);
    runs
}

/// What servers say goes to standard error, with the simulation's time.
fn listen() {
    struct Now;
    impl FormatTime for Now {
        fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
            let now = turmoil::sim_elapsed().unwrap_or_default();
            write!(out, "{:8.3}", now.as_secs_f64())
        }
    }
    let Ok(level) = std::env::var("LOG") else { return };
    let level = level.parse::<Level>().expect("LOG: expected error, warn, info, debug or trace");
    tracing_subscriber::fmt().with_timer(Now).with_max_level(level).with_ansi(false).init();
}

#[test]
fn clients_are_told_the_truth_whatever_goes_wrong() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(SEEDS),
    };
    listen();
    let is_one = seeds.end == seeds.start + 1;
    let runs = run_all(seeds, &|seed| vec![run(seed)]);
    let mut wrong = 0;
    for (seed, Run { story, wrong: why }) in &runs {
        if is_one {
            eprint!("{story}");
        }
        if let Some(why) = why {
            eprintln!("seed {seed}: {why}");
            eprintln!("  again: SEED={seed} cargo test --workspace --test sim");
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "seeds went wrong, of {}", runs.len());
}

#[test]
fn the_same_seed_is_the_same_run() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS_TWICE").unwrap_or(SEEDS_TWICE),
    };
    let mut differ = 0;
    let runs = run_all(seeds, &|seed| vec![run(seed), run(seed)]);
    for pair in runs.chunks(2) {
        let [(seed, one), (_, other)] = pair else { panic!("each seed ran twice") };
        if one.story != other.story {
            let mut lines = one.story.lines().zip(other.story.lines());
            let first = lines.find(|(one, other)| one != other);
            eprintln!("seed {seed} goes otherwise the second time, from here on: {first:?}");
            differ += 1;
        }
    }
    assert_eq!(differ, 0, "seeds that are not the same twice");
}
