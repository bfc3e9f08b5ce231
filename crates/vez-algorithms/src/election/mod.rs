//! Leader election: who leads now.

pub mod anonymous_ring;
pub mod bully;
pub mod chang_roberts;
pub mod franklin;
pub mod hirschberg_sinclair;
pub mod hops;
pub mod itai_rodeh;
pub mod list_ring;
pub mod peterson;
pub mod ring;

pub use anonymous_ring::AnonymousRing;
pub use bully::Bully;
pub use chang_roberts::ChangRoberts;
pub use franklin::Franklin;
pub use hirschberg_sinclair::HirschbergSinclair;
pub use itai_rodeh::ItaiRodeh;
pub use list_ring::ListRing;
pub use peterson::Peterson;
