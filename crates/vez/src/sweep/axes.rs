//! What is varied, as people write it, and what a formula needs to know of a system.

use std::collections::{BTreeMap, VecDeque};

use vez_core::{NodeId, Shape, Topology, quorum};

use super::Subject;

/// Reads sizes: `2..64` doubles, `2..64:+2` adds, `2..64:x3` multiplies, `3,7,13` lists.
pub fn sizes(text: &str) -> Result<Vec<u32>, String> {
    let form = "expected a form like 2..64, 2..64:+2, 2..64:x4 or 3,7,13";
    let number = |text: &str| -> Result<u32, String> {
        let found: u32 = text.trim().parse().map_err(|_| format!("`{text}`: {form}"))?;
        match found {
            1..=Topology::NODES_MAX => Ok(found),
            _ => Err(format!("{found} processes; expected 1 to {}", Topology::NODES_MAX)),
        }
    };
    let Some((from, rest)) = text.split_once("..") else {
        return text.split(',').map(number).collect();
    };
    let (to, step) = rest.split_once(':').unwrap_or((rest, "x2"));
    let (from, to) = (number(from)?, number(to)?);
    if to < from {
        return Err(format!("`{text}` is empty: it ends before it begins"));
    }
    let amount = |text: &str| text.parse::<u32>().ok();
    let next: Box<dyn Fn(u32) -> u32> = match (step.split_at_checked(1), step) {
        (Some(("+", by)), _) if amount(by).is_some_and(|by| 0 < by) => {
            let by = amount(by).unwrap_or(1);
            Box::new(move |n| n.saturating_add(by))
        }
        (Some(("x", by)), _) if amount(by).is_some_and(|by| 1 < by) => {
            let by = amount(by).unwrap_or(2);
            Box::new(move |n| n.saturating_mul(by))
        }
        _ => return Err(format!("`{step}` is no step; expected +K, or xK with K above 1")),
    };
    let mut sizes: Vec<u32> =
        std::iter::successors(Some(from), |&n| Some(next(n))).take_while(|&n| n < to).collect();
    sizes.push(to);
    Ok(sizes)
}

/// Reads shares, `0,0.1,0.5`, each from 0 to 1.
pub fn shares(text: &str) -> Result<Vec<f64>, String> {
    numbers(text, "a share from 0 to 1", |number| (0.0..=1.0).contains(&number))
}

/// Reads rates, 0 or more.
pub fn rates(text: &str) -> Result<Vec<f64>, String> {
    numbers(text, "a rate from 0 to 1000 a second", |number| (0.0..=1000.0).contains(&number))
}

fn numbers(text: &str, what: &str, fits: impl Fn(f64) -> bool) -> Result<Vec<f64>, String> {
    let number = |text: &str| {
        let found = text.trim().parse().ok().filter(|&number| fits(number));
        found.ok_or_else(|| format!("`{text}`; expected {what}"))
    };
    text.split(',').map(number).collect()
}

/// The longest way between two processes: exact on trees, rings and complete graphs, on others
/// perhaps too short.
pub(super) fn diameter(topology: &Topology) -> u32 {
    let n = topology.n();
    match topology.shape() {
        Shape::Complete => u32::from(1 < n),
        Shape::Ring => n / 2,
        _ => {
            let (end, _) = farthest(topology, NodeId(0));
            farthest(topology, end).1
        }
    }
}

fn farthest(topology: &Topology, from: NodeId) -> (NodeId, u32) {
    let mut distances = vec![None; topology.n() as usize];
    distances[from.index()] = Some(0);
    let (mut queue, mut last) = (VecDeque::from([(from, 0)]), (from, 0));
    while let Some((node, distance)) = queue.pop_front() {
        last = (node, distance);
        for next in topology.neighbors(node) {
            if distances[next.index()].is_none() {
                distances[next.index()] = Some(distance + 1);
                queue.push_back((next, distance + 1));
            }
        }
    }
    last
}

pub(super) fn is_complete(topology: &Topology) -> bool {
    let n = topology.n() as usize;
    topology.link_count() == n * (n - 1) / 2
}

/// The smallest and the largest quorum, where the algorithm has a setting that says which.
pub(super) fn quorum_sizes(n: u32, subject: &Subject) -> Option<(u32, u32)> {
    let kind = setting(subject, "quorums")?;
    let sizes = (0..n).map(NodeId).map(|node| match kind.as_str() {
        "grid" => Some(quorum::grid(n, node).len() as u32),
        "plane" => quorum::plane(n, node).map(|set| set.len() as u32),
        _ => None,
    });
    let sizes: Vec<u32> = sizes.collect::<Option<_>>()?;
    Some((*sizes.iter().min()?, *sizes.iter().max()?))
}

/// The settings that are not at their defaults, as text.
pub(super) fn settings(subject: &Subject) -> BTreeMap<String, String> {
    let defaults = (subject.entry.settings)();
    let given = subject.config.iter().map(|(key, value)| (key.clone(), plain(&value.value)));
    let differs =
        |(key, value): &(String, String)| defaults.get(key).map(plain_json).as_ref() != Some(value);
    given.filter(differs).collect()
}

/// A setting as it is in this study; `None` if the algorithm has none of this name.
pub(super) fn setting(subject: &Subject, key: &str) -> Option<String> {
    let default = (subject.entry.settings)().get(key).map(plain_json)?;
    Some(subject.config.get(key).map_or(default, |value| plain(&value.value)))
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plain_json(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
