//! Datagrams, for algorithms that expect messages to be lost, repeated and reordered.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc;
use vez_core::NodeId;

use crate::counters::{Counters, Garbage};
use crate::group::Group;
use crate::node::Event;
use crate::wire::{Greeting, Parcel, VERSION};

/// More does not fit a datagram; it is lost, which this channel may do.
const DATAGRAM_MAX: usize = 60_000;

#[derive(Serialize, Deserialize)]
struct Datagram {
    greeting: Greeting,
    parcel: Parcel,
}

pub(crate) struct Air {
    socket: Arc<UdpSocket>,
    greeting: Greeting,
    /// By process; `None` where its name does not resolve.
    addresses: Vec<Option<SocketAddr>>,
    counters: Arc<Counters>,
}

impl Air {
    pub(crate) async fn open(
        socket: Arc<UdpSocket>,
        greeting: Greeting,
        reaches: &[&str],
        counters: Arc<Counters>,
    ) -> Self {
        let mut addresses = Vec::new();
        for reach in reaches {
            let found = lookup_host(*reach).await.ok();
            addresses.push(found.and_then(|mut found| found.next()));
        }
        Self { socket, greeting, addresses, counters }
    }

    /// Says it once, whether anybody hears it or not.
    pub(crate) fn send(&self, to: NodeId, parcel: Parcel) {
        let datagram = Datagram { greeting: self.greeting, parcel };
        let bytes = postcard::to_allocvec(&datagram).expect("plain data");
        let address = self.addresses[to.index()].filter(|_| bytes.len() <= DATAGRAM_MAX);
        if address.is_none_or(|address| self.socket.try_send_to(&bytes, address).is_err()) {
            self.counters.unsent();
        }
    }

    /// Hears whatever comes, until the process ends.
    pub(crate) async fn listen(
        socket: Arc<UdpSocket>,
        greeting: Greeting,
        group: Arc<Group>,
        events: mpsc::Sender<Event>,
        counters: Arc<Counters>,
    ) {
        let mut buffer = vec![0; 1 << 16];
        let mut lives = vec![0; group.members.len()];
        loop {
            // An error here is about something sent before, to somebody who was not there.
            let Ok((length, _)) = socket.recv_from(&mut buffer).await else { continue };
            let Ok(datagram) = postcard::from_bytes::<Datagram>(&buffer[..length]) else {
                counters.garbage(Garbage::Frame);
                continue;
            };
            let Greeting { version, group: digest, id, life } = datagram.greeting;
            let node =
                group.node(id).ok().filter(|_| version == VERSION && digest == greeting.group);
            let Some(node) = node.filter(|&node| id != greeting.id && !group.member(node).left)
            else {
                counters.garbage(Garbage::Stranger);
                continue;
            };
            if life < lives[node.index()] {
                continue;
            }
            lives[node.index()] = life;
            let event = Event::Heard { from: node, parcel: datagram.parcel };
            // Full: this channel may lose it.
            if let Err(mpsc::error::TrySendError::Closed(_)) = events.try_send(event) {
                return;
            }
        }
    }
}
