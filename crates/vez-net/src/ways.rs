//! How messages come and go: over links that lose nothing, or through the air.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vez_core::NodeId;

use crate::counters::Counters;
use crate::door::Door;
use crate::group::Group;
use crate::link::{Line, Link};
use crate::node::{Event, NodeError};
use crate::tls::Tls;
use crate::udp::Air;
use crate::wire::{Greeting, Parcel};

pub(crate) enum Ways {
    /// The way to each of the others.
    Lines(Vec<Option<Arc<Line>>>),
    Air(Air),
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
            Self::Lines(lines) => {
                // Who has left the group hears nothing.
                if let Some(line) = &lines[to.index()] {
                    line.say(parcel);
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
        if is_lossy && tls.is_none() {
            let socket = UdpSocket::bind(&address).await.map_err(failed)?;
            let local = socket.local_addr().map_err(failed)?;
            guarded(local, insecure)?;
            return Ok((self.air(socket, tasks).await, local.to_string()));
        }
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        guarded(local, insecure || tls.is_some())?;
        let tls = tls.map(Arc::new);
        Ok((self.links(listener, is_lossy, tls.as_ref(), tasks), local.to_string()))
    }

    fn address(&self) -> &str {
        let mine = self.group.members.iter().find(|member| member.id == self.id);
        mine.map_or("", |member| &member.address)
    }

    async fn air(self, socket: UdpSocket, tasks: &mut JoinSet<()>) -> Ways {
        let Self { group, greeting, events, counters, .. } = self;
        let (air, ear) = Air::open(socket, greeting, group, events, counters).await;
        tasks.spawn(ear.listen());
        Ways::Air(air)
    }

    fn links(
        self,
        listener: TcpListener,
        is_lossy: bool,
        tls: Option<&Arc<Tls>>,
        tasks: &mut JoinSet<()>,
    ) -> Ways {
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
        let mut lines = Vec::new();
        for (member, latest) in members.iter().zip(latest) {
            if member.id == self.id || member.left {
                lines.push(None);
                continue;
            }
            let counters = Arc::clone(self.counters);
            let line = Arc::new(Line::new(member.id, is_lossy, latest, counters));
            let keeper = Link {
                address: member.reach().to_owned(),
                greeting: self.greeting,
                tls: tls.cloned(),
                line: Arc::clone(&line),
                events: self.events.clone(),
            };
            tasks.spawn(keeper.run());
            lines.push(Some(line));
        }
        Ways::Lines(lines)
    }
}

/// Without certificates, what anybody could reach is not opened unless that is meant.
fn guarded(address: SocketAddr, is_safe: bool) -> Result<(), NodeError> {
    match address.ip().is_loopback() || is_safe {
        true => Ok(()),
        false => Err(NodeError::Open(address.to_string())),
    }
}
