//! Leader election: who leads now.

pub mod bully;
pub mod bully_strict;
pub mod chang_roberts;
pub mod monitored;
pub mod probabilistic;
pub mod stable;
pub mod weighted_majority;
pub mod wireless;
pub mod yoyo;

pub use bully::Bully;
pub use bully_strict::BullyStrict;
pub use chang_roberts::ChangRoberts;
pub use monitored::Monitored;
pub use probabilistic::Probabilistic;
pub use stable::Stable;
pub use weighted_majority::WeightedMajority;
pub use wireless::Wireless;
pub use yoyo::YoYo;
