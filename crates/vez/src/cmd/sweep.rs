//! `vez sweep`: many runs of many systems, measured against what they should cost.

use std::path::PathBuf;

use vez_core::Time;
use vez_numbers::cost::Order;
use vez_sim::Delay;

use super::bar::Bar;
use super::system::{parse_setting, parsed};
use super::{Outcome, interrupt, output};
use crate::registry;
use crate::scenario::{Fault, Place, Wiring, suggestion};
use crate::sweep::{self, Metric, Prepared, Starters, Study, Subject, axes};

/// Run algorithms side by side over sizes, loads and faults, and hold them against their formulas.
///
/// Every point is the sum of many trials, run on all cores. A trial depends on the seed, the
/// algorithm, the size and its number alone: the same call prints the same, whatever the machine.
/// Sizes double unless told otherwise; lists are swept: --loss 0,0.1,0.2.
///
/// Examples:
///   vez sweep chang-roberts franklin hirschberg-sinclair peterson --nodes 2..64 --plot rings.svg
///   vez sweep chang-roberts --nodes 2..32:+2 --order descending
///   vez sweep lamport ricart-agrawala maekawa suzuki-kasami --nodes 4..64
///   vez sweep coordinator token-ring --nodes 16 --load 0.1,0.5,1 --metric wait --plot wait.svg
///   vez sweep bully monitored --nodes 5 --crash-rate 0,1,2 --metric changes --until 2s
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Sweep {
    /// The names of algorithms; `vez algorithms` lists them.
    #[arg(required = true, value_name = "ALGORITHM")]
    algorithms: Vec<String>,
    /// Sizes: 2..64 doubles, 2..64:+2 adds, 2..64:x4 multiplies, 3,7,13 lists.
    #[arg(long, default_value = "2..64", value_name = "SIZES")]
    nodes: String,
    /// Runs of each point.
    #[arg(long, default_value_t = 20, value_name = "N")]
    trials: u32,
    /// What the table and the chart show; csv and json have everything.
    #[arg(long, value_enum, default_value = "messages")]
    metric: Metric,
    /// Who starts an election: all, one, random (any number), a number, smallest or largest.
    #[arg(long, default_value = "all", value_name = "WHO")]
    initiators: String,
    /// How uids lie along a ring or in a graph: ascending, descending or random.
    #[arg(long, default_value = "random", value_name = "ORDER")]
    order: String,
    /// Who would win is down from the start.
    #[arg(long)]
    leader_down: bool,
    /// The share of processes that want in; 0 is one. The first process asks only at 1.
    #[arg(long, default_value = "1", value_name = "SHARE,…")]
    load: String,
    /// How long each stays inside.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    hold: String,
    /// How often each asks, again as soon as it has left.
    #[arg(long, default_value_t = 1, value_name = "K")]
    requests: u32,
    /// Start or ask at random moments up to this one, not all at once.
    #[arg(long, default_value = "0ms", value_name = "TIME")]
    within: String,
    /// How long messages take, as in `vez run`.
    #[arg(long, default_value = "1ms", value_name = "DELAY")]
    delay: String,
    /// The share of messages that are lost.
    #[arg(long, default_value = "0", value_name = "P,…")]
    loss: String,
    /// How often each process crashes a second.
    #[arg(long, default_value = "0", value_name = "RATE,…")]
    crash_rate: String,
    /// How long who crashed stays down, where the algorithm lets it come back.
    #[arg(long, default_value = "100ms", value_name = "TIME")]
    down: String,
    /// complete, ring, star, line, grid or random:P; by default the algorithm's.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// A setting of every algorithm that has it. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// When to stop runs that do not end by themselves.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// What chance depends on.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many threads; all cores if not said.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Draw a chart, too.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Logarithmic axes, whatever suits the data.
    #[arg(long, conflicts_with = "linear")]
    log: bool,
    /// Linear axes, whatever suits the data.
    #[arg(long)]
    linear: bool,
    /// Write the first run that broke a promise as a scenario for `vez run`.
    #[arg(long, value_name = "FILE.toml")]
    broken: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table of the metric.
    Text,
    /// Everything, a row a point.
    Csv,
    /// Everything.
    Json,
}

impl Sweep {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let study = self.study()?;
        let outcome = {
            let stop = interrupt::flag();
            let prepared = Prepared::new(&study)?;
            for line in &prepared.skipped {
                eprintln!("vez: {line}");
            }
            let mut bar = Bar::new("runs");
            prepared.run(stop, |done, of| bar.show(done, of, ""))
        };
        if 0 < outcome.unfinished {
            let (left, done) = (outcome.unfinished, outcome.points.len());
            eprintln!("vez: stopped: {done} of {} points are finished", done + left);
        }
        if let Some(path) = &self.plot {
            let log = (self.log || self.linear).then_some(self.log);
            output::write(Some(path), &sweep::chart(&study, &outcome, log).svg())?;
        }
        let text = match self.format {
            Format::Text => sweep::text(&study, &outcome),
            Format::Csv => sweep::csv(&outcome),
            Format::Json => serde_json::to_string_pretty(&sweep::json(&study, &outcome))?,
        };
        output::write(self.output.as_deref(), &text)?;
        if let (Some(path), Some(scenario)) = (&self.broken, &outcome.broken) {
            output::write(Some(path), &scenario.to_string())?;
        }
        Ok(if outcome.claims_kept() { Outcome::Kept } else { Outcome::Broken })
    }

    fn study(&self) -> anyhow::Result<Study> {
        let study = Study {
            algorithms: self.subjects()?,
            nodes: listed("nodes", &self.nodes, axes::sizes)?,
            load: listed("load", &self.load, axes::shares)?,
            loss: listed("loss", &self.loss, axes::shares)?,
            crash_rate: listed("crash-rate", &self.crash_rate, axes::rates)?,
            trials: positive("trials", self.trials)?,
            seed: self.seed,
            metric: self.metric,
            starters: listed("initiators", &self.initiators, starters)?,
            order: listed("order", &self.order, order)?,
            leader_down: self.leader_down,
            hold: parsed::<Time>("hold", &self.hold)?.value,
            requests: positive("requests", self.requests)?,
            delay: parsed::<Delay>("delay", &self.delay)?.value,
            within: parsed::<Time>("within", &self.within)?.value,
            down: parsed::<Time>("down", &self.down)?.value,
            wiring: self.topology.as_ref().map(|t| listed("topology", t, wiring)).transpose()?,
            until: self.until.as_ref().map(|t| parsed("until", t)).transpose()?.map(|t| t.value),
            threads: threads(self.threads)?,
        };
        self.suits(&study)?;
        Ok(study)
    }

    fn subjects(&self) -> anyhow::Result<Vec<Subject>> {
        let mut subjects: Vec<Subject> = Vec::new();
        for name in &self.algorithms {
            let entry = registry::find(name).map_err(anyhow::Error::msg)?;
            if subjects.iter().any(|subject| subject.entry.meta.name == *name) {
                anyhow::bail!("{name} is listed twice");
            }
            subjects.push(Subject { entry, config: std::collections::BTreeMap::new() });
        }
        settle(&mut subjects, &self.set)?;
        Ok(subjects)
    }

    /// A metric that only one problem has must not be asked of the other.
    fn suits(&self, study: &Study) -> anyhow::Result<()> {
        let Some(problem) = self.metric.problem() else { return Ok(()) };
        let stranger = study.algorithms.iter().find(|subject| subject.entry.problem != problem);
        if let Some(stranger) = stranger {
            let (metric, name) = (self.metric.word(), stranger.entry.meta.name);
            let (has, is) = match problem {
                "mutex" => ("a mutual exclusion", "an election"),
                _ => ("an election", "a mutual exclusion"),
            };
            anyhow::bail!("--metric {metric}: only {has} has it; {name} is {is}");
        }
        Ok(())
    }
}

/// Gives every setting to the algorithms that have it.
pub(super) fn settle(subjects: &mut [Subject], settings: &[String]) -> anyhow::Result<()> {
    for setting in settings {
        let (key, value) = parse_setting(setting)?;
        let names = subjects.iter().flat_map(|subject| (subject.entry.settings)().into_iter());
        let names: Vec<String> = names.map(|(name, _)| name).collect();
        if !names.contains(&key) {
            let near = suggestion(&key, names.iter().map(String::as_str));
            return Err(value.fault(format!("no setting here is called `{key}`{near}")).into());
        }
        let having = |subject: &&mut Subject| (subject.entry.settings)().contains_key(&key);
        for subject in subjects.iter_mut().filter(having) {
            let alone = toml::Table::from_iter([(key.clone(), value.value.clone())]);
            (subject.entry.check_config)(&alone).map_err(|why| {
                let name = subject.entry.meta.name;
                value.fault(format!("setting `{key}` of {name}: {why}"))
            })?;
            subject.config.insert(key.clone(), value.clone());
        }
    }
    Ok(())
}

/// Reads a flag with a reader of its own, and complains with the flag's name.
pub(super) fn listed<T>(
    flag: &str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Fault> {
    read(text).map_err(|why| Fault::new(&Place::Flag(format!("--{flag} {text}")), why))
}

fn positive(flag: &str, count: u32) -> Result<u32, Fault> {
    let place = Place::Flag(format!("--{flag} {count}"));
    if count == 0 { Err(Fault::new(&place, "expected 1 or more")) } else { Ok(count) }
}

pub(super) fn threads(given: Option<usize>) -> Result<usize, Fault> {
    match given {
        Some(0) => Err(Fault::new(&Place::Flag("--threads 0".to_owned()), "expected 1 or more")),
        Some(count) => Ok(count),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn starters(text: &str) -> Result<Starters, String> {
    Ok(match text {
        "all" => Starters::All,
        "one" => Starters::Some(1),
        "random" => Starters::Random,
        "smallest" => Starters::Smallest,
        "largest" => Starters::Largest,
        _ => match text.parse() {
            Ok(count) if 0 < count => Starters::Some(count),
            _ => {
                return Err(
                    "expected all, one, random, smallest, largest or a number above 0".to_owned()
                );
            }
        },
    })
}

fn order(text: &str) -> Result<Order, String> {
    match text {
        "ascending" => Ok(Order::Ascending),
        "descending" => Ok(Order::Descending),
        "random" => Ok(Order::Random),
        _ => Err("expected ascending, descending or random".to_owned()),
    }
}

pub(super) fn wiring(text: &str) -> Result<Wiring, String> {
    match text.parse()? {
        Wiring::Edges(_) => Err("expected a shape that every size has".to_owned()),
        wiring => Ok(wiring),
    }
}
