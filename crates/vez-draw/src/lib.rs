//! The one trace, drawn: sequence diagrams, space–time diagrams, pages, logs and words.
//!
//! **Invariant:** a picture is a function of the [`Run`]. Nothing here runs an algorithm, knows
//! one by name, reads a clock or a file; what a picture says happened is in the trace.

mod changes;
pub mod chart;
mod html;
mod jsonl;
mod mermaid;
mod scene;
mod shiviz;
mod spells;
mod steps;
mod story;
mod svg;
mod words;

pub use html::html;
pub use jsonl::jsonl;
pub use mermaid::mermaid;
pub use shiviz::shiviz;
pub use story::{Line, lines, story};
pub use svg::svg;

use vez_core::Topology;
use vez_sim::{Report, TraceEvent};

/// A run and what it is called: all that every picture is made of.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Such as `Chang–Roberts`.
    pub title: &'a str,
    /// Such as `8 processes, ring, seed 0`.
    pub subtitle: &'a str,
    pub topology: &'a Topology,
    pub report: &'a Report,
    pub events: &'a [TraceEvent],
}
