//! Events grouped into steps: what caused something, with everything that followed from it.

use vez_core::Time;
use vez_sim::{TraceEvent, What};

/// A cause and its effects; never empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) events: &'a [TraceEvent],
}

impl<'a> Step<'a> {
    pub(crate) fn cause(&self) -> &'a TraceEvent {
        &self.events[0]
    }

    pub(crate) fn at(&self) -> Time {
        self.cause().at
    }

    pub(crate) fn node(&self) -> Option<u64> {
        self.cause().node
    }
}

pub(crate) fn steps(events: &[TraceEvent]) -> Vec<Step<'_>> {
    let same = |before: &TraceEvent, event: &TraceEvent| !begins(before, event);
    events.chunk_by(same).map(|events| Step { events }).collect()
}

/// Whether `event` follows from nothing before it.
fn begins(before: &TraceEvent, event: &TraceEvent) -> bool {
    match (&before.what, &event.what) {
        (
            _,
            What::State { .. }
            | What::Send { .. }
            | What::Repeat { .. }
            | What::Arm { .. }
            | What::Disarm { .. }
            | What::Notice { .. }
            | What::Unexpected { .. },
        )
        | (What::Restart { .. }, What::Boot)
        // What is judged at the end of the run is nobody's step.
        | (What::Notice { .. } | What::Violation { .. }, What::Violation { .. }) => false,
        // Lost as it was sent; else it was lost where it should have arrived.
        (What::Send { id, .. }, What::Lose { id: lost, .. }) => id != lost,
        _ => true,
    }
}
