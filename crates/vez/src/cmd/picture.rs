//! A run as a picture or a log.

use vez_core::Topology;
use vez_sim::Trace;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Picture {
    Mermaid,
    Svg,
    Html,
    Jsonl,
    Shiviz,
}

/// Pictures of more than this are no pictures.
const DRAWN_PROCESSES_MAX: u32 = 200;
const DRAWN_EVENTS_MAX: usize = 50_000;

impl Picture {
    /// Whether it is looked at, not read by a program.
    fn is_drawn(self) -> bool {
        matches!(self, Self::Mermaid | Self::Svg | Self::Html)
    }

    /// How many events of a run to write down.
    pub(super) fn events_max(self) -> usize {
        if self.is_drawn() { DRAWN_EVENTS_MAX } else { usize::MAX }
    }

    /// Refuses systems that are too large.
    pub(super) fn admit(self, topology: &Topology) -> anyhow::Result<()> {
        let n = topology.n();
        if self.is_drawn() && DRAWN_PROCESSES_MAX < n {
            anyhow::bail!(
                "{n} processes are too many to draw; expected at most {DRAWN_PROCESSES_MAX} (or use --format jsonl)"
            );
        }
        Ok(())
    }

    /// Refuses runs that are too long.
    pub(super) fn admit_trace(self, trace: &Trace) -> anyhow::Result<()> {
        if self.is_drawn() && trace.dropped > 0 {
            let events = trace.events.len() as u64 + trace.dropped;
            anyhow::bail!(
                "{events} events are too many to draw; expected at most {DRAWN_EVENTS_MAX} (stop earlier with --until, or use --format jsonl)"
            );
        }
        Ok(())
    }

    pub(super) fn draw(self, run: &vez_draw::Run<'_>) -> String {
        match self {
            Self::Mermaid => vez_draw::mermaid(run),
            Self::Svg => vez_draw::svg(run),
            Self::Html => vez_draw::html(run),
            Self::Jsonl => vez_draw::jsonl(run),
            Self::Shiviz => vez_draw::shiviz(run),
        }
    }
}
