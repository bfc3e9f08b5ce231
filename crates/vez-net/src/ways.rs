//! How messages come and go: over links that lose nothing, or through the air.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vez_core::NodeId;

use crate::counters::Counters;
use crate::door::Door;
use crate::group::{Group, Member};
use crate::link::{Link, WAITING_MAX};
use crate::node::{Event, NodeError};
use crate::tls::Tls;
use crate::udp::Air;
use crate::wire::{Greeting, Parcel};

pub(crate) enum Ways {
    Links { links: Vec<Option<Way>>, ids: Vec<u64>, counters: Arc<Counters> },
    Air(Air),
}

/// The way to one peer.
pub(crate) struct Way {
    letters: mpsc::Sender<(u64, Parcel)>,
    /// The peer's latest life that anybody here has heard of.
    latest: Arc<AtomicU64>,
}

/// What it takes to open them.
pub(crate) struct Call<'a> {
    pub(crate) group: &'a Arc<Group>,
    pub(crate) id: u64,
    pub(crate) greeting: Greeting,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) counters: &'a Arc<Counters>,
}

impl Ways {
    pub(crate) fn send(&self, to: NodeId, parcel: Parcel) {
        match self {
            Self::Links { links, ids, counters } => {
                let link = links[to.index()].as_ref();
                let send = |link: &Way| {
                    let life = link.latest.load(Ordering::Relaxed);
                    link.letters.try_send((life, parcel)).is_err()
                };
                if link.is_some_and(send) {
                    counters.overflowed(ids[to.index()]);
                }
            }
            Self::Air(air) => air.send(to, parcel),
        }
    }
}

impl Call<'_> {
    /// Listens where the group says; the ways out, and the address.
    pub(crate) async fn open(
        self,
        is_lossy: bool,
        tls: Option<Tls>,
        insecure: bool,
        tasks: &mut JoinSet<()>,
    ) -> Result<(Ways, String), NodeError> {
        let address = self.address().to_owned();
        let failed = |error| NodeError::Listen(address.clone(), error);
        if is_lossy {
            let socket = Arc::new(UdpSocket::bind(&address).await.map_err(failed)?);
            let local = socket.local_addr().map_err(failed)?;
            guarded(local, insecure)?;
            return Ok((self.air(socket, tasks).await, local.to_string()));
        }
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        guarded(local, insecure || tls.is_some())?;
        Ok((self.links(listener, tls.map(Arc::new).as_ref(), tasks), local.to_string()))
    }

    fn address(&self) -> &str {
        let mine = self.group.members.iter().find(|member| member.id == self.id);
        mine.map_or("", |member| &member.address)
    }

    async fn air(self, socket: Arc<UdpSocket>, tasks: &mut JoinSet<()>) -> Ways {
        let reaches: Vec<&str> = self.group.members.iter().map(Member::reach).collect();
        let counters = Arc::clone(self.counters);
        let air = Air::open(Arc::clone(&socket), self.greeting, &reaches, counters).await;
        let (group, counters) = (Arc::clone(self.group), Arc::clone(self.counters));
        tasks.spawn(Air::listen(socket, self.greeting, group, self.events, counters));
        Ways::Air(air)
    }

    fn links(self, listener: TcpListener, tls: Option<&Arc<Tls>>, tasks: &mut JoinSet<()>) -> Ways {
        let members = &self.group.members;
        let door = Door {
            greeting: self.greeting,
            group: Arc::clone(self.group),
            tls: tls.cloned(),
            events: self.events.clone(),
            counters: Arc::clone(self.counters),
            callers: Door::callers(members.len()),
        };
        let latest: Vec<_> = door.callers.iter().map(|caller| Arc::clone(&caller.latest)).collect();
        tasks.spawn(Arc::new(door).run(listener));
        let mut links = Vec::new();
        for (member, latest) in members.iter().zip(latest) {
            if member.id == self.id || member.left {
                links.push(None);
                continue;
            }
            let (sender, letters) = mpsc::channel(WAITING_MAX);
            let link = Link {
                peer: member.id,
                address: member.reach().to_owned(),
                greeting: self.greeting,
                tls: tls.cloned(),
                letters,
                latest: Arc::clone(&latest),
                events: self.events.clone(),
                counters: Arc::clone(self.counters),
            };
            tasks.spawn(link.run());
            links.push(Some(Way { letters: sender, latest }));
        }
        let ids = members.iter().map(|member| member.id).collect();
        Ways::Links { links, ids, counters: Arc::clone(self.counters) }
    }
}

/// Without certificates, what anybody could reach is not opened unless that is meant.
fn guarded(address: SocketAddr, is_safe: bool) -> Result<(), NodeError> {
    match address.ip().is_loopback() || is_safe {
        true => Ok(()),
        false => Err(NodeError::Open(address.to_string())),
    }
}
