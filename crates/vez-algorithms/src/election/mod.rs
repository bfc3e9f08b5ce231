//! Leader election: who leads now.

pub mod bully;
pub mod chang_roberts;
pub mod yoyo;

pub use bully::Bully;
pub use chang_roberts::ChangRoberts;
pub use yoyo::YoYo;
