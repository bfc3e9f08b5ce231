//! A run as a picture, or as something pictures are made of.

use vez_core::{Shape, Topology};
use vez_sim::{Report, Trace, TraceEvent};

use crate::scenario::Resolved;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    Mermaid,
    Svg,
    Html,
    Jsonl,
    Shiviz,
}

/// Pictures of more than this are no pictures.
const PROCESSES_MAX: u32 = 200;
const EVENTS_MAX: usize = 50_000;

impl Picture {
    pub const ALL: [Self; 5] = [Self::Mermaid, Self::Svg, Self::Html, Self::Jsonl, Self::Shiviz];

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|picture| picture.word() == word)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Mermaid => "mermaid",
            Self::Svg => "svg",
            Self::Html => "html",
            Self::Jsonl => "jsonl",
            Self::Shiviz => "shiviz",
        }
    }

    fn is_drawn(self) -> bool {
        matches!(self, Self::Mermaid | Self::Svg | Self::Html)
    }

    /// How many events of a run to write down.
    fn events_max(self) -> usize {
        if self.is_drawn() { EVENTS_MAX } else { usize::MAX }
    }

    /// Refuses systems that are too large.
    pub(crate) fn admit(self, topology: &Topology) -> anyhow::Result<()> {
        let n = topology.n();
        if self.is_drawn() && PROCESSES_MAX < n {
            anyhow::bail!(
                "{n} processes are too many to draw; expected at most {PROCESSES_MAX} (or use --format jsonl)"
            );
        }
        Ok(())
    }

    /// Refuses runs that are too long.
    pub(crate) fn admit_trace(self, trace: &Trace) -> anyhow::Result<()> {
        self.admit_events(trace.events.len() as u64 + trace.dropped)
    }

    fn admit_events(self, events: u64) -> anyhow::Result<()> {
        if self.is_drawn() && (EVENTS_MAX as u64) < events {
            anyhow::bail!(
                "{events} events are too many to draw; expected at most {EVENTS_MAX} (stop earlier with --until, or use --format jsonl)"
            );
        }
        Ok(())
    }

    pub(crate) fn draw(self, run: &vez_draw::Run<'_>) -> String {
        match self {
            Self::Mermaid => vez_draw::mermaid(run),
            Self::Svg => vez_draw::svg(run),
            Self::Html => vez_draw::html(run),
            Self::Jsonl => vez_draw::jsonl(run),
            Self::Shiviz => vez_draw::shiviz(run),
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Html => "text/html; charset=utf-8",
            Self::Jsonl => "application/jsonl",
            Self::Mermaid | Self::Shiviz => "text/plain; charset=utf-8",
        }
    }
}

/// Runs the scenario and draws what happened.
pub fn draw(picture: Picture, resolved: &Resolved) -> anyhow::Result<(Report, String)> {
    let Resolved { entry, topology, config, plan } = resolved;
    picture.admit(topology)?;
    let (report, trace) = (entry.watch)(topology, config, plan, picture.events_max());
    picture.admit_trace(&trace)?;
    let text = with_run(resolved, &report, &trace.events, |run| picture.draw(run));
    Ok((report, text))
}

/// Draws what has happened somewhere else.
pub(crate) fn draw_events(
    picture: Picture,
    resolved: &Resolved,
    report: &Report,
    events: &[TraceEvent],
) -> anyhow::Result<String> {
    picture.admit(&resolved.topology)?;
    picture.admit_events(events.len() as u64)?;
    Ok(with_run(resolved, report, events, |run| picture.draw(run)))
}

/// Gives a run its title, for whoever draws or tells it.
pub(crate) fn with_run<T>(
    resolved: &Resolved,
    report: &Report,
    events: &[TraceEvent],
    make: impl FnOnce(&vez_draw::Run<'_>) -> T,
) -> T {
    let title = resolved.entry.rules().title.en;
    let subtitle = subtitle(resolved);
    let topology = &resolved.topology;
    make(&vez_draw::Run { title: &title, subtitle: &subtitle, topology, report, events })
}

/// What ran, in a few words.
pub(crate) fn subtitle(resolved: &Resolved) -> String {
    let topology = &resolved.topology;
    let shape = shape(topology);
    let processes = if topology.n() == 1 { "process" } else { "processes" };
    format!("{} {processes}, {shape}, seed {}", topology.n(), resolved.plan.seed)
}

pub(crate) fn shape(topology: &Topology) -> &'static str {
    match topology.shape() {
        Shape::Complete => "complete",
        Shape::Ring => "ring",
        Shape::Star => "star",
        Shape::Line => "line",
        Shape::Grid => "grid",
        Shape::Random(_) => "random graph",
        Shape::Edges(_) => "graph",
    }
}
