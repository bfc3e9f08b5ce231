//! `vez timeout`: how long to wait before suspecting.

mod report;
mod samples;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use vez_draw::chart::{Axis, Chart, Look, Mark, Point, Scale, Series, readable};
use vez_numbers::timeout::{Choice, Costs};
use vez_numbers::{Law, Measured};

use super::figures::parse_real;
use super::{Outcome, output};

/// How long to wait before suspecting: what a mistake costs against what waiting costs.
///
/// C is the cost of suspecting a process that is alive, p(T) the probability that a live process
/// answers later than T, E(T) = e·T the cost of waiting. Two rules: the shortest T with
/// C·p(T) < E(T), and the T at which e·T + C·p(T) is smallest. Neither is ever safe.
///
/// Answers are measured (--samples: a number a line, a CSV column, JSON lines with a field
/// `rtt_ms`, or the trace of `vez node`; - is standard input) or follow a law. All times are in
/// one unit, and e is per unit.
///
/// Examples:
///   vez timeout --exponential 0.1 --mistake-cost 1000 --wait-cost 1
///   vez timeout --samples rtt.txt --mistake-cost 1000 --wait-cost 1 --plot timeout.svg
///   vez timeout --samples ping.csv --column latency --mistake-cost 50 --wait-cost 0.2 --timeout 30
///   vez timeout --lognormal 12:0.5 --mistake-cost 1000 --wait-cost 1 --format json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("answers").required(true))]
pub struct Timeout {
    /// A file of measured answers; - for standard input.
    #[arg(long, value_name = "FILE", group = "answers")]
    samples: Option<PathBuf>,
    /// Which column of a CSV file, by name or number from 1 on, or which field of JSON lines.
    #[arg(long, value_name = "NAME|N", requires = "samples")]
    column: Option<String>,
    /// Answers follow an exponential law: so many a unit of time (1 / mean).
    #[arg(long, value_name = "RATE", group = "answers", allow_hyphen_values = true)]
    exponential: Option<String>,
    /// Answers follow a lognormal law.
    #[arg(long, value_name = "MEDIAN:SIGMA", group = "answers", allow_hyphen_values = true)]
    lognormal: Option<String>,
    /// Any answer between two times is as likely as any other.
    #[arg(long, value_name = "A..B", group = "answers", allow_hyphen_values = true)]
    uniform: Option<String>,
    /// C: what one wrong suspicion costs.
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    mistake_cost: String,
    /// e: what a unit of time spent waiting costs.
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    wait_cost: String,
    /// Judge this timeout too; exit with 1 if it is not acceptable.
    #[arg(long = "timeout", value_name = "T", allow_hyphen_values = true)]
    judged: Option<String>,
    /// What times are measured in.
    #[arg(long, value_name = "UNIT", default_value = "ms")]
    unit: String,
    /// Draw the costs over the timeout.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// In words.
    Text,
    /// For scripts, with the curve.
    Json,
}

/// What was asked, understood, and its answer.
struct Answer {
    law: Law,
    /// The law in words.
    answers: String,
    /// JSON lines without the field.
    skipped: usize,
    costs: Costs,
    unit: String,
    acceptable: Choice,
    cheapest: Choice,
    asked: Option<Choice>,
}

/// How sure an interval of p(T) is.
const CONFIDENCE: f64 = 0.95;
/// Points of the curve.
const CURVE: u32 = 240;
const STEPS_MAX: usize = 100;

impl Timeout {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let answer = self.answer()?;
        let text = match self.format {
            Format::Text => report::text(&answer),
            Format::Json => serde_json::to_string_pretty(&report::report(&answer))?,
        };
        if let Some(path) = &self.plot {
            output::write(Some(path), &answer.chart().svg())?;
        }
        output::write(self.output.as_deref(), &text)?;
        let refused = answer.asked.is_some_and(|asked| !asked.is_acceptable());
        Ok(if refused { Outcome::Broken } else { Outcome::Kept })
    }

    fn answer(&self) -> anyhow::Result<Answer> {
        let mistake = parse_real("--mistake-cost", &self.mistake_cost, "a number, 0 or more")?;
        let mistake_text = &self.mistake_cost;
        ensure!(0.0 <= mistake, "--mistake-cost {mistake_text}: expected a number, 0 or more");
        let wait = parse_real("--wait-cost", &self.wait_cost, "a number, more than 0")?;
        let wait_text = &self.wait_cost;
        ensure!(0.0 < wait, "--wait-cost {wait_text}: expected a number, more than 0");
        let costs = Costs { mistake, wait };
        ensure!(
            (mistake / wait).is_finite(),
            "--mistake-cost {mistake_text}: too far above --wait-cost {wait_text} to be compared with it"
        );
        let (law, answers, skipped) = self.law()?;
        let asked = match &self.judged {
            None => None,
            Some(text) => {
                let timeout = parse_real("--timeout", text, "a time, 0 or more")?;
                ensure!(0.0 <= timeout, "--timeout {text}: expected a time, 0 or more");
                Some(costs.of(&law, timeout))
            }
        };
        let acceptable = costs.smallest_acceptable(&law);
        let cheapest = costs.cheapest(&law);
        let unit = self.unit.clone();
        Ok(Answer { law, answers, skipped, costs, unit, acceptable, cheapest, asked })
    }

    fn law(&self) -> anyhow::Result<(Law, String, usize)> {
        let unit = &self.unit;
        if let Some(text) = &self.exponential {
            let rate = positive("--exponential", text, text, "a rate, more than 0")?;
            let words = format!(
                "exponential, {} a {unit} (mean {} {unit})",
                readable(rate),
                readable(1.0 / rate)
            );
            return Ok((Law::Exponential { rate }, words, 0));
        }
        if let Some(text) = &self.lognormal {
            let expected = "MEDIAN:SIGMA, both more than 0";
            let Some((median, sigma)) = text.split_once(':') else {
                bail!("--lognormal {text}: expected {expected}");
            };
            let median = positive("--lognormal", text, median, expected)?;
            let sigma = positive("--lognormal", text, sigma, expected)?;
            let words =
                format!("lognormal, median {} {unit}, sigma {}", readable(median), readable(sigma));
            return Ok((Law::Lognormal { median, sigma }, words, 0));
        }
        if let Some(text) = &self.uniform {
            let expected = "A..B with 0 ≤ A < B";
            let Some((from, to)) = text.split_once("..") else {
                bail!("--uniform {text}: expected {expected}");
            };
            let [from, to] = [from, to].map(|part| part.trim().parse::<f64>().unwrap_or(f64::NAN));
            let right = 0.0 <= from && from < to && to.is_finite();
            ensure!(right, "--uniform {text}: expected {expected}");
            let words = format!("uniform, {} to {} {unit}", readable(from), readable(to));
            return Ok((Law::Uniform { from, to }, words, 0));
        }
        let path = self.samples.as_deref().unwrap_or(Path::new("-"));
        let read = samples::read(path, self.column.as_deref())?;
        let Some(measured) = Measured::new(read.times) else {
            bail!("{}: no samples; expected at least one", path.display());
        };
        let (count, times) = (measured.times().len(), measured.times());
        let words = format!(
            "{count} measured, {} to {} {unit}, median {} {unit}",
            readable(times[0]),
            readable(measured.largest()),
            readable(times[(count - 1) / 2])
        );
        Ok((Law::Measured(measured), words, read.skipped))
    }
}

/// A part of a flag's value.
fn positive(flag: &str, whole: &str, part: &str, expected: &str) -> anyhow::Result<f64> {
    let value = part.trim().parse().ok().filter(|value: &f64| value.is_finite() && 0.0 < *value);
    value.ok_or_else(|| anyhow::anyhow!("{flag} {whole}: expected {expected}"))
}

impl Answer {
    /// Timeouts worth a look: somewhat beyond all that matter.
    fn timeouts(&self) -> Vec<f64> {
        let choices = [Some(self.acceptable), Some(self.cheapest), self.asked];
        let far = choices.into_iter().flatten().map(|choice| choice.timeout);
        // Beyond C/e waiting alone costs more than any mistake.
        let dear = self.costs.mistake / self.costs.wait;
        let end = far.fold(self.law.quantile(0.01).min(dear), f64::max) * 1.2;
        let end = if 0.0 < end { end } else { self.law.quantile(0.01).max(1.0) };
        let mut timeouts: Vec<f64> =
            (0..=CURVE).map(|i| end * f64::from(i) / f64::from(CURVE)).collect();
        if let Law::Measured(measured) = &self.law
            && measured.times().len() <= STEPS_MAX
        {
            // Few samples make steps that are seen: just before and at each.
            let within = measured.times().iter().filter(|&&time| time <= end);
            timeouts.extend(within.flat_map(|&time| [time * (1.0 - 1e-9), time]));
            timeouts.sort_by(f64::total_cmp);
            timeouts.dedup();
        }
        timeouts
    }

    fn chart(&self) -> Chart {
        let timeouts = self.timeouts();
        let all: Vec<Choice> = timeouts.iter().map(|&t| self.costs.of(&self.law, t)).collect();
        // A cost that falls to a small part of what it was needs a scale that shows both.
        let steep = self.cheapest.expected() * 12.0 < self.costs.mistake;
        let scale = if steep { Scale::Log10 } else { Scale::Linear };
        let least = self.cheapest.expected() / 50.0;
        let shown = |y: f64| if steep && y < least { 0.0 } else { y };
        let sum = all.iter().map(|choice| {
            let interval = self.law.late_between(choice.timeout, CONFIDENCE);
            let cost = |late: f64| self.costs.mistake * late + choice.waiting;
            let span = interval.map(|between| (cost(between.low), cost(between.high)));
            Point { x: choice.timeout, y: choice.expected(), span }
        });
        let part = |of: fn(&Choice) -> f64| all.iter().map(move |c| (c.timeout, of(c)));
        let [mistakes, waiting] = [part(|choice| choice.mistakes), part(|choice| choice.waiting)];
        let unit = &self.unit;
        let mark = |name: &str, choice: &Choice| Mark::X {
            at: choice.timeout,
            label: format!("{name} {} {unit}", readable(choice.timeout)),
        };
        let mut marks =
            vec![mark("C·p < E from", &self.acceptable), mark("cheapest at", &self.cheapest)];
        marks.extend(self.asked.as_ref().map(|asked| mark("asked for:", asked)));
        let mut y = Axis::new("expected cost", scale);
        if !steep {
            y = y.reaching(0.0);
        }
        Chart {
            title: "What a timeout costs".to_owned(),
            subtitle: format!(
                "answers: {}; C = {}, e = {} a {unit}{}",
                self.answers,
                readable(self.costs.mistake),
                readable(self.costs.wait),
                if let Law::Measured(_) = self.law { "; the band is 95 % sure" } else { "" }
            ),
            x: Axis::new(format!("timeout T ({unit})"), Scale::Linear).reaching(0.0),
            y,
            series: vec![
                Series::new("both: e·T + C·p(T)", Look::Line, sum),
                Series::new("mistakes: C·p(T)", Look::Line, mistakes.map(|(x, y)| (x, shown(y)))),
                Series::new("waiting: e·T", Look::Line, waiting.map(|(x, y)| (x, shown(y)))),
            ],
            marks,
        }
    }
}
