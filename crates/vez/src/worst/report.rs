//! The finding for people and for scripts.

use serde_json::{Value, json};
use vez_core::{Time, Topology};
use vez_numbers::cost::{self, Case, Initiators, Order, Quantity, Relation};
use vez_sim::Report;

use super::{Aim, Finding, Quest, Scored};
use crate::scenario::{Fault, Place, Scenario, read, resolve};
use crate::sweep::{case_of, number};

/// The finding as a scenario, run once more as `vez run` would: from its text.
pub struct Replay {
    pub scenario: Scenario,
    pub report: Report,
    topology: Topology,
}

impl Replay {
    /// Refuses a scenario that does not come out as it did in the search.
    pub fn new(quest: &Quest, scored: &Scored) -> Result<Self, Fault> {
        let topology = quest.topology()?;
        let config = super::enumerate::config(quest);
        let report = scored.candidate.run(quest, &topology, &config);
        let scenario = scored.candidate.scenario(quest, Some(&report));
        let resolved = resolve(&read(&scenario.to_string())?)?;
        let again = (resolved.entry.simulate)(&resolved.topology, &resolved.config, &resolved.plan);
        if again.messages != report.messages || again.time != report.time {
            let why = "the scenario does not replay what was found: this is a bug in vez";
            return Err(Fault::new(&Place::Whole, why));
        }
        Ok(Self { scenario, report: again, topology: resolved.topology })
    }
}

fn what(quest: &Quest) -> &'static str {
    match (quest.metric, quest.is_election()) {
        (Aim::Messages, true) => "messages",
        (Aim::Messages, false) => "messages per entry",
        (Aim::Time, true) => "time until all know the leader (ms)",
        (Aim::Time, false) => "wait (ms)",
    }
}

/// The finding, how it was found, and the scenario.
pub fn text(quest: &Quest, finding: &Finding, scored: &Scored, replay: &Replay) -> String {
    let (n, name) = (quest.n, quest.subject.entry.meta.name);
    let most = match (quest.metric, quest.best) {
        (Aim::Messages, false) => "most",
        (Aim::Messages, true) => "fewest",
        (Aim::Time, false) => "longest",
        (Aim::Time, true) => "shortest",
    };
    let kinds = replay.report.messages.by_kind.iter();
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{kind} {count}")).collect();
    let (total, score) = (replay.report.messages.total, number(scored.score));
    let processes = if n == 1 { "process" } else { "processes" };
    let mut out = format!("{name} · {n} {processes} · {most} {}: {score}\n", what(quest));
    let mut line = |label: &str, text: &str| out += &format!("  {label:9} {text}\n");
    line("messages", &format!("{total} ({})", kinds.join(", ")));
    for text in formulas(quest, scored, &replay.topology) {
        line("formula", &text);
    }
    if quest.arrangement_matters() {
        let along = if quest.is_ring() {
            "in the direction of travel"
        } else {
            "in the order of addresses"
        };
        line("uids", &format!("{}, {along}", listed(&scored.candidate.uids)));
    }
    line(if quest.is_election() { "start" } else { "ask" }, &starts(scored));
    line("delays", &delays(scored));
    for text in tried(quest, finding) {
        line("tried", &text);
    }
    if finding.refused > 0 {
        let refused = finding.refused;
        let why = "a promise broken, no end, or a second election";
        line("left out", &format!("{refused} runs: {why}"));
    }
    out + "\nThe run, for `vez run FILE.toml`:\n\n" + &replay.scenario.to_string()
}

/// The bounds and equalities known for it, and whether they are met.
fn formulas(quest: &Quest, scored: &Scored, topology: &Topology) -> Vec<String> {
    let Some(cost) = cost::of(quest.subject.entry.meta.name) else { return Vec::new() };
    let quantity = match (quest.metric, quest.is_election()) {
        (Aim::Messages, _) => Quantity::Messages,
        (Aim::Time, true) => Quantity::Time,
        (Aim::Time, false) => Quantity::Wait,
    };
    let starters = scored.candidate.starts.iter().flatten().count() as u32;
    let initiators = match starters {
        all if all == quest.n => Initiators::All,
        some => Initiators::Some(some),
    };
    let together = scored.candidate.starts.iter().flatten().all(|&at| at == Time::ZERO);
    let steady = together && scored.candidate.delays.is_empty();
    let order = order(&scored.candidate.uids);
    let case = Case { initiators, steady, order, ..case_of(&quest.subject, topology, starters) };
    let wanted = if quest.best { Relation::AtLeast } else { Relation::AtMost };
    let values = cost.evaluate(&case).into_iter().filter(|value| {
        value.quantity == quantity
            && (value.relation == wanted || (value.relation == Relation::Exact && quest.n > 1))
    });
    let mut values: Vec<cost::Value> = values.collect();
    // Of two that say the same, the first: equalities come before bounds.
    values.dedup_by_key(|value| value.text);
    let told = |value: cost::Value| {
        let met = (value.value - scored.score).abs() < 1e-9 * scored.score.max(1.0);
        let met = if met { ": met" } else { "" };
        let when = match value.when {
            "" => String::new(),
            when => format!(" ({when})"),
        };
        format!("{} {} = {}{when}{met}", value.relation.sign(), number(value.value), value.text)
    };
    values.into_iter().map(told).collect()
}

/// The order of uids; on a ring, wherever it is taken to begin.
fn order(uids: &[u64]) -> Order {
    let n = uids.len();
    let falls = (0..n).filter(|&i| uids[(i + 1) % n] < uids[i]).count();
    match falls {
        1 => Order::Ascending,
        falls if falls + 1 == n => Order::Descending,
        _ => Order::Random,
    }
}

fn starts(scored: &Scored) -> String {
    let candidate = &scored.candidate;
    let starts = candidate.uids.iter().zip(&candidate.starts);
    if starts.clone().all(|(_, start)| *start == Some(Time::ZERO)) {
        return "all at 0ms".to_owned();
    }
    let mut started: Vec<(Time, u64)> =
        starts.filter_map(|(&uid, &start)| Some((start?, uid))).collect();
    started.sort_unstable();
    let shown = started.iter().take(SHOWN).map(|(at, uid)| format!("P{uid} at {at}"));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if started.len() > SHOWN {
        text += &format!(" and {} more", started.len() - SHOWN);
    }
    text
}

fn delays(scored: &Scored) -> String {
    let candidate = &scored.candidate;
    if candidate.delays.is_empty() {
        return "every message 1ms".to_owned();
    }
    let uid = |node: u32| candidate.uids[node as usize];
    let links = candidate.delays.iter();
    let shown = links.take(SHOWN).map(|(&(a, b), delay)| format!("{}>{} {delay}", uid(a), uid(b)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if candidate.delays.len() > SHOWN {
        text += &format!(" and {} more links", candidate.delays.len() - SHOWN);
    }
    text + "; others 1ms"
}

const SHOWN: usize = 16;

fn listed(uids: &[u64]) -> String {
    let shown: Vec<String> = uids.iter().take(4 * SHOWN).map(u64::to_string).collect();
    let more = if 4 * SHOWN < uids.len() { " …" } else { "" };
    shown.join(" ") + more
}

/// Exactly what was tried, a sentence each.
fn tried(quest: &Quest, finding: &Finding) -> Vec<String> {
    let tried = &finding.tried;
    let mut out = Vec::new();
    let runs = |done: u64, total: u64| match done == total {
        true => format!("{done} runs"),
        false => format!("stopped after {done} of {total} runs"),
    };
    if 0 < tried.arrangements {
        let arrangements = match (tried.arrangements, quest.is_ring()) {
            (_, _) if !quest.arrangement_matters() => String::new(),
            (1, _) => "the one arrangement × ".to_owned(),
            (count, true) => format!("all {count} arrangements up to rotation × "),
            (count, false) => format!("all {count} arrangements × "),
        };
        let who = if quest.is_election() { "initiators" } else { "askers" };
        let sets = match tried.initiator_sets {
            1 => format!("all as {who}"),
            sets => format!("all {sets} sets of {who}"),
        };
        let runs = runs(tried.enumerated, tried.arrangements * tried.initiator_sets);
        out.push(format!("{arrangements}{sets}, all at once, every message 1ms: {runs}"));
    }
    if 0 < tried.searched {
        let mut changes = Vec::new();
        if quest.arrangement_matters() {
            changes.push("arrangements".to_owned());
        }
        if !quest.all_start {
            let who = if quest.is_election() { "who starts" } else { "who asks" };
            changes.push(who.to_owned());
        }
        if quest.starts_vary() {
            changes.push(format!("up to {}ms late", quest.n.saturating_sub(1)));
        }
        if quest.delays_vary() {
            changes.push(format!("links up to {} slow", quest.delay_max));
        }
        let found = match (tried.beyond, tried.arrangements) {
            (_, 0) => "",
            (true, _) => ", which found this",
            (false, _) if quest.best => ": none costs less",
            (false, _) => ": none costs more",
        };
        let (runs, changes) = (runs(tried.searched, quest.trials), changes.join(", "));
        out.push(format!("climbing, seed {}, {runs} over {changes}{found}", quest.seed));
    }
    out
}

/// Scripts depend on it: fields may be added, never changed.
pub fn json(quest: &Quest, finding: &Finding, scored: &Scored, replay: &Replay) -> Value {
    let candidate = &scored.candidate;
    let starts = candidate.uids.iter().zip(&candidate.starts);
    let starts: Vec<Value> = starts
        .filter_map(|(uid, start)| Some(json!({ "node": uid, "at_ms": (*start)?.as_millis_f64() })))
        .collect();
    let uid = |node: u32| candidate.uids[node as usize];
    let links = candidate.delays.iter().map(|(&(from, to), delay)| {
        json!({ "from": uid(from), "to": uid(to), "delay_ms": delay.as_millis_f64() })
    });
    let messages = &replay.report.messages;
    let by_kind: serde_json::Map<String, Value> =
        messages.by_kind.iter().map(|&(kind, count)| (kind.to_owned(), json!(count))).collect();
    let tried = &finding.tried;
    json!({
        "algorithm": quest.subject.entry.meta.name,
        "nodes": quest.n,
        "sought": if quest.best { "least" } else { "most" },
        "measured": what(quest),
        "score": scored.score,
        "messages": { "total": messages.total, "by_kind": by_kind },
        "time_ms": replay.report.time.as_millis_f64(),
        "ids": candidate.uids,
        "starts": starts,
        "links": links.collect::<Vec<_>>(),
        "exhaustive": {
            "runs": tried.enumerated,
            "arrangements": tried.arrangements,
            "initiator_sets": tried.initiator_sets,
        },
        "searched": tried.searched,
        "found_by_search": tried.beyond,
        "refused": finding.refused,
        "seed": quest.seed,
        "complete": !finding.stopped,
        "scenario": replay.scenario.to_string(),
    })
}
