//! Datagrams, for algorithms that expect messages to be lost, repeated and reordered.
//!
//! Two processes with one id are told apart by where they are: who is heard from another place
//! than the one known is taken in only when that one does not answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc;
use tokio::time::Instant;
use vez_core::NodeId;

use crate::counters::{Counters, Garbage};
use crate::door::{OUTLIVED, TAKEN};
use crate::group::Group;
use crate::node::Event;
use crate::wire::{Greeting, Parcel, VERSION};

/// More does not fit a datagram; it is lost, which this channel may do.
const DATAGRAM_MAX: usize = 60_000;
/// How long the process known has to say that it is there. It is asked again with every datagram
/// of who claims its id, for questions may be lost, too.
const PROBE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
struct Datagram {
    greeting: Greeting,
    said: Said,
}

#[derive(Serialize, Deserialize)]
enum Said {
    /// Nothing but who it is: a process says so when it begins, and is answered.
    Hello,
    Parcel(Parcel),
    /// Somebody else claims to be you. Are you there?
    Probe,
    Here,
    /// To this life: the id is another's.
    Refused {
        life: u64,
        why: Refusal,
    },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Refusal {
    Taken,
    Outlived,
}

pub(crate) struct Air {
    socket: Arc<UdpSocket>,
    greeting: Greeting,
    /// By process; `None` where its name does not resolve.
    addresses: Arc<Vec<Option<SocketAddr>>>,
    counters: Arc<Counters>,
}

/// Who listens.
pub(crate) struct Ear {
    socket: Arc<UdpSocket>,
    greeting: Greeting,
    addresses: Arc<Vec<Option<SocketAddr>>>,
    counters: Arc<Counters>,
    group: Arc<Group>,
    events: mpsc::Sender<Event>,
    peers: Vec<Known>,
}

/// What is known of one peer: the life that is heard, and where.
#[derive(Clone, Copy, Default)]
struct Known {
    life: u64,
    place: Option<SocketAddr>,
    claim: Option<Claim>,
}

/// A later life, from another place, that waits for the one known to answer.
#[derive(Clone, Copy)]
struct Claim {
    life: u64,
    place: SocketAddr,
    until: Instant,
}

impl Air {
    pub(crate) async fn open(
        socket: UdpSocket,
        greeting: Greeting,
        group: &Arc<Group>,
        events: mpsc::Sender<Event>,
        counters: &Arc<Counters>,
    ) -> (Self, Ear) {
        let socket = Arc::new(socket);
        let mut addresses = Vec::new();
        for member in &group.members {
            let found = lookup_host(member.reach()).await.ok();
            addresses.push(found.and_then(|mut found| found.next()));
        }
        let addresses = Arc::new(addresses);
        let ear = Ear {
            socket: Arc::clone(&socket),
            greeting,
            addresses: Arc::clone(&addresses),
            counters: Arc::clone(counters),
            group: Arc::clone(group),
            events,
            peers: vec![Known::default(); group.members.len()],
        };
        let air = Self { socket, greeting, addresses, counters: Arc::clone(counters) };
        let is_peer = |index: &usize| {
            let member = &group.members[*index];
            member.id != greeting.id && !member.left
        };
        let hello = written(greeting, Said::Hello);
        for address in (0..group.members.len()).filter(is_peer).filter_map(|i| air.addresses[i]) {
            // Who is not there yet says so itself when it begins.
            let _ = air.socket.send_to(&hello, address).await;
        }
        (air, ear)
    }

    /// Says it once, whether anybody hears it or not.
    pub(crate) fn send(&self, to: NodeId, parcel: Parcel) {
        self.say(to, Said::Parcel(parcel));
    }

    fn say(&self, to: NodeId, said: Said) {
        let bytes = written(self.greeting, said);
        let address = self.addresses[to.index()].filter(|_| bytes.len() <= DATAGRAM_MAX);
        if address.is_none_or(|address| self.socket.try_send_to(&bytes, address).is_err()) {
            self.counters.unsent();
        }
    }
}

impl Ear {
    /// Hears whatever comes, until the process ends.
    pub(crate) async fn listen(mut self) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            // An error here is about something sent before, to somebody who was not there.
            let Ok((length, place)) = self.socket.recv_from(&mut buffer).await else { continue };
            let Ok(datagram) = postcard::from_bytes::<Datagram>(&buffer[..length]) else {
                self.counters.garbage(Garbage::Frame);
                continue;
            };
            let Some(event) = self.heard(datagram, place) else { continue };
            // Full: this channel may lose it.
            if let Err(mpsc::error::TrySendError::Closed(_)) = self.events.try_send(event) {
                return;
            }
        }
    }

    fn heard(&mut self, datagram: Datagram, place: SocketAddr) -> Option<Event> {
        let Greeting { version, group, id, life } = datagram.greeting;
        let node = self.group.node(id).ok();
        let node = node.filter(|_| version == VERSION && group == self.greeting.group);
        let Some(node) = node.filter(|&node| !self.group.member(node).left) else {
            self.counters.garbage(Garbage::Stranger);
            return None;
        };
        if id == self.greeting.id {
            // What comes back from where it was sent is our own.
            if life != self.greeting.life {
                self.refuse(place, life, Refusal::Taken);
            }
            return None;
        }
        if let Said::Refused { life, why } = datagram.said {
            // From where the group says that peer is, and to this very life: or it is no answer.
            let is_ours = life == self.greeting.life;
            let is_there = self.addresses[node.index()] == Some(place);
            let why = match why {
                Refusal::Taken => TAKEN.to_owned(),
                Refusal::Outlived => OUTLIVED.to_owned(),
            };
            return (is_ours && is_there).then_some(Event::Refused { peer: id, why });
        }
        if !self.takes(node, life, place) {
            return None;
        }
        match datagram.said {
            Said::Parcel(parcel) => Some(Event::Heard { from: node, parcel }),
            // Who begins is told who was here before.
            Said::Hello | Said::Probe => {
                self.answer(place, Said::Here);
                None
            }
            Said::Here => {
                if let Some(claim) = self.peers[node.index()].claim.take() {
                    self.refuse(claim.place, claim.life, Refusal::Taken);
                }
                None
            }
            Said::Refused { .. } => None,
        }
    }

    /// Whether what this life says from there is to be heard.
    fn takes(&mut self, node: NodeId, life: u64, place: SocketAddr) -> bool {
        let known = self.peers[node.index()];
        if life < known.life {
            self.refuse(place, life, Refusal::Outlived);
            return false;
        }
        let is_late = |claim: Claim| claim.life == life && claim.until <= Instant::now();
        let may = match known.place {
            None => true,
            // Two processes are never at one place: who is there now has come back.
            Some(other) if other == place || life == known.life => true,
            Some(_) => known.claim.is_some_and(is_late),
        };
        if may {
            let claim = known.claim.filter(|claim| life == known.life && life < claim.life);
            self.peers[node.index()] = Known { life, place: Some(place), claim };
            return true;
        }
        let claim = known.claim.filter(|claim| claim.life == life);
        let claim =
            claim.unwrap_or_else(|| Claim { life, place, until: Instant::now() + PROBE_WITHIN });
        self.peers[node.index()].claim = Some(claim);
        if let Some(first) = known.place {
            self.answer(first, Said::Probe);
        }
        false
    }

    fn refuse(&self, place: SocketAddr, life: u64, why: Refusal) {
        self.counters.garbage(Garbage::Stranger);
        self.answer(place, Said::Refused { life, why });
    }

    fn answer(&self, place: SocketAddr, said: Said) {
        // Lost, it is asked for again.
        let _ = self.socket.try_send_to(&written(self.greeting, said), place);
    }
}

fn written(greeting: Greeting, said: Said) -> Vec<u8> {
    postcard::to_allocvec(&Datagram { greeting, said }).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process 1 of two, who knows nobody yet.
    async fn ear() -> Ear {
        let member = |id| format!("[[node]]\nid = {id}\naddress = \"127.0.0.1:0\"\n");
        let group = Arc::new(Group::read(&(member(1) + &member(2))).unwrap());
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let greeting = Greeting { version: VERSION, group: 7, id: 1, life: 5 };
        let counters = Arc::new(Counters::default());
        let (events, _) = mpsc::channel(1);
        Air::open(socket, greeting, &group, events, &counters).await.1
    }

    fn place(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    const TWO: NodeId = NodeId(1);

    #[tokio::test]
    async fn who_comes_back_to_the_same_place_is_heard_at_once_and_its_past_no_more() {
        let mut ear = ear().await;
        assert!(ear.takes(TWO, 8, place(1)));
        assert!(ear.takes(TWO, 9, place(1)));
        assert!(!ear.takes(TWO, 8, place(1)));
    }

    #[tokio::test]
    async fn who_comes_from_elsewhere_is_heard_only_if_the_first_stays_silent() {
        let mut ear = ear().await;
        assert!(ear.takes(TWO, 8, place(1)));
        assert!(!ear.takes(TWO, 9, place(2)));
        // The first goes on, and the claim stands until it has answered.
        assert!(ear.takes(TWO, 8, place(1)));
        let claim = ear.peers[1].claim.as_mut().unwrap();
        assert!(claim.life == 9 && claim.place == place(2));
        claim.until = Instant::now();
        assert!(ear.takes(TWO, 9, place(2)));
        assert!(!ear.takes(TWO, 8, place(1)));
    }

    #[tokio::test]
    async fn who_answers_keeps_its_id_however_late_the_other_asks_again() {
        let mut ear = ear().await;
        let said = |life, said| Datagram {
            greeting: Greeting { version: VERSION, group: 7, id: 2, life },
            said,
        };
        assert!(ear.heard(said(8, Said::Hello), place(1)).is_none());
        assert!(ear.heard(said(9, Said::Hello), place(2)).is_none());
        assert!(ear.heard(said(8, Said::Here), place(1)).is_none());
        assert!(ear.peers[1].claim.is_none());
        assert!(!ear.takes(TWO, 9, place(2)));
    }

    #[tokio::test]
    async fn a_refusal_counts_only_from_where_a_peer_is_and_to_this_life() {
        let mut ear = ear().await;
        let refused = |life| Datagram {
            greeting: Greeting { version: VERSION, group: 7, id: 2, life: 8 },
            said: Said::Refused { life, why: Refusal::Taken },
        };
        ear.addresses = Arc::new(vec![None, Some(place(3))]);
        assert!(ear.heard(refused(5), place(4)).is_none());
        assert!(ear.heard(refused(4), place(3)).is_none());
        assert!(matches!(ear.heard(refused(5), place(3)), Some(Event::Refused { peer: 2, .. })));
    }
}
