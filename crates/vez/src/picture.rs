//! A run as a picture, or as something pictures are made of.

use vez_core::{Shape, Topology};
use vez_sim::{Report, TraceEvent};

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
    fits(picture, topology)?;
    let events_max = if picture.is_drawn() { EVENTS_MAX } else { usize::MAX };
    let (report, trace) = (entry.watch)(topology, config, plan, events_max);
    if trace.dropped > 0 {
        return Err(too_many(trace.events.len() as u64 + trace.dropped));
    }
    let text = render(picture, resolved, &report, &trace.events);
    Ok((report, text))
}

/// Draws what has happened somewhere else.
pub(crate) fn draw_events(
    picture: Picture,
    resolved: &Resolved,
    report: &Report,
    events: &[TraceEvent],
) -> anyhow::Result<String> {
    fits(picture, &resolved.topology)?;
    if picture.is_drawn() && EVENTS_MAX < events.len() {
        return Err(too_many(events.len() as u64));
    }
    Ok(render(picture, resolved, report, events))
}

fn too_many(events: u64) -> anyhow::Error {
    anyhow::anyhow!(
        "{events} events are too many to draw; expected at most {EVENTS_MAX} (stop earlier with --until, or use --format jsonl)"
    )
}

fn fits(picture: Picture, topology: &Topology) -> anyhow::Result<()> {
    if picture.is_drawn() && topology.n() > PROCESSES_MAX {
        let n = topology.n();
        anyhow::bail!(
            "{n} processes are too many to draw; expected at most {PROCESSES_MAX} (or use --format jsonl)"
        );
    }
    Ok(())
}

fn render(picture: Picture, resolved: &Resolved, report: &Report, events: &[TraceEvent]) -> String {
    with_run(resolved, report, events, |run| match picture {
        Picture::Mermaid => vez_draw::mermaid(run),
        Picture::Svg => vez_draw::svg(run),
        Picture::Html => vez_draw::html(run),
        Picture::Jsonl => vez_draw::jsonl(run),
        Picture::Shiviz => vez_draw::shiviz(run),
    })
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
    let shape = match shape_word(topology) {
        "graph" if matches!(topology.shape(), Shape::Random(_)) => "random graph",
        shape => shape,
    };
    let processes = if topology.n() == 1 { "process" } else { "processes" };
    format!("{} {processes}, {shape}, seed {}", topology.n(), resolved.plan.seed)
}

pub(crate) fn shape_word(topology: &Topology) -> &'static str {
    match topology.shape() {
        Shape::Complete => "complete",
        Shape::Ring => "ring",
        Shape::Star => "star",
        Shape::Line => "line",
        Shape::Grid => "grid",
        Shape::Random(_) | Shape::Edges(_) => "graph",
    }
}
