//! For programs: one event a line, as JSON.

use crate::Run;

/// The trace, one JSON object a line.
pub fn jsonl(run: &Run<'_>) -> String {
    let mut out = String::new();
    for event in run.events {
        out += &serde_json::to_string(event).expect("events are plain data");
        out.push('\n');
    }
    out
}
