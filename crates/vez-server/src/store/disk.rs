//! Who waits for the disk, and how long that takes.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub enum Disk {
    /// Threads of their own wait for it.
    #[default]
    Real,
    /// Nothing happens beside anything else: the task that asked waits, as long as it is told to.
    Simulated(Arc<dyn Latency>),
}

/// How slow a simulated disk is.
pub trait Latency: Debug + Send + Sync {
    /// How long it takes until what is written next is on the disk, and how long until that is
    /// known. A crash before the first loses it; one before the second loses only the news.
    fn next(&self) -> [Duration; 2];
}

impl Disk {
    /// Does, some time, what nobody waits for.
    pub(crate) fn leave(&self, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Real => drop(tokio::task::spawn_blocking(work)),
            Self::Simulated(_) => work(),
        }
    }

    /// Does what may take long.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::Real => tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error))),
            Self::Simulated(latency) => {
                let [before, after] = latency.next();
                tokio::time::sleep(before).await;
                let done = work();
                tokio::time::sleep(after).await;
                done
            }
        }
    }
}
