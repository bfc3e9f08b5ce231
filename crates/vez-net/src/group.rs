//! Who takes part: names, addresses and the wiring between them, as a file says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vez_core::{Layout, NodeId, Shape, Topology};

/// The processes of a group, in index (ring) order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Processes of groups with other names do not talk to these.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Grows with every change of the members; processes of different epochs do not talk.
    #[serde(default)]
    pub epoch: u64,
    /// `complete`, `ring`, `star`, `line`, `grid` or the links; the algorithm's own if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(u64, u64)>,
    /// The algorithm's settings.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub config: toml::Table,
    #[serde(rename = "node")]
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    pub id: u64,
    /// Where it listens: host and port.
    pub address: String,
    /// Where others reach it, if not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Gone for good. It keeps its place, so that nobody else's changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
}

impl Member {
    /// Where others reach it.
    pub fn reach(&self) -> &str {
        self.reach.as_deref().unwrap_or(&self.address)
    }
}

fn unnamed() -> String {
    "vez".to_owned()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error("{0}")]
    Syntax(String),
    #[error("no members; expected at least one [[node]]")]
    Empty,
    #[error("the id {0} is listed twice")]
    Twice(u64),
    #[error("the address {0} is listed twice")]
    SameAddress(String),
    #[error("node {0}: the address `{1}` is not HOST:PORT")]
    Address(u64, String),
    #[error("no node has the id {0}; expected one of {1}")]
    Unknown(u64, String),
    #[error("topology `{0}`; expected complete, ring, star, line or grid, or edges = [[1, 2], …]")]
    Shape(String),
    #[error("{0}")]
    Topology(String),
    #[error("epoch {new}: expected more than {old}, for the members differ")]
    OldEpoch { old: u64, new: u64 },
    #[error(
        "node {0} has gone from its place; members are added at the end, and `left = true` marks who is gone"
    )]
    Moved(u64),
}

impl Group {
    pub fn read(text: &str) -> Result<Self, GroupError> {
        let group: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map_or(String::new(), |line| format!("line {line}: "));
            GroupError::Syntax(format!("{line}{}", error.message().replace('\n', " ")))
        })?;
        group.check()?;
        Ok(group)
    }

    fn check(&self) -> Result<(), GroupError> {
        let (mut ids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for member in &self.members {
            if !ids.insert(member.id) {
                return Err(GroupError::Twice(member.id));
            }
            let port = member.address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            let Some(Ok(port)) = port else {
                return Err(GroupError::Address(member.id, member.address.clone()));
            };
            // Port 0 is any that is free.
            if port != 0 && !addresses.insert(&member.address) {
                return Err(GroupError::SameAddress(member.address.clone()));
            }
        }
        if self.members.is_empty() { Err(GroupError::Empty) } else { Ok(()) }
    }

    /// Whether this may take the place of `old` while processes run.
    pub fn may_replace(&self, old: &Self) -> Result<(), GroupError> {
        if self == old {
            return Ok(());
        }
        if self.epoch <= old.epoch {
            return Err(GroupError::OldEpoch { old: old.epoch, new: self.epoch });
        }
        for (index, member) in old.members.iter().enumerate() {
            if self.members.get(index).is_none_or(|new| new.id != member.id) {
                return Err(GroupError::Moved(member.id));
            }
        }
        Ok(())
    }

    /// What all must know alike, as text: everything but where they are.
    pub(crate) fn agreed(&self) -> String {
        let same = |member: &Member| (member.id, member.merit, member.weight, member.left);
        let members: Vec<_> = self.members.iter().map(same).collect();
        let Self { name, epoch, topology, edges, config, .. } = self;
        format!("{name:?} {epoch} {topology:?} {edges:?} {config} {members:?}")
    }

    pub fn node(&self, id: u64) -> Result<NodeId, GroupError> {
        let place = self.members.iter().position(|member| member.id == id);
        place.map(|index| NodeId(index as u32)).ok_or_else(|| {
            let known: Vec<String> = self.members.iter().map(|m| m.id.to_string()).collect();
            GroupError::Unknown(id, known.join(", "))
        })
    }

    pub fn member(&self, node: NodeId) -> &Member {
        &self.members[node.index()]
    }

    pub fn topology(&self, layout: Layout) -> Result<Topology, GroupError> {
        let n = self.members.len() as u32;
        let ids: Vec<u64> = self.members.iter().map(|member| member.id).collect();
        let places: BTreeMap<u64, u32> = ids.iter().copied().zip(0..).collect();
        let shape = match self.topology.as_deref() {
            _ if !self.edges.is_empty() => {
                let place = |id: &u64| places.get(id).copied().ok_or(*id);
                let edges = self.edges.iter().map(|(a, b)| Ok((place(a)?, place(b)?)));
                let edges: Result<Vec<_>, u64> = edges.collect();
                let known = || format!("{ids:?}");
                Some(Shape::Edges(edges.map_err(|id| GroupError::Unknown(id, known()))?))
            }
            None => None,
            Some("complete") => Some(Shape::Complete),
            Some("ring") => Some(Shape::Ring),
            Some("star") => Some(Shape::Star),
            Some("line") => Some(Shape::Line),
            Some("grid") => Some(Shape::Grid),
            Some(other) => return Err(GroupError::Shape(other.to_owned())),
        };
        let made = match shape {
            Some(shape) => Topology::new(shape, n, 0),
            None => Topology::of(layout, n),
        };
        let topology = made.map_err(|error| GroupError::Topology(error.to_string()))?;
        topology.fits(layout).map_err(|error| GroupError::Topology(error.to_string()))?;
        let mut topology = topology.with_uids(ids.clone());
        if self.members.iter().any(|member| member.merit.is_some()) {
            let merits = self.members.iter().map(|member| member.merit.unwrap_or(0));
            topology = topology.with_merits(merits.collect());
        }
        if self.members.iter().any(|member| member.weight.is_some()) {
            let weights = self.members.iter().map(|member| member.weight.unwrap_or(1));
            topology = topology.with_weights(weights.collect());
        }
        Ok(topology)
    }
}
