//! The service: locks, elections, leases and keys, durable and replicated.
//!
//! **Invariant:** `state` is a function of the commands it was given: no clock, no chance, no I/O.

mod api;
pub mod backup;
pub mod cluster;
mod door;
mod hub;
mod lessor;
pub mod raft;
pub mod seen;
mod serve;
mod spans;
pub mod state;
pub mod store;

pub use serve::{Limits, Listen, Options, Server, StartError};
