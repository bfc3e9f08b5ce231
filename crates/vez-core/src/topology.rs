//! Who is in the system, who is wired to whom, and what each process was born with.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use crate::{Chance, Layout, NodeId, Seeded};

/// The wiring of a system. Static for a run and shared by all its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    n: u32,
    shape: Shape,
    links: Links,
    /// Election identities; empty means `uid == address + 1`.
    uids: Vec<u64>,
    /// What makes one process fitter to lead than another; empty means all alike.
    merits: Vec<u64>,
    /// Voting weights; empty means one vote each.
    weights: Vec<u32>,
}

/// The form of a wiring, as scenarios name it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Complete,
    /// A cycle in index order; messages travel from `i` to `i + 1` and, where an algorithm uses
    /// both directions, back.
    Ring,
    /// All linked to the first.
    Star,
    Line,
    /// Rows of a near-square rectangle, filled in index order.
    Grid,
    /// A random tree, and this share of all pairs besides.
    Random(f64),
    /// Exactly these links, by address.
    Edges(Vec<(u32, u32)>),
}

// The probability is never NaN: `Topology::new` refuses it.
impl Eq for Shape {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Links {
    Complete,
    Ring,
    /// Adjacency lists, flattened: neighbours of `i` are `to[from[i]..from[i + 1]]`.
    Graph {
        from: Vec<u32>,
        to: Vec<NodeId>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TopologyError {}

impl Topology {
    /// Most processes a run may have: addresses and everything kept per process stay small.
    pub const NODES_MAX: u32 = 4_000_000;
    /// Most links a graph may list.
    pub const LINKS_MAX: usize = 20_000_000;

    /// Wires `n` processes; `seed` decides what a random graph looks like.
    pub fn new(shape: Shape, n: u32, seed: u64) -> Result<Self, TopologyError> {
        if n == 0 || n > Self::NODES_MAX {
            let max = Self::NODES_MAX;
            return Err(TopologyError(format!("{n} processes; expected 1 to {max}")));
        }
        let links = match &shape {
            Shape::Complete => Links::Complete,
            Shape::Ring => Links::Ring,
            Shape::Star => graph(n, (1..n).map(|i| (0, i))),
            Shape::Line => graph(n, (1..n).map(|i| (i - 1, i))),
            Shape::Grid => graph(n, grid_edges(n)),
            Shape::Random(p) => graph(n, random_edges(n, *p, seed)?),
            Shape::Edges(edges) => graph(n, checked_edges(n, edges)?),
        };
        let (uids, merits, weights) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { n, shape, links, uids, merits, weights })
    }

    /// The wiring an algorithm asks for when nobody says otherwise.
    pub fn of(layout: Layout, n: u32) -> Result<Self, TopologyError> {
        let shape = match layout {
            Layout::Complete | Layout::Connected => Shape::Complete,
            Layout::Star | Layout::Tree => Shape::Star,
            Layout::Ring | Layout::RingBoth => Shape::Ring,
        };
        Self::new(shape, n, 0)
    }

    /// Whether an algorithm that needs `layout` can run here; if not, why.
    pub fn fits(&self, layout: Layout) -> Result<(), TopologyError> {
        let wrong = |what: &str| Err(TopologyError(what.to_owned()));
        match (layout, &self.links) {
            (_, _) if self.n == 1 => Ok(()),
            (Layout::Complete | Layout::Star | Layout::Connected, Links::Complete)
            | (Layout::Ring | Layout::RingBoth | Layout::Connected, Links::Ring) => Ok(()),
            (Layout::Complete, _) => wrong("it needs every process linked to every other"),
            (Layout::Ring | Layout::RingBoth, _) => wrong("it needs a ring"),
            (Layout::Star, _) => {
                let hub = NodeId(0);
                match self.ids().skip(1).all(|id| self.linked(hub, id)) {
                    true => Ok(()),
                    false => wrong("it needs every process linked to the first"),
                }
            }
            (Layout::Tree, _) => {
                match self.is_connected() && self.link_count() == self.n as usize - 1 {
                    true => Ok(()),
                    false => wrong("it needs a tree: all connected, no cycles"),
                }
            }
            (Layout::Connected, Links::Graph { .. }) => match self.is_connected() {
                true => Ok(()),
                false => wrong("it needs a graph in one piece"),
            },
        }
    }

    #[must_use]
    pub fn with_uids(mut self, uids: Vec<u64>) -> Self {
        assert_eq!(uids.len(), self.n as usize);
        self.uids = uids;
        self
    }

    #[must_use]
    pub fn with_merits(mut self, merits: Vec<u64>) -> Self {
        assert_eq!(merits.len(), self.n as usize);
        self.merits = merits;
        self
    }

    #[must_use]
    pub fn with_weights(mut self, weights: Vec<u32>) -> Self {
        assert_eq!(weights.len(), self.n as usize);
        self.weights = weights;
        self
    }

    pub fn n(&self) -> u32 {
        self.n
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.n).map(NodeId)
    }

    pub fn neighbors(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        // One iterator type for three wirings: a range of slots, mapped to ids.
        let slots = match &self.links {
            Links::Complete => 0..self.n,
            Links::Ring => 0..2.min(self.n - 1),
            Links::Graph { from, .. } => from[id.index()]..from[id.index() + 1],
        };
        slots.filter_map(move |slot| match &self.links {
            Links::Complete => (slot != id.0).then_some(NodeId(slot)),
            Links::Graph { to, .. } => Some(to[slot as usize]),
            Links::Ring if slot == 0 => Some(self.next(id)),
            Links::Ring => Some(self.prev(id)),
        })
    }

    pub fn linked(&self, a: NodeId, b: NodeId) -> bool {
        match &self.links {
            Links::Complete => a != b,
            Links::Ring => a != b && (self.next(a) == b || self.prev(a) == b),
            Links::Graph { from, to } => {
                let list = from[a.index()] as usize..from[a.index() + 1] as usize;
                to[list].binary_search(&b).is_ok()
            }
        }
    }

    /// Every link once, the smaller address first.
    pub fn links(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.ids().flat_map(move |a| {
            let later = self.neighbors(a).filter(move |&b| a < b);
            later.map(move |b| (a, b))
        })
    }

    pub fn link_count(&self) -> usize {
        let n = self.n as usize;
        match &self.links {
            Links::Complete => n * (n - 1) / 2,
            Links::Ring if n < 3 => n - 1,
            Links::Ring => n,
            Links::Graph { to, .. } => to.len() / 2,
        }
    }

    pub fn is_connected(&self) -> bool {
        let mut seen = vec![false; self.n as usize];
        let mut queue = VecDeque::from([NodeId(0)]);
        seen[0] = true;
        let mut count = 1;
        while let Some(id) = queue.pop_front() {
            for next in self.neighbors(id) {
                if !std::mem::replace(&mut seen[next.index()], true) {
                    count += 1;
                    queue.push_back(next);
                }
            }
        }
        count == self.n
    }

    /// The next process on the ring, in the direction of travel.
    pub fn next(&self, id: NodeId) -> NodeId {
        NodeId(if id.0 + 1 == self.n { 0 } else { id.0 + 1 })
    }

    pub fn prev(&self, id: NodeId) -> NodeId {
        NodeId(if id.0 == 0 { self.n - 1 } else { id.0 - 1 })
    }

    pub fn uid(&self, id: NodeId) -> u64 {
        if self.uids.is_empty() { u64::from(id.0) + 1 } else { self.uids[id.index()] }
    }

    /// The process with this uid. Linear: for reading input, not for algorithms.
    pub fn find(&self, uid: u64) -> Option<NodeId> {
        if self.uids.is_empty() {
            let index = uid.checked_sub(1).filter(|&index| index < u64::from(self.n))?;
            return Some(NodeId(index as u32));
        }
        self.uids.iter().position(|&own| own == uid).map(|index| NodeId(index as u32))
    }

    /// How people call a process.
    pub fn name(&self, id: NodeId) -> String {
        format!("P{}", self.uid(id))
    }

    pub fn names(&self, ids: impl IntoIterator<Item = NodeId>) -> String {
        let names: Vec<String> = ids.into_iter().map(|id| self.name(id)).collect();
        names.join(", ")
    }

    pub fn merit(&self, id: NodeId) -> u64 {
        if self.merits.is_empty() { 0 } else { self.merits[id.index()] }
    }

    /// What elections by merit compare: ties go to the larger uid, so the order is total.
    pub fn rank(&self, id: NodeId) -> (u64, u64) {
        (self.merit(id), self.uid(id))
    }

    pub fn weight(&self, id: NodeId) -> u32 {
        if self.weights.is_empty() { 1 } else { self.weights[id.index()] }
    }

    pub fn weight_total(&self) -> u64 {
        if self.weights.is_empty() {
            return u64::from(self.n);
        }
        self.weights.iter().map(|&weight| u64::from(weight)).sum()
    }
}

fn graph(n: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Links {
    let mut pairs: Vec<(u32, u32)> =
        edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    pairs.sort_unstable();
    let mut from = vec![0; n as usize + 1];
    for &(a, _) in &pairs {
        from[a as usize + 1] += 1;
    }
    for i in 0..n as usize {
        from[i + 1] += from[i];
    }
    Links::Graph { from, to: pairs.into_iter().map(|(_, b)| NodeId(b)).collect() }
}

fn grid_edges(n: u32) -> impl Iterator<Item = (u32, u32)> {
    let width = n.isqrt() + u32::from(n.isqrt().pow(2) < n);
    (0..n).flat_map(move |i| {
        let right = ((i + 1) % width != 0 && i + 1 < n).then_some((i, i + 1));
        let below = (i + width < n).then_some((i, i + width));
        right.into_iter().chain(below)
    })
}

/// A random recursive tree keeps it in one piece; of all pairs the share `p` is linked besides,
/// drawn without looking at the others, so that sparse graphs cost what they have.
fn random_edges(n: u32, p: f64, seed: u64) -> Result<Vec<(u32, u32)>, TopologyError> {
    if !(0.0..=1.0).contains(&p) {
        return Err(TopologyError(format!("link probability {p}; expected 0 to 1")));
    }
    let pairs = u64::from(n) * u64::from(n - 1) / 2;
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "0 ≤ p ≤ 1")]
    let wanted = (pairs as f64 * p).round() as u64;
    if wanted > Topology::LINKS_MAX as u64 {
        let max = Topology::LINKS_MAX;
        return Err(TopologyError(format!("about {wanted} links; expected at most {max}")));
    }
    let mut chance = Seeded(seed ^ 0x746f_706f_6c6f_6779);
    let mut edges: BTreeSet<(u32, u32)> = (1..n).map(|i| (chance.below(i), i)).collect();
    // Floyd's sampling: `wanted` different pairs, each set of them equally likely.
    let mut drawn = BTreeSet::new();
    for last in pairs - wanted.min(pairs)..pairs {
        let pick = chance.below_u64(last + 1);
        if !drawn.insert(pick) {
            drawn.insert(last);
        }
    }
    edges.extend(drawn.into_iter().map(nth_pair));
    Ok(edges.into_iter().collect())
}

/// Pairs in the order (0,1), (0,2), (1,2), (0,3), …
fn nth_pair(k: u64) -> (u32, u32) {
    // The square root is only a first guess: rounding may put it one off.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "corrected below")]
    let mut b = f64::midpoint(1.0, (1.0 + 8.0 * k as f64).sqrt()) as u64;
    while b * (b - 1) / 2 > k {
        b -= 1;
    }
    while b * (b + 1) / 2 <= k {
        b += 1;
    }
    ((k - b * (b - 1) / 2) as u32, b as u32)
}

fn checked_edges(n: u32, edges: &[(u32, u32)]) -> Result<Vec<(u32, u32)>, TopologyError> {
    if edges.len() > Topology::LINKS_MAX {
        let (found, max) = (edges.len(), Topology::LINKS_MAX);
        return Err(TopologyError(format!("{found} links; expected at most {max}")));
    }
    let mut set = BTreeSet::new();
    for &(a, b) in edges {
        if a >= n || b >= n {
            return Err(TopologyError(format!("link {a}-{b} names a process beyond {n}")));
        }
        if a == b {
            return Err(TopologyError("a link from a process to itself".to_owned()));
        }
        if !set.insert((a.min(b), a.max(b))) {
            return Err(TopologyError(format!("the link {a}-{b} is listed twice")));
        }
    }
    Ok(set.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{Shape, Topology};
    use crate::{Layout, NodeId};

    fn links(shape: Shape, n: u32) -> Vec<(u32, u32)> {
        Topology::new(shape, n, 7).unwrap().links().map(|(a, b)| (a.0, b.0)).collect()
    }

    #[test]
    fn shapes_have_the_links_their_names_say() {
        assert_eq!(links(Shape::Complete, 3), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(links(Shape::Ring, 4), [(0, 1), (0, 3), (1, 2), (2, 3)]);
        assert_eq!(links(Shape::Ring, 2), [(0, 1)]);
        assert_eq!(links(Shape::Star, 4), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(links(Shape::Line, 3), [(0, 1), (1, 2)]);
        assert_eq!(links(Shape::Grid, 5), [(0, 1), (0, 3), (1, 2), (1, 4), (3, 4)]);
        assert_eq!(links(Shape::Edges(vec![(2, 0)]), 3), [(0, 2)]);
        for shape in [Shape::Complete, Shape::Ring, Shape::Star, Shape::Line, Shape::Grid] {
            assert!(links(shape, 1).is_empty());
        }
    }

    #[test]
    fn link_count_counts_the_links() {
        for n in [1, 2, 3, 7, 12] {
            for shape in
                [Shape::Complete, Shape::Ring, Shape::Star, Shape::Grid, Shape::Random(0.3)]
            {
                let topology = Topology::new(shape.clone(), n, 1).unwrap();
                assert_eq!(topology.link_count(), topology.links().count(), "{shape:?} {n}");
            }
        }
    }

    #[test]
    fn a_random_graph_is_connected_and_the_same_for_the_same_seed() {
        for seed in 0..20 {
            let draw = || Topology::new(Shape::Random(0.05), 40, seed).unwrap();
            assert!(draw().is_connected());
            assert_eq!(draw(), draw());
        }
        let other = Topology::new(Shape::Random(0.05), 40, 99).unwrap();
        assert_ne!(Topology::new(Shape::Random(0.05), 40, 0).unwrap(), other);
    }

    #[test]
    fn pairs_are_numbered_without_gaps() {
        let pairs: Vec<_> = (0..6).map(super::nth_pair).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]);
        let all = Topology::new(Shape::Random(1.0), 30, 5).unwrap();
        assert_eq!(all.link_count(), 30 * 29 / 2);
    }

    #[test]
    fn a_topology_that_does_not_fit_says_what_is_needed() {
        let star = Topology::new(Shape::Star, 4, 0).unwrap();
        assert_eq!(star.fits(Layout::Ring).unwrap_err().to_string(), "it needs a ring");
        assert!(star.fits(Layout::Complete).is_err());
        for layout in [Layout::Star, Layout::Tree, Layout::Connected] {
            assert_eq!(star.fits(layout), Ok(()));
        }
        let pieces = Topology::new(Shape::Edges(vec![(0, 1), (2, 3)]), 4, 0).unwrap();
        assert!(pieces.fits(Layout::Connected).is_err());
        assert!(Topology::of(Layout::Ring, 3).unwrap().fits(Layout::Tree).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Topology::new(Shape::Ring, 0, 0).is_err());
        assert!(Topology::new(Shape::Ring, u32::MAX, 0).is_err());
        assert!(Topology::new(Shape::Random(f64::NAN), 3, 0).is_err());
        assert!(Topology::new(Shape::Random(1.5), 3, 0).is_err());
        assert!(Topology::new(Shape::Random(1.0), 1_000_000, 0).is_err());
        assert!(Topology::new(Shape::Edges(vec![(0, 3)]), 3, 0).is_err());
        assert!(Topology::new(Shape::Edges(vec![(1, 1)]), 3, 0).is_err());
        assert!(Topology::new(Shape::Edges(vec![(0, 1), (1, 0)]), 3, 0).is_err());
    }

    #[test]
    fn uids_name_processes() {
        let plain = Topology::of(Layout::Ring, 3).unwrap();
        assert_eq!(
            (plain.uid(NodeId(0)), plain.find(3), plain.find(0)),
            (1, Some(NodeId(2)), None)
        );
        let named = plain.with_uids(vec![30, 10, 20]);
        assert_eq!((named.find(20), named.find(3)), (Some(NodeId(2)), None));
        assert_eq!(named.names(named.ids()), "P30, P10, P20");
    }
}
