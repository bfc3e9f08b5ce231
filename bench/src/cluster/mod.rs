//! Three members of the service against three of etcd and of ZooKeeper, all on this machine: how
//! much they do, and for how long nothing is done when the leader goes.

mod failover;
mod soak;

use std::time::Duration;

use crate::serve::load::{Crowd, alone, compete, hand_over};
use crate::serve::servers::{Kind, Server};
use crate::serve::{RIVALS, beside};
use crate::sim::Scale;
use crate::table::{Table, Target};
use failover::Fault;
pub(crate) use soak::soak;

const MEMBERS: usize = 3;
/// So many clients at a time, each with a lock of its own.
const CROWD: usize = 64;
const KINDS: [Kind; 3] = [Kind::Vez, Kind::Etcd, Kind::ZooKeeper];

/// What can be measured by itself.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Load,
    Gone,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Load, Self::Gone];
}

pub(crate) fn measure(parts: &[Part], scale: Scale) -> Table {
    let mut table = Table::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            for part in parts {
                match part {
                    Part::Load => load(&mut table, scale).await?,
                    Part::Gone => leaders_that_go(&mut table, scale).await?,
                }
            }
            Ok(())
        })
    });
    if let Err(error) = measured {
        table.fail(format!("{error:#}"));
    }
    table
}

/// Of each kind that is installed; the others are named.
fn start(table: &mut Table) -> anyhow::Result<Vec<Vec<Server>>> {
    let mut clusters = Vec::new();
    for kind in KINDS {
        match Server::start_together(kind, MEMBERS)? {
            Some(servers) => clusters.push(servers),
            None => table.leave_out(format!(
                "{}: not installed (Debian: etcd-server, zookeeper)",
                kind.name()
            )),
        }
    }
    Ok(clusters)
}

fn services(clusters: &[Vec<Server>]) -> Vec<&[Server]> {
    clusters.iter().map(Vec::as_slice).collect()
}

fn kinds(clusters: &[Vec<Server>]) -> Vec<Kind> {
    clusters.iter().map(|servers| servers[0].kind).collect()
}

async fn load(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let clusters = start(table)?;
    one_client(table, &clusters, scale).await?;
    own_locks(table, &clusters, scale).await?;
    one_lock(table, &clusters, scale).await
}

async fn one_client(
    table: &mut Table,
    clusters: &[Vec<Server>],
    scale: Scale,
) -> anyhow::Result<()> {
    eprintln!("measuring one client of three members …");
    let span = Duration::from_millis(scale.pick(3_000, 1_500).into());
    let medians = alone(&services(clusters), scale.pick(7, 3), span).await?;
    let name = ("three members: lock and unlock, 1 client, median", "ms");
    beside(table, &kinds(clusters), name, &medians, &[(Kind::Etcd, Target::AtMost(0.6))]);
    Ok(())
}

async fn own_locks(
    table: &mut Table,
    clusters: &[Vec<Server>],
    scale: Scale,
) -> anyhow::Result<()> {
    eprintln!("measuring {CROWD} clients of three members with locks of their own …");
    let span = Duration::from_millis(scale.pick(3_000, 1_000).into());
    let crowds: Vec<_> = clusters.iter().map(|servers| Crowd { servers, size: CROWD }).collect();
    let [rates, _] = compete(&crowds, scale.pick(7, 3), span).await?;
    let name = format!("three members: lock and unlock, {CROWD} clients");
    let targets = [(Kind::Etcd, Target::AtLeast(5.0)), (Kind::ZooKeeper, Target::AtLeast(2.0))];
    beside(table, &kinds(clusters), (&name, "cycles/s"), &rates, &targets);
    Ok(())
}

async fn one_lock(table: &mut Table, clusters: &[Vec<Server>], scale: Scale) -> anyhow::Result<()> {
    eprintln!("measuring {RIVALS} clients of three members that want the same lock …");
    let span = Duration::from_millis(scale.pick(5_000, 2_000).into());
    let [rates, ..] = hand_over(&services(clusters), RIVALS, scale.pick(5, 2), span).await?;
    let name = format!("three members: hand-overs, {RIVALS} clients, one lock");
    beside(table, &kinds(clusters), (&name, "/s"), &rates, &[(Kind::Etcd, Target::AtLeast(10.0))]);
    Ok(())
}

/// One cluster at a time: the others would only be in its way.
async fn leaders_that_go(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let rounds = scale.pick(10, 3);
    for fault in [Fault::Kill, Fault::Stop] {
        for kind in KINDS {
            eprintln!("measuring how long the leader is missed: {}, {fault} …", kind.name());
            let Some(mut servers) = Server::start_together(kind, MEMBERS)? else { continue };
            let missed = failover::measure(&mut servers, fault, rounds).await?;
            let what = format!("{} after {fault} of the leader, median of {rounds}", kind.name());
            let limit = fault.limit().as_secs_f64();
            let target = (kind == Kind::Vez).then_some(Target::AtMost(1.0));
            for (who, gaps, target) in [
                ("nobody is acknowledged anything", &missed.by_all, target),
                ("the unluckiest client", &missed.by_one, None),
            ] {
                let (name, gap) = (format!("{what}: {who}"), gaps.median());
                table.compare(name, (gap, "s"), ("the limit", limit), gap / limit, target);
            }
            if kind == Kind::Vez {
                let name = format!("vez after {fault} of the leader, worst of {rounds}");
                let gap = missed.by_all.largest();
                table.compare(name, (gap, "s"), ("the limit", limit), gap / limit, None);
            }
        }
    }
    Ok(())
}
