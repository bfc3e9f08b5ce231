//! The sums behind a decision: how likely a quorum is to be violated, which timeout costs least,
//! what an algorithm should cost, and what a sample of runs says.
//!
//! **Invariant:** numbers in, numbers out. Nothing here runs an algorithm, reads a clock or a
//! file, or draws.

pub mod cost;
pub mod sample;
