//! `vez judge`: the traces of real processes, judged as a simulation is.

use std::path::PathBuf;

use super::run::{Format, with_story};
use super::{Outcome, output};
use crate::judged;
use crate::picture;
use crate::result::RunResult;

/// Judge what real processes wrote down (vez node --trace, vez cluster --trace).
///
/// Traces are merged in an order in which it can have happened: by what each process knew of the
/// others (vector clocks), and where they knew nothing of each other, by the time of day. A
/// process that came back crashed before. One that did not is taken to be alive, unless
/// --crashed says otherwise or the cluster noted it. Exits 1 if a promise was broken.
///
/// Examples:
///   vez judge traces/
///   vez judge 1.jsonl 2.jsonl 3.jsonl --crashed 3
///   vez judge traces/ --format html -o run.html
///   vez judge traces/ --format shiviz -o run.log
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Judge {
    /// Traces, or directories of traces (*.jsonl).
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// What ran, if the traces do not say.
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Who was dead at the end: UID,… .
    #[arg(long, value_name = "UID", value_delimiter = ',')]
    crashed: Vec<u64>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the result to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Judge {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let judged = judged::judge(&self.traces, self.algorithm.as_deref(), &self.crashed)?;
        let judged::Judged { resolved, report, events, warnings } = &judged;
        for warning in warnings {
            eprintln!("vez: {warning}");
        }
        let text = match (self.format, self.format.picture()) {
            (_, Some(picture)) => picture::draw_events(picture, resolved, report, events)?,
            (Format::Json, _) => {
                serde_json::to_string_pretty(&RunResult::judged(resolved, report))?
            }
            _ => with_story(resolved, report, events),
        };
        output::write(self.output.as_deref(), &text)?;
        Ok(if report.claims_kept() { Outcome::Kept } else { Outcome::Broken })
    }
}
