//! Mutual exclusion: who may enter now.

pub mod arbiter;
pub mod coordinator;
pub mod desk;
pub mod elected_coordinator;
pub mod lamport;
pub mod maekawa;
pub mod quorum;
pub mod raymond;
pub mod ricart_agrawala;
pub mod ricart_agrawala_tanenbaum;
pub mod suzuki_kasami;
pub mod token_ring;

pub use coordinator::Coordinator;
pub use elected_coordinator::ElectedCoordinator;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use quorum::Quorum;
pub use raymond::Raymond;
pub use ricart_agrawala::RicartAgrawala;
pub use ricart_agrawala_tanenbaum::RicartAgrawalaTanenbaum;
pub use suzuki_kasami::SuzukiKasami;
pub use token_ring::TokenRing;
