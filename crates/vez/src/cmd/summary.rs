//! The result of a run, for people.

use vez_core::problem::Account;
use vez_core::{Shape, Topology};
use vez_sim::{Report, Verdict};

use crate::scenario::{Resolved, outcome_word};

/// What ran, in a few words.
pub(super) fn subtitle(resolved: &Resolved) -> String {
    let topology = &resolved.topology;
    let shape = match topology.shape() {
        Shape::Complete => "complete",
        Shape::Ring => "ring",
        Shape::Star => "star",
        Shape::Line => "line",
        Shape::Grid => "grid",
        Shape::Random(_) => "random graph",
        Shape::Edges(_) => "graph",
    };
    let processes = if topology.n() == 1 { "process" } else { "processes" };
    format!("{} {processes}, {shape}, seed {}", topology.n(), resolved.plan.seed)
}

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

fn account(report: &Report, topology: &Topology) -> String {
    const SHOWN: usize = 12;
    match &report.account {
        Account::Election(tally) => {
            let leader =
                tally.leader().map_or("nobody all agree on".to_owned(), |node| topology.name(node));
            let declared = tally.declarations.iter().take(SHOWN).map(|declaration| {
                format!(
                    "{} at {} ms",
                    topology.name(declaration.node),
                    declaration.at.as_millis_f64()
                )
            });
            let declared: Vec<String> = declared.collect();
            let more = if tally.declarations.len() > SHOWN { ", …" } else { "" };
            match declared.is_empty() {
                true => format!("  leader    {leader}\n"),
                false => {
                    format!("  leader    {leader} (declared: {}{more})\n", declared.join(", "))
                }
            }
        }
        Account::Mutex(tally) => {
            let entries = tally.entries.iter().take(SHOWN).map(|entry| {
                let left =
                    entry.left.map_or("…".to_owned(), |left| left.as_millis_f64().to_string());
                format!("{} {}–{left}", topology.name(entry.node), entry.entered.as_millis_f64())
            });
            let entries: Vec<String> = entries.collect();
            let more = if tally.entries.len() > SHOWN { ", …" } else { "" };
            let total = tally.entries.len();
            let times = if total == 0 {
                String::new()
            } else {
                format!(": {}{more} ms", entries.join(", "))
            };
            let mut out = format!("  inside    {total}{times}\n");
            if !tally.waiting.is_empty() {
                let waiting = topology.names(tally.waiting.keys().copied().take(SHOWN));
                out += &format!("  waiting   {waiting}\n");
            }
            if tally.refused_by_fence > 0 {
                let refused = tally.refused_by_fence;
                out += &format!(
                    "  fences    a resource that checks them would have refused {refused}\n"
                );
            }
            out
        }
    }
}
