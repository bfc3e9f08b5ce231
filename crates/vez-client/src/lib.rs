//! A client of the service, and of etcd: locks and elections as guards.
//!
//! A [`Session`] is a lease that is kept alive in the background. With it one waits for a lock
//! ([`Session::lock`]) or stands for election ([`Session::campaign`]); what one gets is a guard
//! with a *fence*, a number that grows with every grant of that name, to be sent along with
//! everything that is done under the lock, so that the resource can refuse latecomers
//! ([`FenceGate`]).
//!
//! ```no_run
//! use std::time::Duration;
//! use vez_client::{Client, Options};
//!
//! # async fn backup(fence: i64) {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), vez_client::Error> {
//! let client = Client::connect(["http://127.0.0.1:2379"], Options::default()).await?;
//! let session = client.session(Duration::from_secs(10)).await?;
//! let guard = session.lock("backup").within(Duration::from_secs(30)).await?;
//! tokio::select! {
//!     () = backup(guard.fence()) => guard.release().await?,
//!     lost = guard.lost() => eprintln!("stopped in the middle: {lost}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The queue of a name is the keys under `name/`, each bound to its owner's lease, in the order of
//! their creation: the recipe that etcd's own clients follow, so that all of them wait in one
//! queue. The fence is the revision at which the key was created.
//!
//! **Invariant:** nothing here knows which of the two it talks to. A guard is never handed out
//! after its own lease may have ended, `lost()` tells before the server can give the name to
//! somebody else, and a release never touches another grant.

mod backoff;
mod backup;
mod client;
mod election;
mod error;
mod fence;
mod lock;
mod members;
mod place;
mod session;
mod survey;
mod watch;
mod way;
mod wire;

pub use backup::Backup;
pub use client::{Client, Options};
pub use election::{CampaignRequest, Leader, Leadership, Observer};
pub use error::{Error, Lost};
pub use fence::{FenceGate, Stale};
pub use lock::{LockGuard, LockRequest, TryLockRequest};
pub use members::Joined;
pub use place::{Entry, Waiting};
pub use session::{Session, SessionOptions};
pub use survey::{LeaseInfo, MemberInfo, Queue};
pub use vez_tls::{ClientFiles as Tls, Identity};
