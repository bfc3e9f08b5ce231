//! The sums behind a decision: how likely a quorum is to be violated, which timeout costs least,
//! what an algorithm should cost, and what a sample of runs says.
//!
//! **Invariant:** numbers in, numbers out. Nothing here runs an algorithm, reads a clock or a
//! file, or draws.

pub mod cost;
mod digits;
mod fraction;
mod interval;
mod law;
pub mod quorum;
pub mod sample;
pub mod timeout;
mod trial;

pub use fraction::{Fraction, Scientific};
pub use interval::{Interval, clopper_pearson};
pub use law::{Law, Measured};
pub use trial::{Trials, simulate, trials_needed};
