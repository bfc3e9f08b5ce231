//! Clients that lock and unlock as fast as they can.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::calm::{self, Pauses};
use crate::measure::Rates;

use super::client::Client;
use super::servers::Server;

/// What came of a span under load.
struct Load {
    /// Locked and unlocked, a second.
    rate: f64,
    /// How long each cycle took, shortest first.
    cycles: Vec<Duration>,
}

impl Load {
    fn median_ms(&self) -> f64 {
        self.cycles[self.cycles.len() / 2].as_secs_f64() * 1_000.0
    }
}

/// So many clients, each with a lock of its own, as many at each of these servers, which are one
/// service.
#[derive(Clone, Copy)]
pub(crate) struct Crowd<'a> {
    pub(crate) servers: &'a [Server],
    pub(crate) size: usize,
}

impl Crowd<'_> {
    /// They come for this and leave afterwards: what clients who only wait for their turn say to be
    /// taken for alive, ZooKeeper's several times a second each, would be paid by whoever has it.
    async fn cycle(self, span: Duration) -> anyhow::Result<Load> {
        let mut clients = Vec::new();
        for (id, server) in (0..self.size).zip(self.servers.iter().cycle()) {
            let name = format!("own-{}-{id}", self.size);
            clients.push(Client::connect(server, &name, id).await?);
        }
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for mut client in clients {
            tasks.spawn(async move {
                let mut cycles = Vec::new();
                while began.elapsed() < span {
                    let since = Instant::now();
                    client.lock().await?;
                    client.unlock().await?;
                    cycles.push(since.elapsed());
                }
                anyhow::Ok((client, cycles))
            });
        }
        let (mut all, mut leaving) = (Vec::new(), Vec::new());
        while let Some(done) = tasks.join_next().await {
            let (client, cycles) = done??;
            leaving.push(client);
            all.extend(cycles);
        }
        let rate = all.len() as f64 / began.elapsed().as_secs_f64();
        all.sort_unstable();
        for client in leaving {
            client.leave().await?;
        }
        Ok(Load { rate, cycles: all })
    }
}

/// Has crowds take turns: how many cycles each makes a second, and how long one takes at the
/// median, in milliseconds.
pub(crate) async fn compete(
    crowds: &[Crowd<'_>],
    rounds: u32,
    span: Duration,
) -> anyhow::Result<[Vec<Rates>; 2]> {
    calm::in_turns(crowds.len(), rounds, async |place, _| {
        let load = crowds[place].cycle(span).await?;
        Ok([load.rate, load.median_ms()])
    })
    .await
}

/// Has services take turns with one client at a time, for as long at each of their members, since
/// it is better off where the leader is: how long a cycle takes at the median, in milliseconds, in
/// the mean of the members.
pub(crate) async fn alone(
    services: &[&[Server]],
    rounds: u32,
    span: Duration,
) -> anyhow::Result<Vec<Rates>> {
    let [medians] = calm::in_turns(services.len(), rounds, async |place, _| {
        let members = services[place];
        let (many, mut sum) = (members.len() as u32, 0.0);
        for member in members {
            let client = Crowd { servers: std::slice::from_ref(member), size: 1 };
            sum += client.cycle(span / many).await?.median_ms();
        }
        Ok([sum / f64::from(many)])
    })
    .await?;
    Ok(medians)
}

/// Has services take turns with so many clients that want one lock: how many hand-overs each makes
/// a second, how long somebody waited at most, in turns, and as the clock says it, in turns and in
/// milliseconds.
pub(crate) async fn hand_over(
    services: &[&[Server]],
    size: usize,
    rounds: u32,
    span: Duration,
) -> anyhow::Result<[Vec<Rates>; 4]> {
    calm::in_turns(services.len(), rounds, async |place, round| {
        let name = format!("same-{round}");
        let outcome = struggle(services[place], &name, size, span).await?;
        let Struggle { hand_overs, longest_wait, by_the_clock, clock_ms } = outcome;
        Ok([hand_overs, longest_wait, by_the_clock, clock_ms])
    })
    .await
}

/// What came of many clients that want the same lock.
struct Struggle {
    /// From one to the next, a second.
    hand_overs: f64,
    /// The longest anybody waited, in turns: 1 is the time that the others need at the mean. What
    /// the host took meanwhile does not count.
    longest_wait: f64,
    /// With that, and the same in milliseconds.
    by_the_clock: f64,
    clock_ms: f64,
}

/// As many at each of these servers, which are one service.
async fn struggle(
    servers: &[Server],
    name: &str,
    size: usize,
    span: Duration,
) -> anyhow::Result<Struggle> {
    let mut clients = Vec::new();
    for (id, server) in (0..size).zip(servers.iter().cycle()) {
        clients.push(Client::connect(server, name, id).await?);
    }
    let pauses = Pauses::watch();
    let began = Instant::now();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let waits = Arc::clone(&waits);
        tasks.spawn(async move {
            while began.elapsed() < span {
                let since = Instant::now();
                client.lock().await?;
                let waited = (since, Instant::now());
                waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
                client.unlock().await?;
            }
            anyhow::Ok(client)
        });
    }
    let mut leaving = Vec::new();
    while let Some(done) = tasks.join_next().await {
        leaving.push(done??);
    }
    let took = began.elapsed().as_secs_f64();
    let taken = pauses.end();
    for client in leaving {
        client.leave().await?;
    }
    let waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
    let hand_overs = waits.len() as f64 / took;
    let longest = |wait: &dyn Fn(Instant, Instant) -> Duration| {
        let waits = waits.iter().map(|&(since, until)| wait(since, until));
        waits.max().unwrap_or_default().as_secs_f64()
    };
    let in_turns = |seconds: f64| seconds * hand_overs / (size - 1) as f64;
    let clocked = longest(&|since, until| until - since);
    let waited =
        longest(&|since, until| (until - since).saturating_sub(taken.between(since, until)));
    let (longest_wait, by_the_clock) = (in_turns(waited), in_turns(clocked));
    Ok(Struggle { hand_overs, longest_wait, by_the_clock, clock_ms: 1_000.0 * clocked })
}
