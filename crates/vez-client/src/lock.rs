use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Lost};
use crate::place::{self, OnWait, Place, Waiting};
use crate::session::Session;

/// A lock that is held. Released in the background when dropped; better with
/// [`release`](Self::release), which tells when it is done.
#[derive(Debug)]
#[must_use = "a lock that is dropped is released"]
pub struct LockGuard(Place);

impl LockGuard {
    /// Grows with every grant of this name: to be shown to the resource.
    pub fn fence(&self) -> i64 {
        self.0.fence()
    }

    /// The key that stands for this grant.
    pub fn key(&self) -> &Bytes {
        self.0.key()
    }

    pub fn lease(&self) -> i64 {
        self.0.session().lease()
    }

    pub fn session(&self) -> &Session {
        self.0.session()
    }

    /// Resolves when the lock is not held any more, or may soon not be: the session was lost, or
    /// somebody deleted the key. What was done under the lock has to stop.
    pub async fn lost(&self) -> Lost {
        self.0.lost().await
    }

    /// Changes what others see of the holder.
    pub async fn describe(&self, value: impl Into<Bytes>) -> Result<(), Error> {
        self.0.write(value.into()).await
    }

    /// Gives it to the next. Bound to the fence: however late it arrives, and however often, it
    /// never releases another grant. [`Error::Lost`] means that it was over before.
    pub async fn release(self) -> Result<(), Error> {
        self.0.leave().await
    }
}

/// Waits for a lock when awaited; see [`Session::lock`].
#[must_use = "nothing happens until it is awaited"]
pub struct LockRequest {
    session: Session,
    name: String,
    value: Bytes,
    within: Option<Duration>,
    on_wait: Option<OnWait>,
}

/// Takes a lock if it is free, when awaited; see [`Session::try_lock`].
#[must_use = "nothing happens until it is awaited"]
pub struct TryLockRequest {
    session: Session,
    name: String,
    value: Bytes,
}

impl Session {
    /// Waits for its turn, in the order of asking. Whoever drops the future leaves the queue.
    pub fn lock(&self, name: impl Into<String>) -> LockRequest {
        LockRequest {
            session: self.clone(),
            name: name.into(),
            value: Bytes::new(),
            within: None,
            on_wait: None,
        }
    }

    /// Takes the lock if nobody holds it or waits for it; [`Error::Held`] otherwise, at once.
    pub fn try_lock(&self, name: impl Into<String>) -> TryLockRequest {
        TryLockRequest { session: self.clone(), name: name.into(), value: Bytes::new() }
    }
}

impl LockRequest {
    /// What others see of who waits or holds.
    pub fn value(self, value: impl Into<Bytes>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// Gives up after this time, with [`Error::TooLong`].
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// Called with who is ahead, when one has to wait and whenever it changes.
    pub fn on_wait(self, on_wait: impl FnMut(&Waiting) + Send + 'static) -> Self {
        Self { on_wait: Some(Box::new(on_wait)), ..self }
    }
}

impl TryLockRequest {
    /// What others see of who holds it.
    pub fn value(self, value: impl Into<Bytes>) -> Self {
        Self { value: value.into(), ..self }
    }
}

type Granting = Pin<Box<dyn Future<Output = Result<LockGuard, Error>> + Send>>;

impl IntoFuture for LockRequest {
    type Output = Result<LockGuard, Error>;
    type IntoFuture = Granting;

    fn into_future(self) -> Granting {
        Box::pin(async move {
            let Self { session, name, value, within, on_wait } = self;
            place::wait_for(&session, &name, value, within, on_wait).await.map(LockGuard)
        })
    }
}

impl IntoFuture for TryLockRequest {
    type Output = Result<LockGuard, Error>;
    type IntoFuture = Granting;

    fn into_future(self) -> Granting {
        Box::pin(async move {
            place::try_for(&self.session, &self.name, self.value).await.map(LockGuard)
        })
    }
}
