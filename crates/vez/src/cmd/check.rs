//! `vez check`: every run of a small system, and the shortest one that breaks a promise.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use vez_check::{Hooks, Options, Reductions, Search};
use vez_core::{NodeSet, Promise};

use super::progress::{Meter, per_second};
use super::system::System;
use super::verdict::verdict;
use super::{Outcome, interrupt, output};
use crate::checking::{Assumption, CheckResult, Exhibit, Question, grouped, size};
use crate::picture::{Picture, subtitle};
use crate::scenario::{self, Members, Place, Placed, Resolved, Scenario, alternatives, parse_uid};

/// Explore every run of a small system: prove its promises kept, or show the shortest way to
/// break one.
///
/// By default the world grants what the algorithm assumes (`vez explain` says what that is):
/// three processes, every user asks once, and where crashes are allowed one may happen. From a
/// scenario file come the algorithm, who takes part, the topology and the settings.
///
/// Exit codes: 0 no promise was found broken (though the search may say it is incomplete), 1 one
/// was, 2 something is wrong with the call. Ctrl-C ends a search with what it has found so far.
///
/// Examples:
///   vez check ricart-agrawala --nodes 3 --entries 2
///   vez check lamport --without fifo
///   vez check bully --without synchrony --format scenario -o broken.toml && vez run broken.toml
///   vez check coordinator --nodes 2 --set lease=5ms --format html -o broken.html
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Check {
    #[command(flatten)]
    system: System,
    /// How often each user asks.
    #[arg(long, value_name = "K", default_value_t = 1)]
    entries: u32,
    /// Whose users ask at all; everyone's if not said.
    #[arg(long, value_name = "UID,…")]
    askers: Option<String>,
    /// How often each user may stop waiting before it is let in.
    #[arg(long, value_name = "W", default_value_t = 0)]
    withdrawals: u32,
    /// Take away something the algorithm assumes; `vez explain` lists what. Repeatable.
    #[arg(long, value_name = "ASSUMPTION", help_heading = "What may go wrong")]
    without: Vec<String>,
    /// How many crashes there may be in a run.
    #[arg(long, value_name = "C", help_heading = "What may go wrong")]
    crashes: Option<u32>,
    /// Who has crashed may come back.
    #[arg(long, overrides_with = "no_restarts", help_heading = "What may go wrong")]
    restarts: bool,
    /// Who has crashed stays down.
    #[arg(long, help_heading = "What may go wrong")]
    no_restarts: bool,
    /// Who comes back may have forgotten even what it saved.
    #[arg(long, help_heading = "What may go wrong")]
    amnesia: bool,
    /// How many messages may be lost in a run.
    #[arg(long, value_name = "L", help_heading = "What may go wrong")]
    losses: Option<u32>,
    /// How often a message may be heard again.
    #[arg(long, value_name = "D", help_heading = "What may go wrong")]
    duplicates: Option<u32>,
    /// How often the network may fall in two; it always heals.
    #[arg(long, value_name = "P", help_heading = "What may go wrong")]
    partitions: Option<u32>,
    /// Judge this promise; by default those the algorithm makes. Repeatable.
    #[arg(long, value_name = "NAME", help_heading = "What is judged")]
    promise: Vec<String>,
    /// Go on after the first broken promise, for the others.
    #[arg(long, help_heading = "What is judged")]
    keep_going: bool,
    #[arg(long, value_enum, help_heading = "How it is searched")]
    search: Option<Way>,
    /// How many random runs to try; with --search walks.
    #[arg(long, value_name = "N", help_heading = "How it is searched")]
    walks: Option<u64>,
    /// The longest of them, in steps.
    #[arg(long, value_name = "N", help_heading = "How it is searched")]
    steps: Option<u32>,
    /// What chance depends on, in random runs and random topologies.
    #[arg(long, value_name = "N", help_heading = "How it is searched")]
    seed: Option<u64>,
    /// Explore states up to this epoch (term, round) of the algorithm's.
    #[arg(long, value_name = "E", help_heading = "How it is searched")]
    epochs: Option<u64>,
    /// Leave out orders that cannot matter: fewer states, the same verdict; but runs that never
    /// end are not judged, and the trace need not be the shortest.
    #[arg(long, overrides_with = "no_reduce", help_heading = "How it is searched")]
    reduce: bool,
    /// Explore every order. This is the default.
    #[arg(long, help_heading = "How it is searched")]
    no_reduce: bool,
    /// Take states for one that differ only by who is who, where that does not matter. Whether it
    /// does is found out on the way.
    #[arg(long, conflicts_with = "wide", help_heading = "How it is searched")]
    symmetry: bool,
    /// Remember a few bits in a table of this size for each state: some are overlooked.
    #[arg(long, value_name = "SIZE", help_heading = "How it is searched")]
    bitstate: Option<String>,
    /// Remember states by 128 bits, not 64: so many that none is overlooked by chance, at twice the
    /// memory.
    #[arg(long, conflicts_with = "bitstate", help_heading = "How it is searched")]
    wide: bool,
    /// How many threads search; as many as there are cores if not said.
    #[arg(long, value_name = "T", help_heading = "How it is searched")]
    threads: Option<usize>,
    /// Stop after this many states: 5000000, 5M.
    #[arg(long, value_name = "M", help_heading = "How it is searched")]
    max_states: Option<String>,
    /// Stop when this much memory is full: 512MiB, 4GiB (the default).
    #[arg(long, value_name = "SIZE", help_heading = "How it is searched")]
    memory: Option<String>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// Every state, nearest first: the trace is the shortest there is.
    Bfs,
    /// Every state, deepest first: less memory, longer traces.
    Dfs,
    /// Random runs, for what does not fit.
    Walks,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The verdict, and the trace in words.
    Text,
    /// The verdict, for scripts.
    Json,
    /// The trace as a scenario file, which `vez run` replays.
    Scenario,
    /// The trace as a sequence diagram.
    Mermaid,
    /// The trace as a space–time diagram.
    Svg,
    /// The diagram as a page that needs nothing else.
    Html,
    /// Every event of the trace, one a line.
    Jsonl,
    /// The trace as a log with vector clocks for `ShiViz`.
    Shiviz,
}

/// Where nothing is said.
const NODES: u64 = 3;
const WALKS: u64 = 10_000;
const STEPS: u32 = 1_000;
/// A search of more states than this is not repeated for the sake of a trace that does not change.
const AGAIN_MAX: u64 = 5_000_000;

impl Check {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let system = self.scenario()?;
        let resolved = scenario::resolve(&system).map_err(|fault| self.system.located(fault))?;
        let without = self.without(&resolved)?;
        let options = self.options(&resolved, &without)?;
        let meter = Meter::new();
        let show = |progress| meter.show(progress);
        let hooks = Hooks { cancel: Some(interrupt::flag()), progress: Some(&show) };
        let Resolved { entry, topology, config, .. } = &resolved;
        let search = |options: &Options| (entry.check)(topology, config, options, &hooks);
        let mut outcome = search(&options);
        // Of several ways as short, one thread alone always finds the same.
        if outcome.as_ref().is_ok_and(|outcome| !outcome.kept() && outcome.states < AGAIN_MAX) {
            outcome = search(&Options { threads: 1, ..options.clone() });
        }
        let seconds = meter.seconds();
        meter.clear();
        let outcome = outcome.map_err(|error| anyhow::anyhow!("{}: {error}", entry.meta.name))?;
        let found = outcome.counterexample.as_ref();
        let name = found.map(|found| exhibit_name(&resolved, &without, found.promise));
        let exhibit = found.zip(name).and_then(|(found, name)| Exhibit::new(&system, &name, found));
        let question = Question { resolved: &resolved, options: &options, without: &without };
        let text = match self.format {
            Format::Text => {
                remark(&outcome, seconds);
                Some(verdict(&question, &outcome, exhibit.as_ref()))
            }
            Format::Json => {
                let result = CheckResult::new(&question, &outcome, exhibit.as_ref(), seconds);
                Some(serde_json::to_string_pretty(&result)?)
            }
            _ => self.show(exhibit.as_ref(), &without, found.is_some())?,
        };
        if let Some(text) = text {
            output::write(self.output.as_deref(), &text)?;
        }
        Ok(if outcome.kept() { Outcome::Kept } else { Outcome::Broken })
    }

    fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = self.system.scenario()?;
        if self.system.file().is_none() && !self.system.says_who() {
            scenario.members = Members::Count(Placed::new(NODES, Place::Whole));
        }
        // Of a file only the system counts; what happens in it is what is to be explored.
        (scenario.events, scenario.links, scenario.clocks) = Default::default();
        (scenario.network, scenario.drift) = Default::default();
        (scenario.messages, scenario.timers, scenario.choices) = Default::default();
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    fn without(&self, resolved: &Resolved) -> anyhow::Result<Vec<Assumption>> {
        let named = |name: &String| {
            Assumption::named(name, &resolved.entry.meta)
                .map_err(|why| anyhow::anyhow!("--without {name}: {why}"))
        };
        let mut without = self.without.iter().map(named).collect::<anyhow::Result<Vec<_>>>()?;
        without.sort_unstable();
        without.dedup();
        Ok(without)
    }

    fn options(&self, resolved: &Resolved, without: &[Assumption]) -> anyhow::Result<Options> {
        let mut options = Options::new(&resolved.entry.meta);
        for assumption in without {
            assumption.remove(&mut options);
        }
        if self.entries == 0 {
            anyhow::bail!("--entries 0: nobody would ask for anything; expected 1 or more");
        }
        options.entries = self.entries;
        options.askers = self.askers(resolved)?;
        self.faults(&mut options);
        options.promises = self.promises(resolved)?;
        options.bounded_wait = options.promises.contains(&Promise::BoundedWait);
        options.keep_going = self.keep_going;
        options.search = self.search()?;
        options.epoch_max = self.epochs.unwrap_or(options.epoch_max);
        options.threads = match self.threads {
            Some(0) => anyhow::bail!("--threads 0; expected 1 or more"),
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if let Some(text) = &self.max_states {
            options.states_max = measure("max-states", text, &COUNTS)?;
        }
        if let Some(text) = &self.memory {
            options.memory_max = measure("memory", text, &SIZES)?;
        }
        let bitstate = self.bitstate.as_ref().map(|text| measure("bitstate", text, &SIZES));
        let bitstate = bitstate.transpose()?;
        let symmetry = self.symmetry;
        options.reductions = Reductions { ample: self.reduce, bitstate, symmetry };
        options.wide = self.wide;
        if symmetry && options.search != Search::BreadthFirst {
            anyhow::bail!("--symmetry: expected a breadth-first search, --search bfs");
        }
        Ok(options)
    }

    /// What is said outright counts for more than what follows from `--without`.
    fn faults(&self, options: &mut Options) {
        if self.amnesia || self.restarts {
            options.crashes = options.crashes.max(1);
            options.restarts = true;
        }
        options.amnesia |= self.amnesia;
        options.restarts &= !self.no_restarts;
        options.crashes = self.crashes.unwrap_or(options.crashes);
        options.losses = self.losses.unwrap_or(options.losses);
        options.duplicates = self.duplicates.unwrap_or(options.duplicates);
        options.partitions = self.partitions.unwrap_or(options.partitions);
        options.withdrawals = self.withdrawals;
    }

    fn askers(&self, resolved: &Resolved) -> anyhow::Result<Option<NodeSet>> {
        let Some(text) = &self.askers else { return Ok(None) };
        let wrong = |why: String| anyhow::anyhow!("--askers {text}: {why}");
        let mut askers = NodeSet::new();
        for uid in text.split(',') {
            let uid = parse_uid(uid.trim()).map_err(wrong)?;
            let node = resolved.topology.find(uid);
            let node = node.ok_or_else(|| {
                let uids = resolved.topology.ids().map(|node| resolved.topology.uid(node));
                let uids: Vec<String> = uids.take(12).map(|uid| uid.to_string()).collect();
                wrong(format!("no process has the uid {uid}; expected {}", uids.join(", ")))
            })?;
            askers.insert(node);
        }
        Ok(Some(askers))
    }

    fn promises(&self, resolved: &Resolved) -> anyhow::Result<Vec<Promise>> {
        let entry = &resolved.entry;
        if self.promise.is_empty() {
            if entry.meta.promises.is_empty() {
                let names: Vec<&str> = entry.promises.iter().map(|known| known.name()).collect();
                anyhow::bail!(
                    "{} promises nothing that could be checked; name what to judge it by with --promise {}",
                    entry.meta.name,
                    alternatives(&names)
                );
            }
            return Ok(entry.meta.promises.to_vec());
        }
        let mut promises = Vec::new();
        for name in &self.promise {
            let found = entry.promises.iter().find(|promise| promise.name() == name);
            let Some(&promise) = found else {
                let names: Vec<&str> = entry.promises.iter().map(|known| known.name()).collect();
                let (problem, names) = (entry.problem, alternatives(&names));
                anyhow::bail!("--promise {name}: no promise of {problem}; expected {names}");
            };
            if !promises.contains(&promise) {
                promises.push(promise);
            }
        }
        Ok(promises)
    }

    fn search(&self) -> anyhow::Result<Search> {
        let walks = self.walks.is_some() || self.steps.is_some();
        match self.search {
            Some(Way::Bfs | Way::Dfs) if walks => {
                anyhow::bail!("--walks and --steps are for --search walks")
            }
            Some(Way::Bfs) => Ok(Search::BreadthFirst),
            Some(Way::Dfs) => Ok(Search::DepthFirst),
            None if !walks => Ok(Search::BreadthFirst),
            Some(Way::Walks) | None => Ok(Search::Walks {
                count: self.walks.unwrap_or(WALKS),
                steps_max: self.steps.unwrap_or(STEPS),
                seed: self.seed.unwrap_or(0),
            }),
        }
    }

    fn show(
        &self,
        exhibit: Option<&Exhibit>,
        without: &[Assumption],
        is_broken: bool,
    ) -> anyhow::Result<Option<String>> {
        let Some(exhibit) = exhibit else {
            if is_broken {
                anyhow::bail!("the simulator does not confirm the trace; --format text shows it");
            }
            eprintln!("vez: no promise was found broken, so there is no trace to show");
            return Ok(None);
        };
        let picture = match self.format {
            Format::Text | Format::Json | Format::Scenario => {
                return Ok(Some(exhibit.scenario.to_string()));
            }
            Format::Mermaid => Picture::Mermaid,
            Format::Svg => Picture::Svg,
            Format::Html => Picture::Html,
            Format::Jsonl => Picture::Jsonl,
            Format::Shiviz => Picture::Shiviz,
        };
        let Exhibit { scenario, resolved, report, trace, .. } = exhibit;
        picture.admit(&resolved.topology)?;
        picture.admit_trace(trace)?;
        let mut subtitle = subtitle(resolved);
        for (place, assumption) in without.iter().enumerate() {
            let link = if place == 0 { ", without" } else { " and" };
            write!(subtitle, "{link} {}", assumption.name()).expect("strings take anything");
        }
        Ok(Some(picture.draw(&vez_draw::Run {
            title: &scenario.about.title.en,
            subtitle: &subtitle,
            topology: &resolved.topology,
            report,
            events: &trace.events,
        })))
    }
}

/// What differs from one time to the next, and so is not part of the result.
fn remark(outcome: &vez_check::Outcome, seconds: f64) {
    let rate = per_second(outcome.states, Duration::from_secs_f64(seconds));
    let memory = match outcome.statistics.memory_bytes {
        0 => String::new(), // Too little to have been measured.
        bytes => format!(", {}", size(bytes)),
    };
    eprintln!("{seconds:.2} s, {} states/s{memory}", grouped(rate));
}

/// `lamport-without-fifo`, or `coordinator-mutual-exclusion` where nothing was taken away.
fn exhibit_name(resolved: &Resolved, without: &[Assumption], promise: Promise) -> String {
    let mut name = resolved.entry.meta.name.to_owned();
    for (place, assumption) in without.iter().enumerate() {
        let link = if place == 0 { "without" } else { "and" };
        write!(name, "-{link}-{}", assumption.name()).expect("strings take anything");
    }
    if without.is_empty() {
        write!(name, "-{}", promise.name()).expect("strings take anything");
    }
    name
}

const COUNTS: [(&str, u64); 4] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("", 1)];
const SIZES: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
    ("", 1),
];

/// A whole number and a unit, such as `4GiB` or `5M`.
fn measure(flag: &str, text: &str, units: &[(&str, u64)]) -> anyhow::Result<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].trim();
    let number: Option<u64> = digits.trim().replace('_', "").parse().ok();
    let found = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let amount = number.zip(found).and_then(|(number, (_, unit))| number.checked_mul(*unit));
    match amount {
        Some(amount) if amount > 0 => Ok(amount),
        _ => {
            let like = if units.len() == COUNTS.len() { "5000000 or 5M" } else { "512MiB or 4GiB" };
            anyhow::bail!("--{flag} {text}: expected a number above 0, like {like}")
        }
    }
}
