//! The service: locks, elections, leases and keys, durable and replicated.
//!
//! **Invariant:** `state` is a function of the commands it was given: no clock, no chance, no I/O.

mod peer;
pub mod raft;
pub mod state;
pub mod store;
