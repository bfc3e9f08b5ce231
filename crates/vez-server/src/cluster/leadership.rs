//! Who leads, as this member sees it; and how a cluster begins.

use std::collections::BTreeMap;
use std::time::Duration;

use openraft::Raft;
use openraft::impls::BasicNode;
use openraft::raft::ReadPolicy;

use super::card::Card;
use super::link::Links;
use crate::raft::Leadership;
use crate::store::Types;
use crate::store::machine::Machine;
use crate::watched;

/// Who could not be sure that it leads asks again after this.
const RETRY: Duration = Duration::from_millis(10);

/// Announces who leads, and sees where the others are; ends with the member.
pub(crate) async fn announce(
    raft: Raft<Types, Machine>,
    member: u64,
    links: Links,
    announce: watched::Sender<Leadership>,
) {
    let mut metrics = raft.server_metrics();
    let tell = |now: Leadership| {
        announce.send_if_modified(|before| std::mem::replace(before, now) != now);
    };
    loop {
        let (term, leader) = {
            let now = metrics.borrow_and_update();
            let others = now.membership_config.nodes().filter(|(id, _)| **id != member);
            others.for_each(|(id, node)| links.learn(*id, &node.addr));
            (now.vote.leader_id.term, now.current_leader)
        };
        let mut now = Leadership { term, leader, leading: false };
        let before = *announce.borrow();
        if leader == Some(member) {
            let is_known = before.term == term && before.leading;
            now.leading = is_known || is_confirmed(&raft).await;
        }
        tell(now);
        let changed = metrics.changed();
        // Nobody could be asked in time: it is tried again.
        let changed = if leader == Some(member) && !now.leading {
            match tokio::time::timeout(RETRY, changed).await {
                Ok(changed) => changed,
                Err(_) => continue,
            }
        } else {
            changed.await
        };
        if changed.is_err() {
            tell(Leadership { leader: None, leading: false, ..now });
            return;
        }
    }
}

/// Whether a majority follows, and all that was agreed upon before is applied.
async fn is_confirmed(raft: &Raft<Types, Machine>) -> bool {
    raft.ensure_linearizable(ReadPolicy::ReadIndex).await.is_ok()
}

/// Makes a cluster of new members, if this is one of them. Each does that for itself: it is the
/// same cluster.
pub(crate) async fn gather(
    raft: &Raft<Types, Machine>,
    own: u64,
    members: &BTreeMap<u64, Card>,
) -> Result<(), String> {
    let is_made = raft.is_initialized().await.map_err(|error| error.to_string())?;
    if is_made || !members.contains_key(&own) {
        return Ok(());
    }
    let node = |card: &Card| BasicNode { addr: card.to_string() };
    let members: BTreeMap<_, _> = members.iter().map(|(id, card)| (*id, node(card))).collect();
    raft.initialize(members).await.map_err(|error| error.to_string())
}
