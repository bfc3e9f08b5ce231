//! `vez run`: a scenario, from a file or from flags, run and judged.

use std::fmt::Write as _;
use std::path::PathBuf;

use vez_core::Time;
use vez_sim::{Delay, Report, TraceEvent};

use super::summary::summary;
use super::system::{System, parsed, replace};
use super::{Outcome, output};
use crate::picture::{self, Picture};
use crate::registry;
use crate::result::RunResult;
use crate::scenario::{
    self, Act, Event, EventFlags, Fault, Place, Placed, Resolved, Scenario, Whom,
};

/// Run an algorithm, or a scenario file, and judge it by its promises.
///
/// Every message takes 1 ms and arrives in order, unless told otherwise. Events take a process's
/// uid and a moment: --crash 7@10ms. Without a moment they happen at the start. On top of a file,
/// a flag takes the place of what the file says of the same.
///
/// Examples:
///   vez run chang-roberts --ids 0,1,2,3,4,5,6,7 --start 2
///   vez run bully --nodes 7 --crash 7@0 --start 4@0
///   vez run coordinator --nodes 4 --acquire 2@0:5ms --acquire 3@1ms:5ms --format html -o run.html
///   vez run scenarios/s03-slow-holder.toml --format mermaid
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Run {
    #[command(flatten)]
    system: System,
    /// Who starts an election: UID or all. Repeatable, like all events.
    #[arg(long, value_name = "UID[@TIME]")]
    start: Vec<String>,
    /// Who suspects whom of having failed.
    #[arg(long, value_name = "UID:UID[@TIME]")]
    suspect: Vec<String>,
    /// Who (UID or all) asks to enter, and stays how long (1ms if not said).
    #[arg(long, value_name = "UID[@TIME[:HOLD]]")]
    acquire: Vec<String>,
    /// Who stops waiting.
    #[arg(long, value_name = "UID[@TIME]")]
    withdraw: Vec<String>,
    /// Who crashes.
    #[arg(long, value_name = "UID[@TIME]")]
    crash: Vec<String>,
    /// Who crashes in its next step, after saving its state and before sending anything.
    #[arg(long, value_name = "UID[@TIME]")]
    crash_unsent: Vec<String>,
    /// Who comes back, or goes down and comes back at once.
    #[arg(long, value_name = "UID[@TIME]")]
    restart: Vec<String>,
    /// Who is alive but slow, and for how long.
    #[arg(long, value_name = "UID@TIME:FOR")]
    pause: Vec<String>,
    /// Which groups can no longer talk to each other: 1,2/3,4@10ms.
    #[arg(long, value_name = "UIDS/UIDS[@TIME]")]
    partition: Vec<String>,
    /// Which link goes down: 1-2, or 1>2 for one direction.
    #[arg(long, value_name = "LINK[@TIME]")]
    cut: Vec<String>,
    /// Which link comes back; @TIME alone heals everything.
    #[arg(long, value_name = "[LINK]@TIME")]
    heal: Vec<String>,
    /// How long messages take: 1ms, 1ms..5ms, exp:2ms (mean) or lognormal:2ms:0.5 (median, sigma).
    #[arg(long)]
    delay: Option<String>,
    /// The share of messages that are lost.
    #[arg(long, value_name = "P")]
    loss: Option<f64>,
    /// The share of messages that arrive twice.
    #[arg(long, value_name = "P")]
    duplicate: Option<f64>,
    /// Messages may overtake each other.
    #[arg(long)]
    reorder: bool,
    /// How fast a process's clock runs: UID:RATE, 1 being right. Repeatable.
    #[arg(long, value_name = "UID:RATE")]
    clock: Vec<String>,
    /// How much every clock may be off: 0.01 for one per cent.
    #[arg(long, value_name = "SHARE")]
    drift: Option<f64>,
    /// A restart loses even what was saved.
    #[arg(long)]
    amnesia: bool,
    /// When to stop if it does not end by itself.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// What chance depends on; 0 if not said.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the scenario these flags amount to, and run nothing.
    #[arg(long)]
    print_scenario: bool,
    /// As text, print the result without the story.
    #[arg(long)]
    brief: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// The story in words, and the result.
    Text,
    /// The result, for scripts.
    Json,
    /// A sequence diagram.
    Mermaid,
    /// A space–time diagram.
    Svg,
    /// The diagram and the result as a page that needs nothing else.
    Html,
    /// Every event, one a line.
    Jsonl,
    /// A log with vector clocks for `ShiViz`.
    Shiviz,
}

/// A story longer than this is cut short.
const TOLD_LINES_MAX: usize = 60;
const TOLD_PROCESSES_MAX: u32 = 64;

impl Run {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let scenario = self.scenario()?;
        let resolved = scenario::resolve(&scenario).map_err(|fault| self.system.located(fault))?;
        if self.print_scenario {
            output::write(self.output.as_deref(), &scenario.to_string())?;
            return Ok(Outcome::Kept);
        }
        let (report, text) = self.perform(&resolved)?;
        output::write(self.output.as_deref(), &text)?;
        if let Some(expect) = scenario.expect.as_ref().filter(|_| !self.overrides()) {
            let differences = expect.differences(&report, &resolved.topology);
            for difference in &differences {
                eprintln!("vez: not as the scenario expects: {difference}");
            }
            if !differences.is_empty() {
                return Ok(Outcome::Broken);
            }
        }
        Ok(if report.all_kept() { Outcome::Kept } else { Outcome::Broken })
    }

    fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = self.system.scenario()?;
        self.apply(&mut scenario)?;
        if self.system.file().is_none() && !scenario.events.iter().any(|event| event.act.is_wish())
        {
            let entry = registry::find(&scenario.algorithm.value).map_err(anyhow::Error::msg)?;
            let act = match entry.problem {
                "election" => Act::Start(Whom::All),
                _ => Act::Acquire { who: Whom::All, hold: Time::from_millis(1) },
            };
            let event = Event { at: Time::ZERO, act, place: Place::Whole };
            // After the faults of the first moment, so that the dead are not asked.
            let place = scenario.events.partition_point(|event| event.at == Time::ZERO);
            scenario.events.insert(place, event);
        }
        Ok(scenario)
    }

    /// Whether any flag changes what the file says.
    fn overrides(&self) -> bool {
        let numbers = [&self.loss, &self.duplicate, &self.drift];
        self.system.overrides()
            || self.seed.is_some()
            || self.reorder
            || self.amnesia
            || self.delay.is_some()
            || self.until.is_some()
            || numbers.iter().any(|number| number.is_some())
            || !self.clock.is_empty()
            || !self.event_flags().given.is_empty()
    }

    fn event_flags(&self) -> EventFlags<'_> {
        let flags: [(&'static str, &[String]); 11] = [
            ("crash", &self.crash),
            ("crash-unsent", &self.crash_unsent),
            ("restart", &self.restart),
            ("pause", &self.pause),
            ("partition", &self.partition),
            ("cut", &self.cut),
            ("heal", &self.heal),
            ("suspect", &self.suspect),
            ("start", &self.start),
            ("acquire", &self.acquire),
            ("withdraw", &self.withdraw),
        ];
        let given =
            flags.iter().flat_map(|&(flag, values)| values.iter().map(move |v| (flag, v.as_str())));
        EventFlags { given: given.collect() }
    }

    fn apply(&self, scenario: &mut Scenario) -> Result<(), Fault> {
        replace(&mut scenario.clocks, "clock", &self.clock)?;
        if let Some(delay) = &self.delay {
            scenario.network.delay = parsed::<Delay>("delay", delay)?.value;
        }
        let numbers = [
            ("loss", self.loss, &mut scenario.network.loss),
            ("duplicate", self.duplicate, &mut scenario.network.duplicate),
            ("drift", self.drift, &mut scenario.drift),
        ];
        for (flag, given, target) in numbers {
            if let Some(number) = given {
                *target = Placed::new(number, Place::Flag(format!("--{flag} {number}")));
            }
        }
        scenario.network.fifo &= !self.reorder;
        scenario.amnesia |= self.amnesia;
        if let Some(until) = &self.until {
            scenario.until = Some(parsed("until", until)?.value);
        }
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        self.event_flags().apply(&mut scenario.events)
    }

    /// Runs it, and makes of it what was asked for.
    fn perform(&self, resolved: &Resolved) -> anyhow::Result<(Report, String)> {
        let Resolved { entry, topology, config, plan } = resolved;
        let tells =
            self.format == Format::Text && !self.brief && topology.n() <= TOLD_PROCESSES_MAX;
        if self.format == Format::Json || (self.format == Format::Text && !tells) {
            let report = (entry.simulate)(topology, config, plan);
            let text = match self.format {
                Format::Json => serde_json::to_string_pretty(&RunResult::new(resolved, &report))?,
                _ => summary(resolved, &report),
            };
            return Ok((report, text));
        }
        if let Some(picture) = self.format.picture() {
            return picture::draw(picture, resolved);
        }
        let (report, trace) = (entry.watch)(topology, config, plan, 40 * TOLD_LINES_MAX);
        let text = with_story(resolved, &report, &trace.events);
        Ok((report, text))
    }
}

/// The story in words as far as it is read, and the result.
pub(super) fn with_story(resolved: &Resolved, report: &Report, events: &[TraceEvent]) -> String {
    let story = picture::with_run(resolved, report, events, vez_draw::story);
    let mut text = String::new();
    for line in story.iter().take(TOLD_LINES_MAX) {
        writeln!(text, "{line}").expect("strings take anything");
    }
    if story.len() > TOLD_LINES_MAX {
        text.push_str("         … and so on; --format html -o run.html shows all of it\n");
    }
    text.push('\n');
    text += &summary(resolved, report);
    text
}

impl Format {
    pub(super) fn picture(self) -> Option<Picture> {
        match self {
            Self::Text | Self::Json => None,
            Self::Mermaid => Some(Picture::Mermaid),
            Self::Svg => Some(Picture::Svg),
            Self::Html => Some(Picture::Html),
            Self::Jsonl => Some(Picture::Jsonl),
            Self::Shiviz => Some(Picture::Shiviz),
        }
    }
}
