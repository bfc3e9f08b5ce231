//! A study's outcome as a table for people, as CSV and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use vez_core::{Layout, Time};
use vez_numbers::cost::Order;
use vez_numbers::sample::Summary;

use super::{Metric, Outcome, Point, Starters, Study};

/// What is varied besides the size: a heading and the value at a point.
type Column = (&'static str, fn(&Point) -> String);

impl Study {
    /// What is measured, in a few words.
    pub fn measured(&self) -> &'static str {
        let problem = |name| self.algorithms.iter().any(|subject| subject.entry.problem == name);
        match (self.metric, problem("mutex"), problem("election")) {
            (Metric::Messages, true, true) => "messages per entry or election",
            (Metric::Messages, true, false) => "messages per entry",
            (Metric::Messages, false, _) => "messages per election",
            (Metric::Time, true, true) => "time until all are served, or know the leader (ms)",
            (Metric::Time, true, false) => "time until all are served (ms)",
            (Metric::Time, false, _) => "time until all know the leader (ms)",
            (Metric::Wait, ..) => "waiting time (ms)",
            (Metric::Fairness, ..) => "fairness of waiting (Jain's index)",
            (Metric::Changes, ..) => "changes of leader in a run",
        }
    }

    /// Under which conditions, in a few words.
    pub fn conditions(&self) -> String {
        let has = |name| self.algorithms.iter().any(|subject| subject.entry.problem == name);
        let mut parts = Vec::new();
        if has("election") {
            let starters = match self.starters {
                Starters::All => "all start".to_owned(),
                Starters::Some(1) => "one starts".to_owned(),
                Starters::Some(count) => format!("{count} start"),
                Starters::Random => "some start".to_owned(),
                Starters::Smallest => "the smallest starts".to_owned(),
                Starters::Largest => "the largest starts".to_owned(),
            };
            let order = match self.order {
                Order::Ascending => "uids ascending",
                Order::Descending => "uids descending",
                Order::Random => "uids random",
            };
            parts.push(starters);
            if self.algorithms.iter().any(|subject| has_places(subject.entry.meta.layout)) {
                parts.push(order.to_owned());
            }
            if self.leader_down {
                parts.push("who would win is down".to_owned());
            }
        }
        if has("mutex") {
            if let [load] = self.load[..] {
                parts.push(match load {
                    1.0 => "all ask".to_owned(),
                    0.0 => "one asks".to_owned(),
                    load => format!("{load} of all ask"),
                });
            }
            parts.push(match self.requests {
                1 => format!("each once, for {}", self.hold),
                times => format!("each {times} times, for {}", self.hold),
            });
        }
        if self.within != Time::ZERO {
            parts.push(format!("within {}", self.within));
        }
        parts.push(format!("delay {}", self.delay));
        for (what, rates) in [("loss", &self.loss), ("crashes a second", &self.crash_rate)] {
            if let [rate] = rates[..]
                && rate > 0.0
            {
                parts.push(format!("{what} {rate}"));
            }
        }
        let runs = if self.trials == 1 { "run" } else { "runs" };
        parts.push(format!("{} {runs} each, seed {}", self.trials, self.seed));
        parts.join(", ")
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = vec![("n", |point| point.nodes.to_string())];
        if self.load.len() > 1 {
            let load = |point: &Point| point.load.map_or_else(String::new, |l| l.to_string());
            columns.push(("load", load));
        }
        if self.loss.len() > 1 {
            columns.push(("loss", |point| point.loss.to_string()));
        }
        if self.crash_rate.len() > 1 {
            columns.push(("crashes/s", |point| point.crash_rate.to_string()));
        }
        columns
    }
}

/// Whether it matters which uid is where.
fn has_places(layout: Layout) -> bool {
    !matches!(layout, Layout::Complete | Layout::Star)
}

/// A table of the metric, and what broke.
pub fn text(study: &Study, outcome: &Outcome) -> String {
    let columns = study.columns();
    let mut head: Vec<String> = vec!["algorithm".to_owned()];
    head.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    head.extend(
        ["mean", "±", "min", "p50", "p99", "max", "expected", "formula", ""].map(str::to_owned),
    );
    let mut rows = vec![head];
    for point in &outcome.points {
        let mut row = vec![point.algorithm.to_owned()];
        row.extend(columns.iter().map(|(_, value)| value(point)));
        match point.of(study.metric) {
            Some(s) => {
                let numbers = [s.mean, s.error(), s.min, s.p50, s.p99, s.max];
                row.extend(numbers.map(number));
            }
            None => row.extend(["–"; 6].map(str::to_owned)),
        }
        row.extend(formula(point, study.metric));
        row.push(remarks(point));
        rows.push(row);
    }
    let mut out = format!("{} · {}\n\n", study.measured(), study.conditions());
    out += &table(&rows);
    out
}

/// What was to be expected: the number, and why.
fn formula(point: &Point, metric: Metric) -> [String; 2] {
    let Some(formula) = point.formula(metric) else { return Default::default() };
    let mut text = formula.text.to_owned();
    if !formula.when.is_empty() {
        text += &format!(" ({})", formula.when);
    }
    if point.contradicts(metric) {
        text += " – contradicted";
    }
    [format!("{} {}", formula.relation.sign(), number(formula.value)), text]
}

fn remarks(point: &Point) -> String {
    let trials = point.trials;
    let broken = point.broken.iter().map(|broken| {
        let promised = if broken.claimed { "" } else { " (not promised)" };
        format!("✘ {} in {}/{trials}{promised}", broken.promise, broken.runs)
    });
    let mut remarks: Vec<String> = broken.collect();
    if 0 < point.endless {
        remarks.push(format!("cut off in {}/{trials}", point.endless));
    }
    if point.messages.is_none() {
        remarks.push("nobody entered".to_owned());
    }
    remarks.join(", ")
}

/// Numbers short enough to compare at a glance.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 || size == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The first and the last two columns are words, the others numbers.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let last = rows[0].len() - 1;
    // A column of nothing but its heading is left out.
    let is_empty = |column: usize| rows[1..].iter().all(|row| row[column].is_empty());
    let shown: Vec<(usize, usize)> = (0..=last)
        .filter(|&column| !is_empty(column))
        .map(|column| (column, width(column)))
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for &(column, width) in &shown {
            let cell = &row[column];
            match column {
                0 => write!(line, "{cell:width$}"),
                _ if last - 1 <= column => write!(line, "  {cell:width$}"),
                _ => write!(line, "  {cell:>width$}"),
            }
            .expect("strings take anything");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

const SUMMARY: [&str; 7] = ["count", "mean", "deviation", "min", "p50", "p99", "max"];

/// A row for every point, with everything measured.
pub fn csv(outcome: &Outcome) -> String {
    let measures = ["messages", "messages_total", "time_ms", "wait_ms", "fairness", "changes"];
    let mut out =
        String::from("algorithm,nodes,load,loss,crash_rate,trials,broken,unserved,endless");
    for measure in measures {
        for part in SUMMARY {
            write!(out, ",{measure}_{part}").expect("strings take anything");
        }
    }
    out += ",formula,relation,formula_value,by_kind\n";
    for point in &outcome.points {
        let load = point.load.map_or_else(String::new, |load| load.to_string());
        let broken = point.broken.iter().map(|b| format!("{}:{}", b.promise, b.runs));
        let broken = broken.collect::<Vec<_>>().join(";");
        write!(
            out,
            "{},{},{load},{},{},{},{broken},{},{}",
            point.algorithm,
            point.nodes,
            point.loss,
            point.crash_rate,
            point.trials,
            point.unserved,
            point.endless
        )
        .expect("strings take anything");
        let summaries = [
            &point.messages,
            &point.messages_total,
            &point.time_ms,
            &point.wait_ms,
            &point.fairness,
            &point.changes,
        ];
        for summary in summaries {
            out += &cells(summary.as_ref());
        }
        match point.formula(Metric::Messages) {
            Some(f) => {
                let relation = json!(f.relation);
                let relation = relation.as_str().unwrap_or_default();
                write!(out, ",{},{relation},{}", f.text, f.value).expect("strings take anything");
            }
            None => out += ",,,",
        }
        let kinds = point.by_kind.iter().map(|(kind, mean)| format!("{kind}:{mean}"));
        writeln!(out, ",{}", kinds.collect::<Vec<_>>().join(";")).expect("strings take anything");
    }
    out
}

fn cells(summary: Option<&Summary>) -> String {
    match summary {
        Some(s) => format!(
            ",{},{},{},{},{},{},{}",
            s.count, s.mean, s.deviation, s.min, s.p50, s.p99, s.max
        ),
        None => ",".repeat(SUMMARY.len()),
    }
}

/// Everything. Scripts depend on it: fields may be added, never changed.
pub fn json(study: &Study, outcome: &Outcome) -> Value {
    json!({
        "metric": study.metric.word(),
        "measured": study.measured(),
        "conditions": study.conditions(),
        "seed": study.seed,
        "trials": study.trials,
        "complete": outcome.unfinished == 0,
        "points": outcome.points,
        "skipped": outcome.skipped,
    })
}
