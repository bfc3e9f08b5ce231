//! What the program does when it is started again, as one of the processes measured.

use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use vez_algorithms::election::{Bully, Monitored};
use vez_algorithms::mutex::TokenRing;
use vez_core::{Meta, NodeId, Protocol, Topology, Wish};
use vez_net::{Asked, Group, Machine, Node, Order, Outbox, Process, Settings, Told};

/// Lives as one of them.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["relay"] => runtime.block_on(super::bare::relay()),
        ["token", id, file] => runtime.block_on(live::<TokenRing>(id.parse()?, file)),
        ["monitored", id, file] => runtime.block_on(live::<Monitored<Bully>>(id.parse()?, file)),
        _ => bail!("no such process"),
    }
}

/// Counts what a process hears.
struct Counted {
    machine: Box<dyn Machine>,
    heard: Arc<AtomicU64>,
}

impl Machine for Counted {
    fn meta(&self) -> Meta {
        self.machine.meta()
    }

    fn topology(&self) -> &Topology {
        self.machine.topology()
    }

    fn boot(&mut self, saved: Option<&[u8]>, out: &mut Outbox) -> Result<(), String> {
        self.machine.boot(saved, out)
    }

    fn ask(&mut self, wish: Wish, out: &mut Outbox) -> Asked {
        self.machine.ask(wish, out)
    }

    fn hear(&mut self, from: NodeId, payload: &[u8], out: &mut Outbox) -> bool {
        self.heard.fetch_add(1, Ordering::Relaxed);
        self.machine.hear(from, payload, out)
    }

    fn fire(&mut self, timer: u32, out: &mut Outbox) {
        self.machine.fire(timer, out);
    }
}

async fn live<P: Protocol>(id: u64, file: &str) -> anyhow::Result<()> {
    let group = Group::read(&std::fs::read_to_string(file)?)?;
    let config: P::Config = group.config.clone().try_into()?;
    let topology = Arc::new(group.topology(P::META.layout)?);
    let process = Process::<P>::new(group.node(id)?, topology, config, id);
    let heard = Arc::new(AtomicU64::new(0));
    let machine = Counted { machine: Box::new(process), heard: Arc::clone(&heard) };
    let settings =
        Settings { group, id, data: None, record: None, tls: None, insecure: false, seed: id };
    let node = Node::open(Box::new(machine), settings).await?;
    let (orders, taken) = mpsc::channel(16);
    let (say, mut told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line == "start" && orders.blocking_send(Order::Wish(Wish::Start)).is_err() {
                return;
            }
            if line == "count" {
                // Whoever asked reads it, or is gone.
                let _ = writeln!(io::stdout(), "heard {}", heard.load(Ordering::Relaxed));
            }
        }
        std::process::exit(0);
    });
    let life = tokio::spawn(node.run(taken, say));
    while let Some(told) = told.recv().await {
        match told {
            Told::Ready { .. } => writeln!(io::stdout(), "ready")?,
            Told::Notice { kind: "Leader", value, .. } => {
                writeln!(io::stdout(), "leader {}", value["Leader"]["id"])?;
            }
            _ => (),
        }
    }
    life.await.context("the driver broke")??;
    Ok(())
}
