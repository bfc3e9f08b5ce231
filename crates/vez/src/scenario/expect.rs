//! What a scenario file says should come out of its run.

use std::collections::BTreeMap;

use vez_core::problem::Account;
use vez_core::{Ending, Topology};
use vez_sim::Report;

use super::doc::{Node, Read};

/// Every part is optional; what is given must be met exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    pub outcome: Option<String>,
    /// `Some(None)` expects that no one leads.
    pub leader: Option<Option<u64>>,
    /// Who declared itself leader, in order.
    pub declared: Option<Vec<u64>>,
    /// Who entered, in order.
    pub entered: Option<Vec<u64>>,
    /// Who waits for ever.
    pub waiting: Option<Vec<u64>>,
    pub refused_by_fence: Option<u64>,
    pub messages: Option<u64>,
    /// By kind; a kind that is not listed is not expected at all.
    pub by_kind: Option<BTreeMap<String, u64>>,
    pub rounds: Option<u64>,
    /// The promises that break, and no others. Left out, none may.
    pub broken: Vec<String>,
}

pub(super) fn read_expectation(node: Node<'_>) -> Read<Expectation> {
    let table = node.table()?;
    let uids = |key| -> Read<Option<Vec<u64>>> {
        let Some(node) = table.get(key) else { return Ok(None) };
        Ok(Some(node.list()?.iter().map(Node::u64).collect::<Read<_>>()?))
    };
    let number = |key| table.get(key).map(|node| node.u64()).transpose();
    let by_kind = |node: Node<'_>| -> Read<BTreeMap<String, u64>> {
        let entries = node.table()?.entries();
        entries.into_iter().map(|(kind, node)| Ok((kind.to_owned(), node.u64()?))).collect()
    };
    let leader = |node: Node<'_>| match node.is_str() {
        true if node.str()? == "none" => Ok(None),
        true => Err(node.wrong("a uid or \"none\"")),
        false => node.u64().map(Some),
    };
    let words = |node: Node<'_>| -> Read<Vec<String>> {
        node.list()?.iter().map(|node| Ok(node.str()?.to_owned())).collect()
    };
    let expectation = Expectation {
        outcome: table.get("outcome").map(|node| Ok(node.str()?.to_owned())).transpose()?,
        leader: table.get("leader").map(leader).transpose()?,
        declared: uids("declared")?,
        entered: uids("entered")?,
        waiting: uids("waiting")?,
        refused_by_fence: number("refused_by_fence")?,
        messages: number("messages")?,
        by_kind: table.get("by_kind").map(by_kind).transpose()?,
        rounds: number("rounds")?,
        broken: table.get("broken").map_or_else(|| Ok(Vec::new()), words)?,
    };
    table.done()?;
    Ok(expectation)
}

impl Expectation {
    /// What came out otherwise, a sentence each.
    pub fn differences(&self, report: &Report, topology: &Topology) -> Vec<String> {
        let mut found = Differences(Vec::new());
        let uid = |node: &vez_core::NodeId| topology.uid(*node);
        found.compare("outcome", self.outcome.as_deref(), &outcome_word(report.ending));
        found.compare("messages", self.messages, &report.messages.total);
        let by_kind: BTreeMap<String, u64> =
            report.messages.by_kind.iter().map(|&(kind, n)| (kind.to_owned(), n)).collect();
        found.compare("by_kind", self.by_kind.as_ref(), &&by_kind);
        found.compare("rounds", self.rounds, &report.rounds);
        let kept = |verdict: &&vez_sim::Verdict| !verdict.kept;
        let broken: Vec<String> =
            report.promises.iter().filter(kept).map(|v| v.promise.name().to_owned()).collect();
        found.compare("broken", Some(&self.broken), &&broken);
        match &report.account {
            Account::Election(tally) => {
                found.compare("leader", self.leader, &tally.leader().as_ref().map(uid));
                let declared: Vec<u64> = tally.declarations.iter().map(|d| uid(&d.node)).collect();
                found.compare("declared", self.declared.as_ref(), &&declared);
                found.unused("entered", self.entered.is_some());
            }
            Account::Mutex(tally) => {
                let entered: Vec<u64> =
                    tally.entries.iter().map(|entry| uid(&entry.node)).collect();
                found.compare("entered", self.entered.as_ref(), &&entered);
                let waiting: Vec<u64> = tally.waiting.keys().map(uid).collect();
                found.compare("waiting", self.waiting.as_ref(), &&waiting);
                let refused = tally.refused_by_fence;
                found.compare("refused_by_fence", self.refused_by_fence, &refused);
                found.unused("leader", self.leader.is_some() || self.declared.is_some());
            }
        }
        found.0
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        expected: Option<T>,
        found: &T,
    ) {
        if let Some(expected) = expected.filter(|expected| expected != found) {
            self.0.push(format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }

    fn unused(&mut self, what: &str, given: bool) {
        if given {
            self.0.push(format!("`{what}` is expected, but this problem has none"));
        }
    }
}

pub(crate) fn outcome_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Quiescent => "quiescent",
        Ending::Deadline => "deadline",
        Ending::Limit => "limit",
    }
}
