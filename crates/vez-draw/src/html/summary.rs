//! How it went: promises as lights, messages by kind, who leads or who was inside when.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vez_core::problem::Account;
use vez_core::problem::election::{ElectionTally, View};
use vez_core::problem::mutex::MutexTally;
use vez_core::{Ending, NodeId, Topology};
use vez_sim::{Messages, Verdict};

use crate::Run;
use crate::words::{escape, moment, names};

pub(super) fn summary(run: &Run<'_>) -> String {
    let report = run.report;
    let account = match &report.account {
        Account::Mutex(tally) => entries(tally, run.topology),
        Account::Election(tally) => election(tally, run.topology),
    };
    let ending = match report.ending {
        Ending::Quiescent => "came to rest",
        Ending::Deadline => "ended at its deadline",
        Ending::Limit => "was stopped: too many steps",
    };
    let broken = report.promises.iter().filter(|v| v.claimed && !v.kept).count();
    let (class, verdict) = match broken {
        0 => ("good", "✔ every promise kept".to_owned()),
        1 => ("bad", "✘ a promise broken".to_owned()),
        n => ("bad", format!("✘ {n} promises broken")),
    };
    let (at, steps) = (moment(report.time), report.steps);
    format!(
        "<div class=\"card\"><h2 class=\"{class}\">{verdict}</h2>\n<ul class=\"lights\">\n{}</ul>\n\
         <p class=\"soft\">The run {ending} after {at} and {steps} steps.</p></div>\n{}{account}",
        report.promises.iter().map(light).collect::<String>(),
        messages(&report.messages),
    )
}

fn light(verdict: &Verdict) -> String {
    let (class, sign) = match (verdict.kept, verdict.claimed) {
        (true, _) => ("good", "✔"),
        (false, true) => ("bad", "✘"),
        (false, false) => ("soft", "–"),
    };
    let mut words = String::new();
    if !verdict.claimed {
        words += if verdict.kept { " (kept, though not promised)" } else { " (not promised)" };
    }
    if let Some(at) = verdict.broken_at {
        write!(words, " at {}", moment(at)).expect("to a string");
    }
    if let Some(detail) = &verdict.detail {
        write!(words, ": {detail}").expect("to a string");
    }
    let name = verdict.promise.name();
    format!(
        "<li><span class=\"light {class}\">{sign}</span> <b>{name}</b>{}</li>\n",
        escape(&words)
    )
}

fn messages(messages: &Messages) -> String {
    let largest = messages.by_kind.iter().map(|&(_, count)| count).max().unwrap_or(1);
    let mut rows = String::new();
    for (kind, count) in &messages.by_kind {
        writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{count}</td>\
             <td><meter min=\"0\" max=\"{largest}\" value=\"{count}\"></meter></td></tr>",
            escape(kind)
        )
        .expect("to a string");
    }
    let faults = [
        (messages.lost, "lost"),
        (messages.duplicated, "delivered twice"),
        (messages.to_crashed, "to crashed processes"),
    ];
    let faults: Vec<String> = faults
        .iter()
        .filter(|(count, _)| 0 < *count)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let plural = if messages.total == 1 { "" } else { "s" };
    format!(
        "<div class=\"card\"><h2>{} message{plural}</h2>\n<table>{rows}</table>\n\
         <p class=\"soft\">{}</p></div>\n",
        messages.total,
        faults.join(", ")
    )
}

fn election(tally: &ElectionTally, topology: &Topology) -> String {
    let heading = match tally.leader() {
        Some(leader) => format!("Leader: {}", topology.name(leader)),
        None => "No single leader".to_owned(),
    };
    // By whom they follow; then those that follow nobody, then those that are down.
    let mut views: BTreeMap<(u32, Option<NodeId>), Vec<u64>> = BTreeMap::new();
    for (node, &view) in topology.ids().zip(&tally.views) {
        let key = match view {
            View::Follows(leader) => (0, Some(leader)),
            View::Unknown => (1, None),
            View::Down => (2, None),
        };
        views.entry(key).or_default().push(topology.uid(node));
    }
    let mut rows = String::new();
    for (view, uids) in views {
        let what = match view {
            (_, Some(leader)) => topology.name(leader),
            (1, None) => "nobody".to_owned(),
            (_, None) => "(down)".to_owned(),
        };
        writeln!(rows, "<tr><td>{}</td><td>{what}</td></tr>", names(&uids)).expect("to a string");
    }
    let declared = tally.declarations.iter().map(|d| {
        let term = if d.term == 0 { String::new() } else { format!(", term {}", d.term) };
        format!("{} at {}{term}", topology.name(d.node), moment(d.at))
    });
    let declared: Vec<String> = declared.collect();
    format!(
        "<div class=\"card\"><h2>{heading}</h2>\n<div class=\"scroll\"><table>\
         <thead><tr><th scope=\"col\">process</th><th scope=\"col\">follows</th></tr></thead>\
         <tbody>{rows}</tbody></table>\n<p class=\"soft\">Declared: {}</p></div></div>\n",
        if declared.is_empty() { "nobody".to_owned() } else { declared.join("; ") }
    )
}

fn entries(tally: &MutexTally, topology: &Topology) -> String {
    let mut rows = String::new();
    for entry in &tally.entries {
        let cells = [
            topology.name(entry.node),
            moment(entry.requested),
            moment(entry.entered),
            entry.left.map_or("–".to_owned(), moment),
            entry.fence.map_or("–".to_owned(), |fence| fence.to_string()),
        ];
        let cells = cells.map(|cell| escape(&cell)).join("</td><td>");
        writeln!(rows, "<tr><td>{cells}</td></tr>").expect("to a string");
    }
    let waiting = topology.names(tally.waiting.keys().copied());
    let mut remarks = Vec::new();
    if !waiting.is_empty() {
        remarks.push(format!("Still waiting: {waiting}."));
    }
    if 0 < tally.refused_by_fence {
        let refused = match tally.refused_by_fence {
            1 => "1 write".to_owned(),
            n => format!("{n} writes"),
        };
        remarks.push(format!("A resource that checks fences would have refused {refused}."));
    }
    let count = tally.entries.len();
    let entries = if count == 1 { "entry" } else { "entries" };
    let heads = ["process", "asked", "entered", "left", "fence"].join("</th><th scope=\"col\">");
    format!(
        "<div class=\"card\"><h2>{count} {entries}</h2>\n<div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">{heads}</th></tr></thead><tbody>{rows}</tbody></table></div>\n<p class=\"soft\">{}</p></div>\n",
        remarks.join(" ")
    )
}
