//! Where a member's log and state are kept: beside everything else, or in a thread of their own.
//!
//! A member that is alone has nobody to talk to while it waits for its disk, so that agreeing,
//! writing and applying can take turns in one thread: whatever is asked goes over to it and comes
//! back, and whoever talks to clients does nothing but that. A member of several must hear the
//! others while it writes: there only the log has a thread.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

#[derive(Debug)]
pub(crate) struct Room {
    handle: Handle,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    /// Dropped, it is closed.
    leave: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Room {
    /// Among all other tasks.
    pub(crate) fn shared() -> Self {
        Self { handle: Handle::current(), own: None }
    }

    /// A thread; tasks in it may wait for the disk.
    pub(crate) fn own() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (leave, left) = oneshot::channel();
        let wait = move || drop(runtime.block_on(left));
        let thread = thread::Builder::new().name("vez-log".to_owned()).spawn(wait)?;
        Ok(Self { handle, own: Some(Own { leave, thread }) })
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.spawn(task)
    }

    /// Ends what is still in it, if it is a thread, and returns when that is done.
    pub(crate) async fn close(self) -> io::Result<()> {
        let Some(Own { leave, thread }) = self.own else { return Ok(()) };
        drop(leave);
        let ended = tokio::task::spawn_blocking(|| thread.join()).await?;
        ended.map_err(|_| io::Error::other("the log's thread panicked"))
    }
}
