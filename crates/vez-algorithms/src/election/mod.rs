//! Leader election: who leads now.

pub mod anonymous_ring;
pub mod bully;
pub mod bully_strict;
pub mod chang_roberts;
pub mod franklin;
pub mod hirschberg_sinclair;
pub mod hops;
pub mod itai_rodeh;
pub mod list_ring;
pub mod monitored;
pub mod peterson;
pub mod probabilistic;
pub mod ring;
pub mod stable;
pub mod weighted_majority;
pub mod wireless;
pub mod yoyo;

pub use anonymous_ring::AnonymousRing;
pub use bully::Bully;
pub use bully_strict::BullyStrict;
pub use chang_roberts::ChangRoberts;
pub use franklin::Franklin;
pub use hirschberg_sinclair::HirschbergSinclair;
pub use itai_rodeh::ItaiRodeh;
pub use list_ring::ListRing;
pub use monitored::Monitored;
pub use peterson::Peterson;
pub use probabilistic::Probabilistic;
pub use stable::Stable;
pub use weighted_majority::WeightedMajority;
pub use wireless::Wireless;
pub use yoyo::YoYo;
