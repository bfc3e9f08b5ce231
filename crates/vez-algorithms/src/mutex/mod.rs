//! Mutual exclusion: who may enter now.

pub mod arbiter;
pub mod coordinator;
pub mod desk;
pub mod lamport;
pub mod maekawa;
pub mod raymond;
pub mod ricart_agrawala;
pub mod ricart_agrawala_tanenbaum;
pub mod suzuki_kasami;

pub use coordinator::Coordinator;
pub use lamport::Lamport;
pub use maekawa::Maekawa;
pub use raymond::Raymond;
pub use ricart_agrawala::RicartAgrawala;
pub use ricart_agrawala_tanenbaum::RicartAgrawalaTanenbaum;
pub use suzuki_kasami::SuzukiKasami;
