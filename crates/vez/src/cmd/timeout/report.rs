//! The answer in words and for scripts.

use std::fmt::Write as _;

use serde::Serialize;
use vez_draw::chart::readable;
use vez_numbers::timeout::Choice;
use vez_numbers::{Interval, Law};

use super::{Answer, CONFIDENCE};

pub(super) fn text(answer: &Answer) -> String {
    let mut out = String::new();
    let mut put = |line: String| writeln!(out, "{line}").expect("to a string");
    let (unit, costs) = (&answer.unit, answer.costs);
    put(format!("answers  {}", answer.answers));
    let (mistake, wait) = (readable(costs.mistake), readable(costs.wait));
    put(format!("costs    C = {mistake} a wrong suspicion, e = {wait} a {unit} of waiting"));
    put(String::new());
    let [timeout, late] = [format!("T ({unit})"), "p(T)".to_owned()];
    put(format!("  {:34}{timeout:>10}{late:>11}{:>10}{:>10}{:>10}", "", "C·p", "E = e·T", "both"));
    let mut rows = vec![
        ("C·p < E, from", answer.acceptable),
        ("cheapest, smallest e·T + C·p", answer.cheapest),
    ];
    rows.extend(answer.asked.map(|asked| ("asked for", asked)));
    for (name, choice) in &rows {
        let figures =
            [choice.late, choice.mistakes, choice.waiting, choice.expected()].map(readable);
        let [late, mistakes, waiting, both] = figures;
        let timeout = readable(choice.timeout);
        put(format!("  {name:34}{timeout:>10}{late:>11}{mistakes:>10}{waiting:>10}{both:>10}"));
    }
    if let Some(asked) = &answer.asked {
        let [mistakes, waiting] = [asked.mistakes, asked.waiting].map(readable);
        put(String::new());
        put(match asked.is_acceptable() {
            true => {
                format!("✔ {} {unit}: C·p = {mistakes} < E = {waiting}", readable(asked.timeout))
            }
            false => {
                format!(
                    "✘ {} {unit}: C·p = {mistakes}, not below E = {waiting}",
                    readable(asked.timeout)
                )
            }
        });
    }
    put(String::new());
    for line in remarks(answer) {
        put(line);
    }
    out
}

/// What a timeout cannot do, and what the numbers do not say.
fn remarks(answer: &Answer) -> Vec<String> {
    let mut remarks = vec![
        "No timeout is safe: a process that is only slow looks like a dead one. These only price"
            .to_owned(),
        "the mistakes; what a wrong suspicion does must be borne (fences, terms, withdrawal)."
            .to_owned(),
    ];
    if let Law::Measured(measured) = &answer.law {
        for (name, choice) in [("C·p < E", answer.acceptable), ("cheapest", answer.cheapest)]
            .into_iter()
            .chain(answer.asked.map(|asked| ("asked for", asked)))
        {
            let Some(between) = answer.law.late_between(choice.timeout, CONFIDENCE) else {
                continue;
            };
            let (late, all) = (measured.later(choice.timeout), measured.times().len());
            remarks.push(format!(
                "{name}: {late} of {all} were later; p(T) is between {} and {} (95 % sure)",
                readable(between.low),
                readable(between.high)
            ));
        }
        let beyond = answer.cheapest.timeout.max(answer.acceptable.timeout);
        if measured.largest() <= beyond {
            let (largest, unit) = (readable(measured.largest()), &answer.unit);
            remarks.push(format!(
                "Nothing was measured beyond {largest} {unit}: there p(T) = 0 only says that the sample ends."
            ));
        }
    }
    if 0 < answer.skipped {
        remarks.push(format!("{} lines without that field were left out.", answer.skipped));
    }
    remarks
}

#[derive(Serialize)]
pub(super) struct Report {
    unit: String,
    answers: Answers,
    mistake_cost: f64,
    wait_cost: f64,
    /// The shortest with C·p(T) < E(T): every longer one is acceptable, no shorter one is.
    acceptable: Chosen,
    cheapest: Chosen,
    asked: Option<Chosen>,
    warnings: Vec<String>,
    curve: Vec<Chosen>,
}

#[derive(Serialize)]
#[serde(tag = "law", rename_all = "snake_case")]
enum Answers {
    Exponential { rate: f64 },
    Lognormal { median: f64, sigma: f64 },
    Uniform { from: f64, to: f64 },
    Measured { samples: usize, smallest: f64, largest: f64, lines_without: usize },
}

#[derive(Serialize)]
struct Chosen {
    timeout: f64,
    late_probability: f64,
    /// Of `late_probability`, 95 % sure; of measured answers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_interval: Option<Interval>,
    mistake_cost: f64,
    wait_cost: f64,
    expected_cost: f64,
    /// Whether C·p(T) < E(T); of the one that was asked for only.
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptable: Option<bool>,
}

pub(super) fn report(answer: &Answer) -> Report {
    let chosen = |choice: &Choice| Chosen {
        timeout: choice.timeout,
        late_probability: choice.late,
        late_interval: answer.law.late_between(choice.timeout, CONFIDENCE),
        mistake_cost: choice.mistakes,
        wait_cost: choice.waiting,
        expected_cost: choice.expected(),
        acceptable: None,
    };
    let judged =
        |choice: &Choice| Chosen { acceptable: Some(choice.is_acceptable()), ..chosen(choice) };
    let answers = match &answer.law {
        Law::Exponential { rate } => Answers::Exponential { rate: *rate },
        Law::Lognormal { median, sigma } => Answers::Lognormal { median: *median, sigma: *sigma },
        Law::Uniform { from, to } => Answers::Uniform { from: *from, to: *to },
        Law::Measured(measured) => Answers::Measured {
            samples: measured.times().len(),
            smallest: measured.times()[0],
            largest: measured.largest(),
            lines_without: answer.skipped,
        },
    };
    let curve = answer.timeouts().into_iter();
    Report {
        unit: answer.unit.clone(),
        answers,
        mistake_cost: answer.costs.mistake,
        wait_cost: answer.costs.wait,
        acceptable: chosen(&answer.acceptable),
        cheapest: chosen(&answer.cheapest),
        asked: answer.asked.as_ref().map(judged),
        warnings: remarks(answer),
        curve: curve.map(|t| chosen(&answer.costs.of(&answer.law, t))).collect(),
    }
}
