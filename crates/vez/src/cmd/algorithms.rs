//! `vez algorithms`: what there is.

use std::fmt::Write as _;

use serde::Serialize;
use vez_core::{Channel, Crashes, Layout, Promise, Timing};

use super::{Outcome, output};
use crate::registry::{self, Entry};
use crate::rules::Language;

/// List every algorithm.
///
/// Example: vez algorithms --format json
#[derive(clap::Args)]
pub struct Algorithms {
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// English or Brazilian Portuguese; by default what the environment asks for.
    #[arg(long, value_enum)]
    lang: Option<Language>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: String,
    problem: &'static str,
    line: String,
    source: &'static str,
    layout: Layout,
    channel: Channel,
    timing: Timing,
    crashes: Crashes,
    promises: &'static [Promise],
}

impl Algorithms {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let language = self.lang.unwrap_or_else(Language::of_environment);
        let text = match self.format {
            Format::Text => text(language)?,
            Format::Json => {
                let listed: Vec<Listed> =
                    registry::all().iter().map(|entry| listed(entry, language)).collect();
                serde_json::to_string_pretty(&listed)?
            }
        };
        output::write(None, &text)?;
        Ok(Outcome::Kept)
    }
}

fn listed(entry: &Entry, language: Language) -> Listed {
    let (meta, rules) = (entry.meta, entry.rules());
    Listed {
        name: meta.name,
        title: rules.title.in_language(language).to_owned(),
        problem: entry.problem,
        line: rules.line.in_language(language).to_owned(),
        source: meta.source,
        layout: meta.layout,
        channel: meta.channel,
        timing: meta.timing,
        crashes: meta.crashes,
        promises: meta.promises,
    }
}

fn text(language: Language) -> anyhow::Result<String> {
    let groups = [
        (
            "mutex",
            language.pick(
                "Who may enter now (mutual exclusion)",
                "Quem pode entrar agora (exclusão mútua)",
            ),
        ),
        (
            "election",
            language
                .pick("Who leads now (leader election)", "Quem lidera agora (eleição de líder)"),
        ),
    ];
    let width = registry::all().iter().map(|entry| entry.meta.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (problem, heading) in groups {
        writeln!(out, "{heading}")?;
        for entry in registry::all().iter().filter(|entry| entry.problem == problem) {
            let rules = entry.rules();
            writeln!(out, "  {:width$}  {}", entry.meta.name, rules.line.in_language(language))?;
        }
        writeln!(out)?;
    }
    let hint = language.pick(
        "`vez explain NAME` tells more; `vez run NAME` runs it.",
        "`vez explain NOME` conta mais; `vez run NOME` executa.",
    );
    writeln!(out, "{hint}")?;
    Ok(out)
}
