//! How one joins, how one is known, and how one learns that one does not belong any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver as _;
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status};
use vez_api::peer::change_request::{Change, Publish};
use vez_api::peer::greet_response::Seat;
use vez_api::peer::reception_client::ReceptionClient;
use vez_api::peer::reception_server::Reception;
use vez_api::peer::{GreetRequest, GreetResponse};

use super::Membership;
use super::card::Card;
use super::link::why;
use super::way::Way;
use super::words;
use crate::raft::Replica;
use crate::store::directory::Identity;

/// How long somebody is looked for who knows whoever wants to join.
const JOIN_WITHIN: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);
/// How long one member may take to say who belongs to the cluster.
const GREET_WITHIN: Duration = Duration::from_secs(2);

/// Says who belongs to the cluster.
pub(super) struct Desk {
    pub(super) replica: Replica,
    pub(super) token: Arc<str>,
}

#[tonic::async_trait]
impl Reception for Desk {
    async fn greet(
        &self,
        request: Request<GreetRequest>,
    ) -> Result<Response<GreetResponse>, Status> {
        let token = request.into_inner().token;
        if *token != *self.token {
            return Err(Status::failed_precondition(format!(
                "this is cluster {:x}, which has another --initial-cluster-token",
                self.replica.cluster_id()
            )));
        }
        let metrics = self.replica.raft().server_metrics();
        let members = metrics.borrow_watched().committed_membership_config.clone();
        let voters: Vec<_> = members.voter_ids().collect();
        let seat = |(id, node): (&u64, &openraft::impls::BasicNode)| Seat {
            id: *id,
            address: node.addr.clone(),
            is_voter: voters.contains(id),
        };
        Ok(Response::new(GreetResponse {
            cluster: self.replica.cluster_id(),
            agreed: (*members.log_id()).map(words::log_id),
            seats: members.nodes().map(seat).collect(),
        }))
    }
}

async fn greet(way: &Way, urls: Vec<String>, token: &str) -> Result<GreetResponse, String> {
    let first = urls.first().ok_or("it has no address")?;
    let endpoint = Endpoint::from_shared(first.clone()).map_err(|error| error.to_string())?;
    let channel = endpoint.connect_with_connector_lazy(way.among(urls));
    let request = GreetRequest { token: token.to_owned() };
    let mut reception = ReceptionClient::new(channel);
    match timeout(GREET_WITHIN, reception.greet(request)).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(why(&status)),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// Asks the members of a cluster which of them this one is, that was added to it.
pub(crate) async fn join(membership: &Membership, way: &Way) -> Result<Identity, String> {
    let own = &membership.advertise;
    let others = membership.initial.values().filter(|urls| *urls != own);
    let others: Vec<_> = others.cloned().collect();
    let mut reason = "expected other members in --initial-cluster".to_owned();
    let begun = Instant::now();
    while begun.elapsed() < JOIN_WITHIN && !others.is_empty() {
        for urls in &others {
            let answer = match greet(way, urls.clone(), &membership.token).await {
                Ok(answer) => answer,
                Err(why) => {
                    reason = format!("{}: {why}", urls.join(","));
                    continue;
                }
            };
            let is_own = |seat: &&Seat| {
                Card::parse(&seat.address).peer_urls.iter().any(|url| own.contains(url))
            };
            if let Some(seat) = answer.seats.iter().find(is_own) {
                return Ok(Identity { cluster: answer.cluster, member: seat.id });
            }
            let (cluster, own) = (answer.cluster, own.join(","));
            reason = format!("cluster {cluster:x} has no member at {own}: expected vez member add");
        }
        tokio::time::sleep(RETRY).await;
    }
    Err(reason)
}

impl Replica {
    /// Returns when the others have agreed that this member does not belong to them any more.
    pub(crate) async fn removed(&self, way: Way, token: Arc<str>) {
        loop {
            tokio::time::sleep(self.timing().election).await;
            let is_heard = self.heard().ago() < 2 * self.timing().election;
            let is_well = is_heard || (self.is_leader() && self.has_majority());
            if !is_well && self.is_removed(&way, &token).await {
                return;
            }
        }
    }

    async fn is_removed(&self, way: &Way, token: &str) -> bool {
        let (agreed, others) = {
            let metrics = self.raft().server_metrics();
            let now = metrics.borrow_watched();
            let nodes = now.membership_config.nodes().filter(|(id, _)| **id != self.member_id());
            let cards: BTreeMap<_, _> =
                nodes.map(|(id, node)| (*id, Card::parse(&node.addr))).collect();
            (*now.membership_config.log_id(), cards)
        };
        for card in others.into_values() {
            let Ok(answer) = greet(way, card.peer_urls, token).await else { continue };
            // Whoever agreed later than we knew knows better. Who led until then knows it, too.
            let theirs = answer.agreed.map(words::to_log_id);
            let is_known = theirs.is_some() && agreed <= theirs;
            let is_there = answer.seats.iter().any(|seat| seat.id == self.member_id());
            if answer.cluster == self.cluster_id() && is_known && !is_there {
                return true;
            }
        }
        false
    }

    /// Tells the others what this member is called and where its clients find it; and, while it
    /// leads, lets those count who have come far enough.
    pub(crate) async fn publish(&self, own: Card) {
        loop {
            if let Some(card) = self.card(self.member_id()) {
                let peer_urls_known = !card.peer_urls.is_empty() || own.peer_urls.is_empty();
                let is_known = card.name == own.name && card.client_urls == own.client_urls;
                if !is_known || !peer_urls_known {
                    let Card { name, peer_urls, client_urls, .. } = own.clone();
                    let member = self.member_id();
                    let word = Publish { member, name, client_urls, peer_urls };
                    if let Err(error) = self.change_anywhere(Change::Publish(word)).await {
                        tracing::debug!("the others do not know this member's name yet: {error}");
                    }
                }
            }
            if self.leadership().borrow().leading {
                for member in self.ripe() {
                    match self.change_here(Change::Promote(member)).await {
                        Ok(_) => tracing::info!("member {member:x} has caught up, and counts now"),
                        Err(error) => tracing::debug!("member {member:x} does not count: {error}"),
                    }
                }
            }
            tokio::time::sleep(self.timing().election).await;
        }
    }
}
