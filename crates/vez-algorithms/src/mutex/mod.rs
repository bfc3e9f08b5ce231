//! Mutual exclusion: who may enter now.

pub mod coordinator;
pub mod desk;

pub use coordinator::Coordinator;
