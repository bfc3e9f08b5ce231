//! The whole service under chance that can be had again: three servers and their clients in one
//! process, with a network that is cut and slow, crashes, and disks that hang.
//!
//! `SEEDS=5000 cargo test --workspace --test sim` runs more seeds than usual, `SEED=7` that one
//! alone and, with `-- --nocapture`, tells its story; with `LOG=debug`, also what servers say.

mod clients;
mod crowd;
mod disk;
mod faults;
#[expect(dead_code, reason = "real members are asked for more")]
mod judge;
mod net;
mod panics;
mod tenants;
mod watchers;
mod world;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::Level;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use self::world::{Run, run, run_crowd};

/// As many as the tests have time for.
const SEEDS: u64 = 500;
/// So many are run twice, and compared.
const TWICE: u64 = 5;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a whole number, not {text:?}")))
}

/// Runs all of these, on all cores; says at once what is wrong with one, and in the end with how
/// many there was something wrong.
fn run_all(seeds: Range<u64>, judge: &(dyn Fn(u64) -> Option<String> + Sync)) -> u64 {
    panics::catch();
    let (next, wrong) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds.end <= seed {
                        return;
                    }
                    if let Some(why) = judge(seed) {
                        wrong.fetch_add(1, Ordering::Relaxed);
                        eprintln!("seed {seed}: {why}");
                        eprintln!("  again: SEED={seed} cargo test --workspace --test sim");
                    }
                }
            };
            let builder = std::thread::Builder::new().name(format!("sim {thread}"));
            builder.spawn_scoped(scope, work).expect("there is room for a thread");
        }
    });
    wrong.into_inner()
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
    listen();
    let one = number("SEED");
    let seeds = one.map_or(0..number("SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let wrong = run_all(seeds, &|seed| {
        let Run { story, wrong } = run(seed);
        if one.is_some() {
            eprint!("{story}");
        }
        wrong
    });
    assert_eq!(wrong, 0, "so many seeds went wrong");
}

#[test]
fn many_who_write_at_once_each_hear_of_their_own_write_whomever_they_asked() {
    let wrong = run_all(0..TWICE, &|seed| run_crowd(seed).err().map(|error| error.to_string()));
    assert_eq!(wrong, 0, "so many seeds went wrong");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let one = number("SEED");
    let seeds = one.map_or(0..number("TWICE").unwrap_or(TWICE), |seed| seed..seed + 1);
    let wrong = run_all(seeds, &|seed| {
        let [first, second] = [run(seed), run(seed)];
        let mut lines = first.story.lines().zip(second.story.lines());
        (first.story != second.story)
            .then(|| format!("not the same twice, from here on: {:?}", lines.find(|(a, b)| a != b)))
    });
    assert_eq!(wrong, 0, "so many seeds are not the same twice");
}
