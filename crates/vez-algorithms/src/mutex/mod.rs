//! Mutual exclusion: who may enter now.

pub mod coordinator;
pub mod desk;
pub mod quorum;
pub mod token_ring;

pub use coordinator::Coordinator;
pub use quorum::Quorum;
pub use token_ring::TokenRing;
