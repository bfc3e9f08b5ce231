//! Mutual exclusion: who may enter now.

pub mod coordinator;
pub mod desk;
pub mod elected_coordinator;
pub mod quorum;
pub mod token_ring;

pub use coordinator::Coordinator;
pub use elected_coordinator::ElectedCoordinator;
pub use quorum::Quorum;
pub use token_ring::TokenRing;
