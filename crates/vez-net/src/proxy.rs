//! Faults between real processes: everybody reaches everybody else through here.
//!
//! Each direction of each link is a forwarder of its own. A cut link is silent: nothing passes,
//! nothing is refused, and what waits goes on its way when the link is mended, as with a cable.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use vez_core::Seeded;

/// What a direction of a link does to what passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub cut: bool,
    pub delay: RangeInclusive<Duration>,
    /// The share of datagrams that are lost; on a connection, how likely it breaks with each
    /// piece that passes.
    pub loss: f64,
}

impl Default for Fault {
    fn default() -> Self {
        Self { cut: false, delay: Duration::ZERO..=Duration::ZERO, loss: 0.0 }
    }
}

/// Forwarders for every direction of every link of a group.
pub struct Proxy {
    links: BTreeMap<(u64, u64), Way>,
    targets: BTreeMap<u64, watch::Sender<Option<SocketAddr>>>,
    _tasks: JoinSet<()>,
}

struct Way {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
}

/// What one forwarder works with.
#[derive(Clone)]
struct Rules {
    fault: watch::Receiver<Fault>,
    target: watch::Receiver<Option<SocketAddr>>,
    chance: Arc<Mutex<Seeded>>,
}

/// As much waits on a slow connection, in pieces; and datagrams on a slow link.
const PIECES_MAX: usize = 64;
const PIECE: usize = 1 << 14;
const DATAGRAMS_MAX: usize = 4096;

impl Proxy {
    /// Opens them on this machine, for datagrams or for connections.
    pub async fn open(ids: &[u64], is_lossy: bool, seed: u64) -> io::Result<Self> {
        let mut tasks = JoinSet::new();
        let target = |&id: &u64| (id, watch::channel(None).0);
        let targets: BTreeMap<u64, watch::Sender<_>> = ids.iter().map(target).collect();
        let mut links = BTreeMap::new();
        let pairs = ids.iter().flat_map(|&from| ids.iter().map(move |&to| (from, to)));
        for (number, (from, to)) in pairs.filter(|(from, to)| from != to).enumerate() {
            let (fault, watched) = watch::channel(Fault::default());
            let chance = Arc::new(Mutex::new(Seeded::stream(seed, number as u64)));
            let rules = Rules { fault: watched, target: targets[&to].subscribe(), chance };
            let address = if is_lossy {
                let socket = UdpSocket::bind("127.0.0.1:0").await?;
                let address = socket.local_addr()?;
                tasks.spawn(rules.forward_datagrams(Arc::new(socket)));
                address
            } else {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                tasks.spawn(rules.forward_connections(listener));
                address
            };
            links.insert((from, to), Way { address, fault });
        }
        Ok(Self { links, targets, _tasks: tasks })
    }

    /// Where `from` finds `to`.
    pub fn address(&self, from: u64, to: u64) -> Option<SocketAddr> {
        self.links.get(&(from, to)).map(|way| way.address)
    }

    /// Where a process really is; `None` while it is down. Who connects meanwhile waits.
    pub fn found(&self, id: u64, address: Option<SocketAddr>) {
        if let Some(target) = self.targets.get(&id) {
            target.send_replace(address);
        }
    }

    /// Changes what one direction does; whether there is such a link.
    pub fn change(&self, from: u64, to: u64, change: impl FnOnce(&mut Fault)) -> bool {
        let Some(way) = self.links.get(&(from, to)) else { return false };
        way.fault.send_modify(change);
        true
    }

    pub fn change_all(&self, change: impl Fn(u64, u64, &mut Fault)) {
        for (&(from, to), way) in &self.links {
            way.fault.send_modify(|fault| change(from, to, fault));
        }
    }
}

impl Rules {
    /// Until the link is whole.
    async fn open(&mut self) {
        // Who could change it may be gone; then it stays as it is.
        if self.fault.wait_for(|fault| !fault.cut).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits of chance are enough")]
    fn is_lost(&self) -> bool {
        let loss = self.fault.borrow().loss;
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
        0.0 < loss && (chance.below_u64(1 << 53) as f64 / (1_u64 << 53) as f64) < loss
    }

    fn delay(&self) -> Duration {
        let delay = self.fault.borrow().delay.clone();
        let width = delay.end().saturating_sub(*delay.start()).as_micros() as u64;
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
        *delay.start() + Duration::from_micros(chance.below_u64(width + 1))
    }

    async fn forward_datagrams(self, socket: Arc<UdpSocket>) {
        let mut buffer = vec![0; 1 << 16];
        let mut flights = JoinSet::new();
        loop {
            while flights.try_join_next().is_some() {}
            let Ok((length, _)) = socket.recv_from(&mut buffer).await else { continue };
            let target = *self.target.borrow();
            let Some(target) = target.filter(|_| !self.fault.borrow().cut && !self.is_lost())
            else {
                continue;
            };
            let delay = self.delay();
            if delay.is_zero() {
                // Datagrams may be lost.
                let _ = socket.send_to(&buffer[..length], target).await;
            } else if flights.len() < DATAGRAMS_MAX {
                let (socket, piece) = (Arc::clone(&socket), buffer[..length].to_vec());
                flights.spawn(async move {
                    tokio::time::sleep(delay).await;
                    let _ = socket.send_to(&piece, target).await;
                });
            }
        }
    }

    async fn forward_connections(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.spawn(self.clone().forward_connection(stream));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn forward_connection(mut self, near: TcpStream) {
        self.open().await;
        let found = self.target.wait_for(Option::is_some).await.map(|target| *target);
        let Ok(Some(target)) = found else { return };
        let Ok(far) = TcpStream::connect(target).await else { return };
        if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
            return;
        }
        let (near_reader, near_writer) = near.into_split();
        let (far_reader, far_writer) = far.into_split();
        // Whichever way ends, so does the other: nobody is left with half a connection.
        tokio::select! {
            () = self.clone().pass(near_reader, far_writer) => (),
            () = self.clone().pass(far_reader, near_writer) => (),
        }
    }

    /// One way of a connection. What was read waits its time in line.
    async fn pass(self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let (line, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
        let reading = async {
            let mut buffer = vec![0; PIECE];
            loop {
                let length = from.read(&mut buffer).await.unwrap_or(0);
                if length == 0 || self.is_lost() {
                    return;
                }
                let moment = Instant::now() + self.delay();
                if line.send((moment, buffer[..length].to_vec())).await.is_err() {
                    return;
                }
            }
        };
        let mut rules = self.clone();
        let writing = async {
            while let Some((moment, piece)) = due.recv().await {
                sleep_until(moment).await;
                rules.open().await;
                if to.write_all(&piece).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = reading => (),
            () = writing => (),
        }
    }
}
