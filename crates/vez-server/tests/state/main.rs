//! The state machine: each rule by itself, and all of them at once against a model that is too
//! simple to be wrong.

mod build;
mod draw;
mod garbage;
mod keys;
mod leases;
mod model;
mod queues;
mod random;
mod txns;
