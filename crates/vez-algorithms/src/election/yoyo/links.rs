//! A process's links in `YoYo`: which way each points, and what has come over it.

use serde::{Deserialize, Serialize};
use vez_core::NodeId;

use super::{Pick, Rule};

/// The links not pruned, by neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Link {
    pub(super) peer: NodeId,
    /// The neighbour's identity.
    pub(super) uid: u64,
    pub(super) way: Way,
    /// What came down it, perhaps already for the next iteration.
    pub(super) heard: Option<u64>,
    /// What came up it.
    pub(super) vote: Option<Vote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) enum Way {
    Unknown,
    Down,
    Up,
}

/// What goes up a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Vote {
    pub yes: bool,
    pub prune: bool,
}

impl Link {
    /// A link just voted NO on may bring the next iteration before this one is over here.
    pub(super) fn expects_yo(&self) -> bool {
        let turned = self.vote.is_some_and(|vote| !vote.yes && !vote.prune);
        self.heard.is_none() && (self.way == Way::Up || turned)
    }
}

impl Links {
    pub(super) fn to(peers: impl Iterator<Item = NodeId>) -> Self {
        let link = |peer| Link { peer, uid: 0, way: Way::Unknown, heard: None, vote: None };
        let mut links: Vec<Link> = peers.map(link).collect();
        links.sort_unstable_by_key(|link| link.peer);
        Self(links)
    }

    pub(super) fn get(&mut self, peer: NodeId) -> Option<&mut Link> {
        let index = self.0.binary_search_by_key(&peer, |link| link.peer).ok()?;
        Some(&mut self.0[index])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn forget_unknown(&mut self) {
        self.0.retain(|link| link.way != Way::Unknown);
    }

    pub(super) fn down(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().filter(|link| link.way == Way::Down).map(|link| link.peer)
    }

    pub(super) fn is_source(&self) -> bool {
        self.0.iter().all(|link| link.way == Way::Down)
    }

    /// How many links have nothing come down them yet.
    pub(super) fn silent(&self) -> u32 {
        let silent = |link: &&Link| link.way == Way::Up && link.heard.is_none();
        self.0.iter().filter(silent).count() as u32
    }

    /// The best identity that has come down.
    pub(super) fn best(&self, pick: Pick) -> Option<u64> {
        let heard = self.0.iter().filter(|link| link.way == Way::Up).filter_map(|link| link.heard);
        match pick {
            Pick::Min => heard.min(),
            Pick::Max => heard.max(),
        }
    }

    /// Ends an iteration: what to vote to whom above. Links voted NO turn round, pruned ones go.
    pub(super) fn answer(&mut self, best: u64, rule: Rule, prune: bool) -> Vec<(NodeId, Vote)> {
        // A pruned link's vote says nothing: its NO would make its owner a source again.
        let votes = self.0.iter().filter_map(|link| link.vote).filter(|vote| !vote.prune);
        let (left, yeses) = votes.fold((0, 0), |(n, yes), vote| (n + 1, yes + u32::from(vote.yes)));
        let good = match rule {
            Rule::All => yeses == left,
            Rule::Any => left == 0 || 0 < yeses,
        };
        let kept = self.kept();
        let alone = left == 0 && kept.len() == 1;
        let mut votes = Vec::new();
        self.0.retain_mut(|link| {
            if let (Way::Down, Some(vote)) = (link.way, link.vote.take()) {
                link.way = if vote.yes { Way::Down } else { Way::Up };
                return !vote.prune;
            }
            let yes = link.heard.take() == Some(best) && good;
            let spare = alone || kept.binary_search(&link.peer).is_err();
            votes.push((link.peer, Vote { yes, prune: prune && spare }));
            link.way = if yes { Way::Up } else { Way::Down };
            !(prune && spare)
        });
        votes
    }

    /// Of the links that brought the same identity one is enough: the smallest neighbour's.
    fn kept(&self) -> Vec<NodeId> {
        let up = self.0.iter().filter(|link| link.way == Way::Up);
        let mut up: Vec<_> = up.map(|link| (link.heard, link.uid, link.peer)).collect();
        up.sort_unstable();
        up.dedup_by_key(|&mut (heard, ..)| heard);
        let mut kept: Vec<NodeId> = up.into_iter().map(|(.., peer)| peer).collect();
        kept.sort_unstable();
        kept
    }
}
