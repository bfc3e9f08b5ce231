//! The service: locks, elections, leases and keys, durable and replicated.
//!
//! **Invariant:** `state` is a function of the commands it was given: no clock, no chance, no I/O.

mod api;
mod hub;
mod lessor;
mod peer;
pub mod raft;
pub mod seen;
mod serve;
pub mod state;
pub mod store;

pub use serve::{Limits, Options, Server, StartError};
