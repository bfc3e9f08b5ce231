//! Real processes, each an operating-system process: how fast they pass messages, how soon a dead
//! leader is replaced, and whether they keep their promises while all goes wrong around them.

mod bare;
mod children;
mod process;
mod soak;

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::measure::Rates;
use crate::sim::Scale;
use crate::table::{Table, Target};
use children::Children;
pub(crate) use process::run;

const PASSES: &str = "msg/s";
/// How long a silence the failure detector bears.
const TIMEOUT_MS: u32 = 300;
/// How long a process may take to start or to agree, before the bench gives up.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn measure(scale: Scale) -> Table {
    let mut table = Table::default();
    for (what, part) in [
        ("messages", messages as fn(&mut Table, Scale) -> anyhow::Result<()>),
        ("how long a killed leader is missed", failover),
        ("a soak", soak::soak),
    ] {
        eprintln!("measuring {what} …");
        if let Err(error) = part(&mut table, scale) {
            table.fail(format!("{what}: {error:#}"));
        }
    }
    table
}

/// Who is compared takes turns with whom it is compared with.
fn messages(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let rounds = scale.pick(9, 3) as usize;
    let span = Duration::from_millis(u64::from(scale.pick(2_000, 700)));
    for (name, n) in [("token round a ring of 5", 5), ("token to and fro, 2 processes", 2)] {
        let (mut ours, mut trips, mut ring) = <(Rates, Rates, Rates)>::default();
        for _ in 0..rounds {
            ours.push(passes(n, span)?);
            trips.push(bare::passes(2, span)?);
            ring.push(bare::passes(n as usize, span)?);
        }
        let half = Some(Target::AtLeast(0.5));
        let against = ("bare tokio TCP ping-pong", trips.median());
        table.compare(name, (ours.median(), PASSES), against, ours.over(&trips), half);
        if n != 2 {
            let against = ("bare tokio TCP ring of as many", ring.median());
            table.compare(name, (ours.median(), PASSES), against, ours.over(&ring), None);
        }
    }
    Ok(())
}

/// Tokens passed a second round a ring of `n` processes that do nothing else.
fn passes(n: u64, span: Duration) -> anyhow::Result<f64> {
    let mut ring = Children::start("token", n, "hold = \"0ms\"\n")?;
    while ring.count(1)? < 1_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = ring.count(1)?;
    let since = Instant::now();
    std::thread::sleep(span);
    let heard = ring.count(1)? - before;
    let seconds = since.elapsed().as_secs_f64();
    ensure!(heard > 0, "the token stands still");
    Ok((heard * n) as f64 / seconds)
}

fn failover(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let rounds = scale.pick(15, 5) as usize;
    let mut spans = Vec::new();
    for _ in 0..rounds {
        spans.push(replaced()?.as_secs_f64() * 1_000.0);
    }
    spans.sort_by(f64::total_cmp);
    let timeout = f64::from(TIMEOUT_MS);
    for (which, span) in [("median", spans[rounds / 2]), ("worst", spans[rounds - 1])] {
        let name = format!("leader killed, next known by all 4, {which} of {rounds}");
        let within = Some(Target::AtMost(1.5));
        table.compare(name, (span, "ms"), ("timeout", timeout), span / timeout, within);
    }
    Ok(())
}

/// From SIGKILL of the leader until all others know the next.
fn replaced() -> anyhow::Result<Duration> {
    let settings = format!(
        "detector = {{ kind = \"heartbeat\", tick = \"10ms\", period = \"50ms\", \
         timeout = \"{TIMEOUT_MS}ms\" }}\n\
         election = {{ answer_within = \"40ms\", victory_within = \"120ms\" }}\n"
    );
    let mut group = Children::start("monitored", 5, &settings)?;
    group.say(1, "start")?;
    for id in 1..=5 {
        group.wait_for(id, "leader 5")?;
    }
    // Heartbeats have come to flow.
    std::thread::sleep(Duration::from_millis(2 * u64::from(TIMEOUT_MS)));
    let since = Instant::now();
    group.kill(5)?;
    for id in 1..=4 {
        group.wait_for(id, "leader 4")?;
    }
    Ok(since.elapsed())
}
