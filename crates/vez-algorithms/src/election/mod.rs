//! Leader election: who leads now.

pub mod bully;
pub mod bully_strict;
pub mod chang_roberts;
pub mod yoyo;

pub use bully::Bully;
pub use bully_strict::BullyStrict;
pub use chang_roberts::ChangRoberts;
pub use yoyo::YoYo;
