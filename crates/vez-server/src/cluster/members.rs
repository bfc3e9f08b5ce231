//! Who belongs to the cluster, and how that changes: by the leader, one change at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::async_runtime::Instant as _;
use openraft::async_runtime::watch::WatchReceiver as _;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::impls::BasicNode;
use rand::RngExt as _;
use tonic::Code;
use vez_api::etcdserverpb::Member;
use vez_api::peer::change_request::{Add, Change, Publish, Update};

use super::card::Card;
use crate::chance::Chance;
use crate::raft::{ProposeError, Replica};

/// Who is promoted lacks at most so many entries.
const LAG_MAX: u64 = 1_000;
/// While another change is under way, one is tried again after this.
const RETRY: Duration = Duration::from_millis(20);

/// What became of a change: the entry that holds it, and who was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub(crate) index: u64,
    pub(crate) member: u64,
}

fn refused(code: Code, text: &str) -> ProposeError {
    ProposeError::Refused { code: code.into(), text: text.to_owned() }
}

/// All members, as this one knows them.
#[derive(Clone, Debug)]
struct Roll {
    cards: BTreeMap<u64, Card>,
    voters: BTreeSet<u64>,
}

impl Replica {
    fn roll(&self) -> Roll {
        let metrics = self.raft().server_metrics();
        let now = metrics.borrow_watched();
        let members = &now.membership_config;
        let cards = members.nodes().map(|(id, node)| (*id, Card::parse(&node.addr)));
        Roll { cards: cards.collect(), voters: members.voter_ids().collect() }
    }

    /// For clients.
    pub(crate) fn members(&self) -> Vec<Member> {
        let Roll { cards, voters } = self.roll();
        let member = |(id, card): (u64, Card)| {
            let Card { name, peer_urls, client_urls, .. } = card;
            Member { id, name, peer_urls, client_urls, is_learner: !voters.contains(&id) }
        };
        cards.into_iter().map(member).collect()
    }

    /// What the log says of a member.
    pub(super) fn card(&self, member: u64) -> Option<Card> {
        self.roll().cards.remove(&member)
    }

    /// Changes who belongs to the cluster, which only the leader can.
    pub(super) async fn change_here(&self, change: Change) -> Result<Changed, ProposeError> {
        // Those of other members come at the same time, when a cluster begins.
        let _turn = self.changing().lock().await;
        // Of a leader that could not be sure of itself, the list may be an old one.
        self.confirm_here().await?;
        loop {
            let (changes, member) = self.plan(&change)?;
            match self.raft().change_membership(changes, false).await {
                Ok(written) => return Ok(Changed { index: written.log_id.index, member }),
                Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(
                    ChangeMembershipError::InProgress(_),
                ))) => tokio::time::sleep(RETRY).await,
                Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(error))) => {
                    return Err(refused(Code::FailedPrecondition, &format!("vez: {error}")));
                }
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => {
                    return Err(ProposeError::NotLeader { leader: None, address: None });
                }
                Err(_) => return Err(ProposeError::Unknown),
            }
        }
    }

    /// What is to be done, if it may be; and to whom.
    fn plan(&self, change: &Change) -> Result<(ChangeMembers<u64, BasicNode>, u64), ProposeError> {
        let roll = self.roll();
        let known = |member: u64| {
            let card = roll.cards.get(&member).cloned();
            card.ok_or_else(|| refused(Code::NotFound, "etcdserver: member not found"))
        };
        let set = |member: u64, card: &Card| {
            let node = BasicNode { addr: card.to_string() };
            (ChangeMembers::SetNodes(BTreeMap::from([(member, node)])), member)
        };
        Ok(match change {
            Change::Add(Add { peer_urls, is_learner }) => {
                roll.check_urls(peer_urls, None)?;
                let card = Card {
                    peer_urls: peer_urls.clone(),
                    is_candidate: !is_learner,
                    ..Card::default()
                };
                let member = Chance.random_range(1..=u64::MAX);
                let node = BasicNode { addr: card.to_string() };
                (ChangeMembers::AddNodes(BTreeMap::from([(member, node)])), member)
            }
            Change::Promote(member) => {
                known(*member)?;
                self.check_promotion(&roll, *member)?;
                (ChangeMembers::AddVoterIds(BTreeSet::from([*member])), *member)
            }
            Change::Update(Update { member, peer_urls }) => {
                let card = known(*member)?;
                roll.check_urls(peer_urls, Some(*member))?;
                set(*member, &Card { peer_urls: peer_urls.clone(), ..card })
            }
            Change::Remove(member) => {
                known(*member)?;
                let gone = BTreeSet::from([*member]);
                if roll.voters.contains(member) {
                    self.check_removal(&roll, *member)?;
                    (ChangeMembers::RemoveVoters(gone), *member)
                } else {
                    (ChangeMembers::RemoveNodes(gone), *member)
                }
            }
            Change::Publish(Publish { member, name, client_urls, peer_urls }) => {
                let mut card = known(*member)?;
                if card.peer_urls.is_empty() {
                    card.peer_urls.clone_from(peer_urls);
                }
                let (name, client_urls) = (name.clone(), client_urls.clone());
                set(*member, &Card { name, client_urls, ..card })
            }
        })
    }

    /// Whether a learner has come far enough to count.
    fn check_promotion(&self, roll: &Roll, member: u64) -> Result<(), ProposeError> {
        if roll.voters.contains(&member) {
            let text = "etcdserver: can only promote a learner member";
            return Err(refused(Code::FailedPrecondition, text));
        }
        let metrics = self.raft().metrics();
        let now = metrics.borrow_watched();
        let matched = now.replication.as_ref().and_then(|all| all.get(&member).copied().flatten());
        let last = now.last_log_index.unwrap_or_default();
        let is_in_sync = matched.is_some_and(|at| last <= at.index.saturating_add(LAG_MAX));
        drop(now);
        if !is_in_sync || !self.is_heard(member) {
            let text = "etcdserver: can only promote a learner member which is in sync with leader";
            return Err(refused(Code::FailedPrecondition, text));
        }
        Ok(())
    }

    /// Whether those that stay are a majority of those that stay, as far as they answer.
    fn check_removal(&self, roll: &Roll, member: u64) -> Result<(), ProposeError> {
        let stay: Vec<_> = roll.voters.iter().copied().filter(|id| *id != member).collect();
        let heard = stay.iter().filter(|id| self.is_heard(**id)).count();
        if heard <= stay.len() / 2 {
            let text = "etcdserver: re-configuration failed due to not enough started members";
            return Err(refused(Code::FailedPrecondition, text));
        }
        Ok(())
    }

    /// Whether this leader has heard of a member of late.
    pub(super) fn is_heard(&self, member: u64) -> bool {
        let metrics = self.raft().metrics();
        let now = metrics.borrow_watched();
        let heard = now.heartbeat.as_ref().and_then(|all| all.get(&member).copied().flatten());
        let of_late = heard.is_some_and(|at| at.into_inner().elapsed() < self.timing().election);
        of_late || member == self.member_id()
    }

    /// Learners that are to count as soon as they can.
    pub(super) fn ripe(&self) -> Vec<u64> {
        let roll = self.roll();
        let candidates = roll.cards.iter().filter(|(_, card)| card.is_candidate);
        let ripe = candidates.filter(|(id, _)| self.check_promotion(&roll, **id).is_ok());
        ripe.map(|(id, _)| *id).collect()
    }
}

impl Roll {
    fn check_urls(&self, urls: &[String], own: Option<u64>) -> Result<(), ProposeError> {
        let is_url = |url: &String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains([' ', ',', '/']))
        };
        if urls.is_empty() || !urls.iter().all(is_url) {
            let text = "etcdserver: given member URLs are invalid";
            return Err(refused(Code::InvalidArgument, text));
        }
        let others = self.cards.iter().filter(|(id, _)| Some(**id) != own);
        let mut taken = others.flat_map(|(_, card)| &card.peer_urls);
        if taken.any(|url| urls.contains(url)) {
            return Err(refused(Code::FailedPrecondition, "etcdserver: Peer URLs already exists"));
        }
        Ok(())
    }
}
