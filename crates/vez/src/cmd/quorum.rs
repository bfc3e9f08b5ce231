//! `vez quorum`: how likely a quorum of forgetful coordinators is to be violated.

mod report;
mod text;

use std::path::PathBuf;

use anyhow::ensure;
use vez_draw::chart::{Axis, Chart, Look, Mark, Scale, Series};
use vez_numbers::quorum::{Risk, risks};
use vez_numbers::{Fraction, Trials, simulate, trials_needed};

use super::figures::{number, parse_count, parse_probability};
use super::{Outcome, output};

/// How likely a quorum of coordinators that may restart and forget is to be violated.
///
/// P is the probability that one given coordinator restarts, and forgets whom it let in, while
/// somebody is inside. Numbers are exact: 1e-4 is 1/10000, and 1/14400 may be written as it is.
/// A violation is that some second quorum can form; availability, that at least a quorum of
/// coordinators is up, each being down with probability Q when asked.
///
/// Examples:
///   vez quorum --coordinators 32 --quorum 24 --restart-probability 1e-4
///   vez quorum --coordinators 7 --quorum 4 --restart-probability 1/14400 --target 1e-9
///   vez quorum --coordinators 7 --quorum 5 --restart-probability 0.05 --simulate --seed 1
///   vez quorum --coordinators 32 --quorum 24 --restart-probability 1e-4 --plot quorum.svg
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Quorum {
    /// How many coordinators there are.
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    coordinators: String,
    /// How many of them must let one in: more than half.
    #[arg(long = "quorum", short = 'm', value_name = "M", allow_hyphen_values = true)]
    size: String,
    /// That one given coordinator restarts while somebody is inside.
    #[arg(long, short = 'p', value_name = "P", allow_hyphen_values = true)]
    restart_probability: String,
    /// That one given coordinator is down when asked; P if not said.
    #[arg(long, value_name = "Q", allow_hyphen_values = true)]
    down_probability: Option<String>,
    /// The risk that is still borne: which quorum meets it?
    #[arg(long, value_name = "RISK", default_value = "1e-12", allow_hyphen_values = true)]
    target: String,
    /// How many ask at once, for the chance that nobody gets a quorum.
    #[arg(long, value_name = "N,…", default_value = "2,3,5", allow_hyphen_values = true)]
    participants: String,
    /// Throw dice too, and say whether they agree.
    #[arg(long)]
    simulate: bool,
    /// How often.
    #[arg(long, value_name = "N", default_value = "1000000", allow_hyphen_values = true)]
    trials: String,
    /// What the dice depend on.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Draw risk and availability for every quorum.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// As text, leave out split rounds and the table.
    #[arg(long)]
    brief: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// In words, with a table.
    Text,
    /// For scripts; probabilities as strings of 40 digits.
    Json,
    /// The table alone: a line for every quorum.
    Csv,
}

/// What was asked, understood.
struct Asked {
    n: u32,
    m: u32,
    restart: Fraction,
    restart_text: String,
    down: Fraction,
    down_text: String,
    target: Fraction,
    participants: Vec<u32>,
}

/// What is answered.
struct Answer {
    /// Of every quorum of more than half.
    every: Vec<Risk>,
    /// The smallest that meets the target.
    smallest: Option<u32>,
    dice: Option<Dice>,
}

/// What the dice say.
struct Dice {
    seed: u64,
    trials: u64,
    violation: Thrown,
    fixed_rival: Thrown,
}

/// One question put to the dice.
enum Thrown {
    /// Not to be seen in so few trials; how many it would take.
    TooRare(Fraction),
    Seen {
        times: u64,
        low: f64,
        high: f64,
        agrees: bool,
    },
}

const COORDINATORS_MAX: u32 = 10_000;
/// Longer denominators, all coordinators together, and one waits for minutes.
const BITS_MAX: u64 = 2_000_000;
const TRIALS_MAX: u64 = 1_000_000_000;
const PARTICIPANTS_MAX: u32 = 1_000_000;
/// An interval this sure is missed by one seed in a thousand.
const CONFIDENCE: f64 = 0.999;

impl Quorum {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let asked = self.asked()?;
        let trials: u64 = parse_count("--trials", &self.trials, "a whole number from 1 on")?;
        ensure!(
            (1..=TRIALS_MAX).contains(&trials),
            "--trials {trials}: expected 1 to {TRIALS_MAX}"
        );
        let every = risks(asked.n, &asked.restart, &asked.down);
        let smallest = every.iter().find(|risk| risk.violation <= asked.target);
        let smallest = smallest.map(|risk| risk.quorum);
        let mut answer = Answer { every, smallest, dice: None };
        if self.simulate {
            answer.dice = Some(throw(&asked, answer.risk(&asked), trials, self.seed));
        }
        let text = match self.format {
            Format::Text => text::text(&asked, &answer, self.brief),
            Format::Json => serde_json::to_string_pretty(&report::report(&asked, &answer))?,
            Format::Csv => report::csv(&answer),
        };
        if let Some(path) = &self.plot {
            output::write(Some(path), &chart(&asked, &answer).svg())?;
        }
        output::write(self.output.as_deref(), &text)?;
        let agrees = answer.dice.as_ref().is_none_or(Dice::agrees);
        Ok(if agrees { Outcome::Kept } else { Outcome::Broken })
    }

    fn asked(&self) -> anyhow::Result<Asked> {
        let whole = "a whole number from 1 on";
        let n: u32 = parse_count("--coordinators", &self.coordinators, whole)?;
        ensure!(
            (1..=COORDINATORS_MAX).contains(&n),
            "--coordinators {n}: expected 1 to {COORDINATORS_MAX}"
        );
        let smallest = n / 2 + 1;
        let m: u32 = parse_count("--quorum", &self.size, &format!("{smallest} to {n}"))?;
        ensure!(m <= n, "--quorum {m}: more than there are; expected {smallest} to {n}");
        ensure!(
            smallest <= m,
            "--quorum {m}: not more than half of {n} coordinators, so two quorums need not meet: \
             unsafe even without failures; expected {smallest} to {n}"
        );
        let restart = parse_probability("--restart-probability", &self.restart_probability)?;
        let down_text = self.down_probability.as_ref().unwrap_or(&self.restart_probability);
        let down = parse_probability("--down-probability", down_text)?;
        for (flag, value) in [("--restart-probability", &restart), ("--down-probability", &down)] {
            let bits = value.denominator().bits() * u64::from(n);
            ensure!(
                bits <= BITS_MAX,
                "{flag}: too many digits for exact sums over {n} coordinators; expected at most {}",
                (BITS_MAX / u64::from(n) * 3 / 10).max(1)
            );
        }
        let target = parse_probability("--target", &self.target)?;
        let mut participants = Vec::new();
        for part in self.participants.split(',') {
            let expected = format!("1 to {PARTICIPANTS_MAX}, with commas between");
            let count: u32 = parse_count("--participants", part, &expected)?;
            let fits = (1..=PARTICIPANTS_MAX).contains(&count);
            ensure!(fits, "--participants {count}: expected {expected}");
            participants.push(count);
        }
        let restart_text = self.restart_probability.trim().to_owned();
        let down_text = down_text.trim().to_owned();
        Ok(Asked { n, m, restart, restart_text, down, down_text, target, participants })
    }
}

impl Answer {
    /// Of the quorum that was asked for.
    fn risk(&self, asked: &Asked) -> &Risk {
        let index = asked.m - (asked.n / 2 + 1);
        &self.every[index as usize]
    }
}

impl Dice {
    fn agrees(&self) -> bool {
        let agrees = |thrown: &Thrown| !matches!(thrown, Thrown::Seen { agrees: false, .. });
        agrees(&self.violation) && agrees(&self.fixed_rival)
    }
}

fn throw(asked: &Asked, risk: &Risk, trials: u64, seed: u64) -> Dice {
    let blank = Trials { trials, violations: 0, fixed_rival: 0 };
    let hopeless = [&risk.violation, &risk.fixed_rival].map(|chance| blank.are_too_few_for(chance));
    let counts = match hopeless {
        // Nothing would be learnt.
        [true, true] => blank,
        _ => simulate(asked.n, asked.m, &asked.restart, trials, seed),
    };
    let judge = |chance: &Fraction, times: u64, interval: vez_numbers::Interval| {
        if let (true, Some(needed)) = (blank.are_too_few_for(chance), trials_needed(chance)) {
            return Thrown::TooRare(needed);
        }
        let agrees = interval.contains(chance.to_f64());
        Thrown::Seen { times, low: interval.low, high: interval.high, agrees }
    };
    let of_violation = counts.violation_interval(CONFIDENCE);
    let of_rival = counts.fixed_rival_interval(CONFIDENCE);
    Dice {
        seed,
        trials,
        violation: judge(&risk.violation, counts.violations, of_violation),
        fixed_rival: judge(&risk.fixed_rival, counts.fixed_rival, of_rival),
    }
}

/// Risk and unavailability over every quorum, both logarithmic: one falls, the other rises.
fn chart(asked: &Asked, answer: &Answer) -> Chart {
    let line = |label: &str, of: &dyn Fn(&Risk) -> &Fraction| {
        let points = answer.every.iter().map(|risk| {
            // What never happens has no place on a logarithmic axis.
            (f64::from(risk.quorum), of(risk).log10().unwrap_or(f64::NEG_INFINITY))
        });
        let look = if answer.every.len() <= 60 { Look::PointsAndLine } else { Look::Line };
        Series::new(label, look, points)
    };
    let mut marks = vec![match answer.smallest {
        Some(smallest) if smallest == asked.m => Mark::X {
            at: f64::from(asked.m),
            label: format!("m = {smallest}, the smallest for the target"),
        },
        _ => Mark::X { at: f64::from(asked.m), label: format!("m = {}", asked.m) },
    }];
    if let Some(smallest) = answer.smallest.filter(|&smallest| smallest != asked.m) {
        let label = format!("m = {smallest}, the smallest for the target");
        marks.push(Mark::X { at: f64::from(smallest), label });
    }
    if let Some(at) = asked.target.log10() {
        marks.push(Mark::Y { at, label: format!("target {}", number(&asked.target, 3)) });
    }
    let impossible = |risk: &Risk| risk.violation.is_zero() || risk.unavailable.is_zero();
    let never = match answer.every.iter().any(impossible) {
        true => "; what never happens has no place on this scale",
        false => "",
    };
    Chart {
        title: format!("A quorum of m of {} coordinators", asked.n),
        subtitle: format!(
            "each restarts with probability {} while somebody is inside, and is down with {}{}",
            asked.restart_text, asked.down_text, never
        ),
        x: Axis::new("quorum m", Scale::Linear),
        y: Axis::new("probability", Scale::Exponent),
        series: vec![
            line("violated: P_v", &|risk| &risk.violation),
            line("one given rival", &|risk| &risk.fixed_rival),
            line("unavailable", &|risk| &risk.unavailable),
        ],
        marks,
    }
}
