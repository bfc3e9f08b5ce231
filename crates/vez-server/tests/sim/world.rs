//! Three servers and their clients in one process, with a network, a clock and disks of their own:
//! a run is a function of its seed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::task::JoinSet;
use turmoil::{Builder, Sim};
use vez_server::chance::{self, Chance};
use vez_server::cluster::{Membership, Timing};
use vez_server::raft::Keeping;
use vez_server::store::Disk;
use vez_server::{Limits, Listen, Options, Server, Site};
use vez_tls::net::Net;

use crate::clients::{self, Town};
use crate::crowd;
use crate::disk::{Scratch, Slowness};
use crate::faults::{self, Calendar, Plan};
use crate::judge::{Judge, WRITERS};
use crate::net::Simulated;
use crate::tenants;
use crate::watchers;

pub(crate) const SERVERS: [&str; 3] = ["ana", "bea", "eva"];
pub(crate) const CLIENTS: [&str; 3] = ["pia", "rui", "zoe"];
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;

/// Everything happens at moments that are so far apart.
const TICK: Duration = Duration::from_millis(4);
pub(crate) const LATENCY_MAX: Duration = Duration::from_millis(20);
/// How long anybody may wait once it is clear what is wrong, or that nothing is any more.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World<'a> {
    pub(crate) sim: Sim<'a>,
    pub(crate) disks: [Arc<Slowness>; 3],
}

/// How a run went: its story, and what was wrong.
pub(crate) struct Run {
    pub(crate) story: String,
    pub(crate) wrong: Option<String>,
}

fn options(
    member: usize,
    net: &Arc<dyn Net>,
    scratch: &Scratch,
    slowness: &Arc<Slowness>,
) -> Options {
    let listen = |port| vec![Listen { address: (Ipv4Addr::UNSPECIFIED, port).into(), tls: false }];
    let peers = |name: &str| vec![format!("http://{name}:{PEER_PORT}")];
    let name = SERVERS[member].to_owned();
    let initial: BTreeMap<_, _> =
        SERVERS.iter().map(|name| ((*name).to_owned(), peers(name))).collect();
    Options {
        data_dir: scratch.path().join(&name),
        listen_client: listen(CLIENT_PORT),
        tls: None,
        advertise_client: vec![client_url(&name)],
        membership: Some(Membership {
            listen: listen(PEER_PORT),
            advertise: peers(&name),
            token: "sim".to_owned(),
            initial,
            is_existing: false,
            tls: None,
        }),
        timing: Timing {
            heartbeat: Duration::from_millis(150),
            election: Duration::from_millis(800),
        },
        limits: Limits { history: 200, ..Limits::default() },
        // Small, so that there are snapshots, and some who need them.
        keeping: Keeping {
            snapshot_entries: 60,
            snapshot_fold: 0,
            entries_kept: 10,
            ..Keeping::default()
        },
        site: Site { net: Arc::clone(net), disk: Disk::Simulated(Arc::clone(slowness) as Arc<_>) },
        name,
    }
}

fn client_url(name: &str) -> String {
    format!("http://{name}:{CLIENT_PORT}")
}

fn idle() -> Duration {
    Duration::from_millis(Chance.random_range(5..500))
}

async fn clients(town: Town, number: usize) -> turmoil::Result {
    let mut clients = JoinSet::new();
    clients.spawn(clients::write(town.clone(), number));
    if number != 2 {
        clients.spawn(clients::read(town.clone(), number));
        clients.spawn(clients::lock(town.clone(), number));
        clients.spawn(tenants::visit(town.clone(), number));
    }
    if number != 1 {
        clients.spawn(clients::lock_by_server(town.clone(), number));
    }
    if number != 0 {
        clients.spawn(clients::campaign(town.clone(), number));
        clients.spawn(tenants::write_notes(town.clone(), number));
    }
    clients.spawn(tenants::reside(town.clone(), number));
    clients.spawn(watchers::watch(town.clone(), number));
    while let Some(ended) = clients.join_next().await {
        ended?;
    }
    // All that was acknowledged is at every member.
    clients::look(&town, &town.endpoints[number]).await;
    tenants::read_notes(&town, &town.endpoints[number]).await;
    Ok(())
}

/// Runs one seed.
pub(crate) fn run(seed: u64) -> Run {
    let scratch = Scratch::new();
    let (mut world, town) = World::new(seed, &scratch);
    let judge = Arc::clone(&town.judge);
    for (number, name) in CLIENTS.into_iter().enumerate() {
        world.sim.client(name, clients(town.clone(), number));
    }
    let wrong = world.live(seed, &judge).err();
    Run { story: judge.story(), wrong }
}

/// Runs one seed in which nothing goes wrong, and many write at the same moment.
pub(crate) fn run_crowd(seed: u64) -> turmoil::Result {
    let scratch = Scratch::new();
    let (mut world, town) = World::new(seed, &scratch);
    world.sim.client(CLIENTS[0], crowd::write_at_once(town));
    world.sim.run()
}

impl World<'_> {
    /// Servers that are about to start, and what their clients know.
    fn new(seed: u64, scratch: &Scratch) -> (Self, Town) {
        chance::seed(seed);
        let net: Arc<dyn Net> = Arc::new(Simulated::default());
        let sim = Builder::new()
            .rng_seed(seed)
            .epoch(std::time::UNIX_EPOCH)
            .tick_duration(TICK)
            .simulation_duration(Duration::from_mins(10))
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(LATENCY_MAX)
            .tcp_capacity(4096)
            .enable_random_order()
            .build();
        let disks = [(); 3].map(|()| Arc::new(Slowness::default()));
        let mut world = World { sim, disks };
        for (member, name) in SERVERS.into_iter().enumerate() {
            let options = options(member, &net, scratch, &world.disks[member]);
            world.sim.host(name, move || {
                let options = options.clone();
                async move {
                    let mut server = Server::start(options).await?;
                    server.removed().await;
                    Err("it believes that it was removed".into())
                }
            });
        }
        let judge = Arc::new(Judge::new(&["hall", "room", "throne"], || {
            turmoil::sim_elapsed().unwrap_or_default()
        }));
        let town = Town {
            endpoints: SERVERS.map(client_url).to_vec(),
            net,
            judge,
            ttl: Duration::from_secs(1),
            deadline: Duration::from_secs(1),
            idle: Arc::new(idle),
            stay: Arc::new(idle),
        };
        (world, town)
    }

    /// Goes through all faults, and sees that every client gets on afterwards: first, with some
    /// seeds, without one member that does not come back, then with all.
    fn live(&mut self, seed: u64, judge: &Judge) -> Result<(), String> {
        let Plan { episodes, mut siege } = faults::plan(seed);
        let mut calendar = Calendar::new(episodes);
        let mut faults = Vec::new();
        let mut waiting = None;
        let mut is_over = false;
        while !is_over {
            let now = self.sim.elapsed();
            let mut on = calendar.on(now, judge.progress()[..WRITERS].iter().sum());
            if calendar.is_over(now) {
                on.extend(siege.clone());
                let steps = judge.steps();
                let (since, before) = waiting.get_or_insert_with(|| (now, steps.clone()));
                let stuck: Vec<_> =
                    steps.iter().filter(|(who, now)| before.get(*who) == Some(now)).collect();
                if *since + PATIENCE < now {
                    return Err(format!("with {on:?} some do not get on: {stuck:?}"));
                }
                if stuck.is_empty() && siege.take().is_some() {
                    waiting = None;
                } else if stuck.is_empty() {
                    judge.end();
                }
            }
            if on != faults {
                judge.note(&format!("wrong from {:.3} on: {on:?}", now.as_secs_f64()));
                self.change(&faults, &on);
                faults = on;
            }
            let step = self.sim.step().map_err(|error| error.to_string());
            // Taken in any case: it is not the next run's.
            if let Some(panic) = crate::panics::take() {
                return Err(panic);
            }
            is_over = step?;
        }
        Ok(())
    }
}
