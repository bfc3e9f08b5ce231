//! `vez worst`: the arrangement, the initiators and the schedule that cost most.

use std::path::PathBuf;

use vez_core::{Time, Topology};

use super::bar::Bar;
use super::sweep::{listed, settle, threads, wiring};
use super::system::parsed;
use super::{Outcome, interrupt, output};
use crate::registry;
use crate::scenario::{Fault, Place};
use crate::sweep::{Subject, number};
use crate::worst::{Aim, Quest, Replay, json, seek, text};

/// Find the arrangement, the initiators and the schedule that cost most, and print the scenario.
///
/// A small system is enumerated whole: every arrangement of uids (on a ring, up to rotation) and
/// every set of initiators, on the reference schedule. Beyond that, other delays and other moments
/// of starting are searched by climbing. The result says exactly what was tried, and the scenario
/// it prints runs to the same count.
///
/// Examples:
///   vez worst chang-roberts --nodes 8
///   vez worst chang-roberts --nodes 8 --best
///   vez worst maekawa --nodes 9 --format scenario -o worst.toml && vez run worst.toml
///   vez worst raymond --nodes 7 --topology line --metric time
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Worst {
    /// The name of an algorithm; `vez algorithms` lists them.
    algorithm: String,
    /// How many processes.
    #[arg(long, default_value_t = 6, value_name = "N")]
    nodes: u32,
    #[arg(long, value_enum, default_value = "messages")]
    metric: Aim,
    /// Look for what costs least.
    #[arg(long)]
    best: bool,
    /// Who starts or asks: any set of processes, or all.
    #[arg(long, default_value = "any", value_name = "any|all")]
    initiators: String,
    /// complete, ring, star, line, grid or random:P; by default the algorithm's.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// A setting of the algorithm; `vez explain` lists them. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How long each stays inside.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    hold: String,
    /// How slow the search may make a link; 4ms if not said, 1ms where time is sought.
    #[arg(long, value_name = "TIME")]
    delay_max: Option<String>,
    /// How many runs the search may take, besides what is enumerated.
    #[arg(long, visible_alias = "budget", default_value_t = 20_000, value_name = "RUNS")]
    trials: u64,
    /// Enumerate what takes at most so many runs.
    #[arg(long, default_value_t = 1_500_000, value_name = "RUNS")]
    enumerate: u64,
    /// What chance depends on.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many threads; all cores if not said.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// What was found, how, and the scenario.
    Text,
    /// The same, for scripts.
    Json,
    /// The scenario alone, for `vez run`.
    Scenario,
}

impl Worst {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let quest = self.quest()?;
        let finding = {
            let mut bar = Bar::new("runs");
            seek(&quest, interrupt::flag(), |done, total, best| {
                let best = best.map_or_else(String::new, |best| format!(", {}", number(best)));
                bar.show(done, total, &best);
            })?
        };
        if finding.stopped {
            eprintln!("vez: stopped: this is the best so far");
        }
        let Some(scored) = &finding.best else { anyhow::bail!("stopped before the first run") };
        let replay = Replay::new(&quest, scored)?;
        let text = match self.format {
            Format::Text => text(&quest, &finding, scored, &replay),
            Format::Json => serde_json::to_string_pretty(&json(&quest, &finding, scored, &replay))?,
            Format::Scenario => replay.scenario.to_string(),
        };
        output::write(self.output.as_deref(), &text)?;
        Ok(Outcome::Kept)
    }

    fn quest(&self) -> anyhow::Result<Quest> {
        let entry = registry::find(&self.algorithm).map_err(anyhow::Error::msg)?;
        let mut subjects = [Subject { entry, config: std::collections::BTreeMap::new() }];
        settle(&mut subjects, &self.set)?;
        let [subject] = subjects;
        let max = Topology::NODES_MAX;
        if !(1..=max).contains(&self.nodes) {
            let place = Place::Flag(format!("--nodes {}", self.nodes));
            return Err(Fault::new(&place, format!("expected 1 to {max}")).into());
        }
        let delay_max = match &self.delay_max {
            Some(text) => parsed::<Time>("delay-max", text)?.value,
            None if self.metric == Aim::Time => Time::from_millis(1),
            None => Time::from_millis(4),
        };
        if self.trials == 0 && self.enumerate == 0 {
            anyhow::bail!("--trials 0 --enumerate 0: nothing to try; expected one above 0");
        }
        Ok(Quest {
            subject,
            n: self.nodes,
            wiring: self.topology.as_ref().map(|t| listed("topology", t, wiring)).transpose()?,
            metric: self.metric,
            best: self.best,
            all_start: listed("initiators", &self.initiators, |text| match text {
                "any" => Ok(false),
                "all" => Ok(true),
                _ => Err("expected any or all".to_owned()),
            })?,
            hold: parsed::<Time>("hold", &self.hold)?.value,
            delay_max,
            enumerate_max: self.enumerate,
            trials: self.trials,
            seed: self.seed,
            threads: threads(self.threads)?,
        })
    }
}
