//! The service against etcd, ZooKeeper and Redis: the same clients, the same disk, in turns.

pub(crate) mod client;
mod held;
pub(crate) mod load;
pub(crate) mod servers;
mod watch;
pub(crate) mod wire;

use std::time::Duration;
use std::{io, slice};

use tokio::runtime::{Builder, Runtime};

use crate::calm;
use crate::measure::Rates;
use crate::sim::Scale;
use crate::table::{Table, Target};
use held::Held;
use load::{Crowd, compete, hand_over};
use servers::{Kind, Server};
use watch::Watchers;

const CYCLES: &str = "cycles/s";
/// Who wants the same lock.
pub(crate) const RIVALS: usize = 16;

/// What can be measured by itself.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Own,
    Line,
    Watch,
    Held,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Own, Self::Line, Self::Watch, Self::Held];

    /// Whoever asks takes no more than one thread of the machine that it shares with the servers:
    /// with two, which wake each other, a quarter fewer cycles were made. What a thousand watchers
    /// are told is more than one thread can hear.
    fn runtime(self) -> io::Result<Runtime> {
        match self {
            Self::Watch => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
            _ => Builder::new_current_thread().enable_all().build(),
        }
    }
}

pub(crate) fn measure(parts: &[Part], scale: Scale) -> Table {
    let mut table = Table::default();
    let measured = parts.iter().try_for_each(|part| {
        part.runtime()?.block_on(async {
            match part {
                Part::Own => own_locks(&mut table, scale).await,
                Part::Line => one_lock(&mut table, scale).await,
                Part::Watch => watchers(&mut table, scale).await,
                Part::Held => held_locks(&mut table, scale).await,
            }
        })
    });
    if let Err(error) = measured {
        table.fail(format!("{error:#}"));
    }
    table
}

/// Those that are installed; the others are named.
fn start(kinds: &[Kind], table: &mut Table) -> anyhow::Result<Vec<Server>> {
    let mut servers = Vec::new();
    for &kind in kinds {
        match Server::start(kind)? {
            Some(server) => servers.push(server),
            None => table.leave_out(format!(
                "{}: not installed (Debian: etcd-server, zookeeper, redis-server)",
                kind.name()
            )),
        }
    }
    Ok(servers)
}

/// One row for each peer; we are the first.
pub(crate) fn beside(
    table: &mut Table,
    kinds: &[Kind],
    (name, unit): (&str, &'static str),
    figures: &[Rates],
    targets: &[(Kind, Target)],
) {
    for (kind, rates) in kinds.iter().zip(figures).skip(1) {
        let target = targets.iter().find(|(of, _)| of == kind).map(|(_, target)| *target);
        let against = (kind.name(), rates.median());
        let (ours, ratio) = (figures[0].median(), figures[0].over(rates));
        table.compare(name, (ours, unit), against, ratio, target);
    }
}

fn kinds(servers: &[Server]) -> Vec<Kind> {
    servers.iter().map(|server| server.kind).collect()
}

/// Crowds of these sizes; those in one row take turns with each other, too.
const CROWDS: [&[usize]; 3] = [&[1], &[16], &[64, 256]];

async fn own_locks(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let servers = start(&[Kind::Vez, Kind::Etcd, Kind::ZooKeeper, Kind::Redis], table)?;
    let span = Duration::from_millis(scale.pick(1_500, 500).into());
    let mut ours = Rates::default();
    for sizes in CROWDS {
        eprintln!("measuring {sizes:?} clients with locks of their own …");
        let of = |size| {
            servers.iter().map(move |server| Crowd { servers: slice::from_ref(server), size })
        };
        let crowds: Vec<_> = sizes.iter().flat_map(|size| of(*size)).collect();
        let [rates, medians] = compete(&crowds, scale.pick(7, 3), span).await?;
        let rates = rates.chunks(servers.len());
        for ((size, rates), medians) in sizes.iter().zip(rates).zip(medians.chunks(servers.len())) {
            beside_own(table, *size, &servers, [rates, medians]);
            if *size == 256 {
                let (figure, few) =
                    ((rates[0].median(), CYCLES), ("vez, 64 clients", ours.median()));
                let (name, collapse) = ("lock and unlock, 256 clients", Target::AtLeast(1.0));
                table.compare(name, figure, few, rates[0].over(&ours), Some(collapse));
            }
            ours = rates[0].clone();
        }
    }
    Ok(())
}

fn beside_own(table: &mut Table, size: usize, servers: &[Server], [rates, medians]: [&[Rates]; 2]) {
    if size == 1 {
        let name = ("lock and unlock, 1 client, median", "ms");
        beside(table, &kinds(servers), name, medians, &[(Kind::Etcd, Target::AtMost(0.6))]);
    }
    let name = format!("lock and unlock, {size} clients");
    let targets = [(Kind::Etcd, Target::AtLeast(5.0)), (Kind::ZooKeeper, Target::AtLeast(2.0))];
    let targets = if size == 64 { &targets[..] } else { &[] };
    beside(table, &kinds(servers), (&name, CYCLES), rates, targets);
}

async fn one_lock(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    eprintln!("measuring {RIVALS} clients that want the same lock …");
    let servers = start(&[Kind::Vez, Kind::Etcd, Kind::ZooKeeper], table)?;
    let span = Duration::from_millis(scale.pick(5_000, 2_000).into());
    let services: Vec<_> = servers.iter().map(slice::from_ref).collect();
    let [rates, waits, clocked, in_ms] =
        hand_over(&services, RIVALS, scale.pick(5, 2), span).await?;
    let name = format!("hand-overs, {RIVALS} clients, one lock");
    beside(table, &kinds(&servers), (&name, "/s"), &rates, &[(Kind::Etcd, Target::AtLeast(10.0))]);
    for (name, longest, target) in [
        ("longest wait there, in rounds of all others", &waits[0], Some(Target::AtMost(3.0))),
        ("the same with what the host took", &clocked[0], None),
    ] {
        let longest = longest.median();
        table.compare(name, (longest, "rounds"), ("one", 1.0), longest, target);
    }
    beside(table, &kinds(&servers), ("the same by the clock", "ms"), &in_ms, &[]);
    Ok(())
}

async fn watchers(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    const NUMBER: usize = 1_000;
    eprintln!("measuring {NUMBER} watchers …");
    let servers = start(&[Kind::Vez, Kind::Etcd], table)?;
    let span = Duration::from_millis(scale.pick(4_000, 1_500).into());
    let mut crowds = Vec::new();
    for server in &servers {
        crowds.push(Watchers::gather(server, NUMBER).await?);
    }
    let [rates] = calm::in_turns(servers.len(), scale.pick(5, 2), async |place, _| {
        Ok([crowds[place].told(&servers[place], span).await?])
    })
    .await?;
    let name = format!("events told, {NUMBER} watchers of one prefix");
    beside(table, &kinds(&servers), (&name, "/s"), &rates, &[(Kind::Etcd, Target::AtLeast(3.0))]);
    Ok(())
}

async fn held_locks(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let number = scale.pick(100_000, 10_000);
    eprintln!("measuring {number} locks that are held …");
    let mut all: Vec<(Kind, Held)> = Vec::new();
    for kind in [Kind::Vez, Kind::Etcd] {
        for mut server in start(&[kind], table)? {
            all.push((kind, held::measure(&mut server, number as usize).await?));
        }
    }
    let name = |what: &str| format!("{number} locks held: {what}");
    let ours = &all[0].1;
    for (peer, theirs) in &all[1..] {
        let against = (peer.name(), theirs.megabytes);
        let (ratio, half) = (ours.megabytes / theirs.megabytes, Some(Target::AtMost(0.5)));
        table.compare(name("memory"), (ours.megabytes, "MB"), against, ratio, half);
        let against = (peer.name(), theirs.back_seconds);
        let ratio = ours.back_seconds / theirs.back_seconds;
        table.compare(name("back after SIGKILL"), (ours.back_seconds, "s"), against, ratio, None);
    }
    for (what, figure, unit, most) in [
        ("back after SIGKILL", ours.back_seconds, "s", 2.0),
        ("kept alive every 20 s, TTL 60 s", ours.keeping, "of a core", 0.05),
    ] {
        let within = Some(Target::AtMost(1.0));
        table.compare(name(what), (figure, unit), ("the limit", most), figure / most, within);
    }
    Ok(())
}
