//! Checking: what is assumed, what was found, and how to show it again.
//!
//! The search itself is `vez-check`'s. Here its options get names that people use, and its
//! counterexamples become scenarios, so that everything that shows a run can show them.

mod assumption;
mod exhibit;
mod result;
mod words;

pub use assumption::Assumption;
pub use exhibit::Exhibit;
pub use result::{CheckResult, Question};
pub(crate) use words::size;
pub use words::{grouped, judged, model, searched, stopped};
