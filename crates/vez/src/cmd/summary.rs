//! The result of a run, for people.

use vez_core::problem::Account;
use vez_core::problem::election::ElectionTally;
use vez_core::problem::mutex::MutexTally;
use vez_core::{Time, Topology};
use vez_sim::{Report, Verdict};

use crate::picture::subtitle;
use crate::scenario::{Resolved, outcome_word};

/// The result, for people.
pub(super) fn summary(resolved: &Resolved, report: &Report) -> String {
    let topology = &resolved.topology;
    let mut out = format!("{} · {}\n", resolved.entry.meta.name, subtitle(resolved));
    let ended = match outcome_word(report.ending) {
        "quiescent" => "came to rest",
        "deadline" => "was stopped at its deadline",
        _ => "was cut off: too many steps",
    };
    let time = report.time.as_millis_f64();
    out += &format!("  time      {time} ms, {} steps; the run {ended}\n", report.steps);
    let kinds: Vec<String> =
        report.messages.by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    out += &format!("  messages  {}{kinds}", report.messages.total);
    let messages = &report.messages;
    for (count, what) in [
        (messages.lost, "lost"),
        (messages.duplicated, "repeated"),
        (messages.to_crashed, "to the dead"),
    ] {
        if count > 0 {
            out += &format!(", {count} {what}");
        }
    }
    out += "\n";
    out += &account(report, topology);
    if let Some((at, node, what)) = report.unexpected_first {
        let (count, who) = (report.unexpected, topology.name(node));
        out += &format!("  surprise  {count} ×, first at {at}: {who}: {what}\n");
    }
    for verdict in &report.promises {
        out += &promise_line(verdict);
    }
    out
}

fn promise_line(verdict: &Verdict) -> String {
    let mark = match (verdict.kept, verdict.claimed) {
        (true, true) => "✔",
        (true, false) => "·",
        (false, _) => "✘",
    };
    let mut line = format!("  {mark} {}", verdict.promise.name());
    if let Some(at) = verdict.broken_at {
        line += &format!(" broken at {} ms", at.as_millis_f64());
    }
    if !verdict.claimed {
        line += " (not promised)";
    }
    if let Some(detail) = &verdict.detail {
        line += &format!(": {detail}");
    }
    line + "\n"
}

/// Lists in a summary go no further than this.
const SHOWN: usize = 12;

fn account(report: &Report, topology: &Topology) -> String {
    match &report.account {
        Account::Election(tally) => election(tally, topology),
        Account::Mutex(tally) => mutex(tally, topology),
    }
}

fn election(tally: &ElectionTally, topology: &Topology) -> String {
    let leader =
        tally.leader().map_or("nobody all agree on".to_owned(), |node| topology.name(node));
    let reigns = tally.declarations.iter().map(|reign| {
        let (who, from) = (topology.name(reign.node), reign.at.as_millis_f64());
        let until = reign.until.map_or(String::new(), |until| until.as_millis_f64().to_string());
        let term = if reign.term == 0 { String::new() } else { format!(" in term {}", reign.term) };
        format!("{who} {from}–{until}{term}")
    });
    let mut out = format!("  leader    {leader}\n");
    if !tally.declarations.is_empty() {
        out += &format!("  led (ms)  {}\n", listed(reigns));
    }
    for failure in tally.failures.iter().filter(|failure| failure.led).take(SHOWN) {
        let after = |moment: Option<Time>| match moment {
            Some(at) => format!("after {} ms", (at - failure.at).as_millis_f64()),
            None => "never".to_owned(),
        };
        let (who, at) = (topology.name(failure.node), failure.at.as_millis_f64());
        let replaced = after(failure.replaced);
        out += &format!("  failure   {who}, leading, crashed at {at} ms; replaced {replaced}");
        if tally.suspicions > 0 {
            out += &format!(", suspected {}", after(failure.detected));
        }
        out.push('\n');
    }
    if tally.suspicions_false > 0 {
        out += &format!("  mistakes  {} × a live process was suspected\n", tally.suspicions_false);
    }
    out
}

fn mutex(tally: &MutexTally, topology: &Topology) -> String {
    let entries = tally.entries.iter().map(|entry| {
        let left = entry.left.map_or(String::new(), |left| left.as_millis_f64().to_string());
        format!("{} {}–{left}", topology.name(entry.node), entry.entered.as_millis_f64())
    });
    let mut out = match tally.entries.len() {
        0 => "  in        nobody\n".to_owned(),
        _ => format!("  in (ms)   {}\n", listed(entries)),
    };
    if !tally.waiting.is_empty() {
        let waiting = tally.waiting.keys().map(|&node| topology.name(node));
        out += &format!("  waiting   {}\n", listed(waiting));
    }
    if tally.refused_by_fence > 0 {
        let refused = tally.refused_by_fence;
        let writes = if refused == 1 { "write" } else { "writes" };
        out +=
            &format!("  fences    a resource that checks them refuses {refused} stale {writes}\n");
    }
    out
}

fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(SHOWN);
    let items = items.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more == 0 { items } else { format!("{items} and {more} more") }
}
