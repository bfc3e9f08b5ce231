//! The service: locks, elections, leases and keys, durable and replicated.
//!
//! **Invariant:** `state` is a function of the commands it was given: no clock, no chance, no I/O.

mod api;
pub mod backup;
pub mod chance;
pub mod cluster;
mod door;
mod hub;
mod lessor;
mod pieces;
pub mod raft;
mod runtime;
pub mod seen;
mod serve;
mod spans;
pub mod state;
pub mod store;
mod talk;
pub mod watched;

pub use door::{Caller, Door};
pub use serve::{Limits, Listen, Options, Server, Site, StartError};
