//! A value that others watch: whoever waits for it to change is woken in the order of waiting.
//! Tokio's own channel wakes them in an order that it draws, so that no run could be had twice.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use openraft::async_runtime::watch as raft;
use openraft::{OptionalSend, OptionalSync};
use tokio::sync::Notify;

#[derive(Debug)]
struct Shared<T> {
    value: RwLock<T>,
    /// How often it has changed.
    version: AtomicU64,
    changed: Notify,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    is_closed: AtomicBool,
}

impl<T> Shared<T> {
    fn read(&self) -> RwLockReadGuard<'_, T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that was seen last.
    seen: u64,
}

/// Nobody can change it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody tells any more")]
pub struct Closed;

pub(crate) fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Sender<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Shared {
            value: RwLock::new(value),
            version: AtomicU64::new(0),
            changed: Notify::new(),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        }))
    }

    pub(crate) fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.0.read()
    }

    /// Wakes those who wait if `modify` says that it changed the value.
    pub(crate) fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut value = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = modify(&mut value);
        if is_news {
            // Under the lock: a version belongs to its value.
            self.0.version.fetch_add(1, Ordering::SeqCst);
        }
        drop(value);
        if is_news {
            self.0.changed.notify_waiters();
        }
        is_news
    }

    pub(crate) fn send_replace(&self, value: T) -> T {
        let mut before = value;
        self.send_if_modified(|now| {
            std::mem::swap(now, &mut before);
            true
        });
        before
    }

    /// Waits until nobody watches any more.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.0.receivers.load(Ordering::SeqCst) == 0 {
                return;
            }
            changed.await;
        }
    }

    /// What comes from now on is news to it.
    pub(crate) fn subscribe(&self) -> Receiver<T> {
        self.0.receivers.fetch_add(1, Ordering::SeqCst);
        Receiver { shared: Arc::clone(&self.0), seen: self.0.version() }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.is_closed.store(true, Ordering::SeqCst);
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Receiver<T> {
    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.shared.read()
    }

    pub fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        let value = self.shared.read();
        self.seen = self.shared.version();
        value
    }

    /// What is there now is no news.
    pub(crate) fn mark_unchanged(&mut self) {
        self.seen = self.shared.version();
    }

    /// Waits for a value that was not seen yet.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // It counts from here on: nothing falls between looking and waiting.
            let changed = self.shared.changed.notified();
            let version = self.shared.version();
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if self.shared.is_closed.load(Ordering::SeqCst) {
                return Err(Closed);
            }
            changed.await;
        }
    }

    /// Waits until the value is such a one.
    pub async fn wait_for(&mut self, mut is_so: impl FnMut(&T) -> bool) -> Result<(), Closed> {
        while !is_so(&self.borrow_and_update()) {
            self.changed().await?;
        }
        Ok(())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.fetch_add(1, Ordering::SeqCst);
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.shared.receivers.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Only a sender can wait now.
            self.shared.changed.notify_waiters();
        }
    }
}

/// The same for openraft.
#[derive(Debug)]
pub struct Watched;

impl raft::Watch for Watched {
    type Sender<T: OptionalSend + OptionalSync> = Sender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = Receiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = RwLockReadGuard<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(init: T) -> (Sender<T>, Receiver<T>) {
        channel(init)
    }
}

impl<T: OptionalSend + OptionalSync> raft::WatchSender<Watched, T> for Sender<T> {
    fn send(&self, value: T) -> Result<(), raft::SendError<T>> {
        if self.0.receivers.load(Ordering::SeqCst) == 0 {
            return Err(raft::SendError(value));
        }
        self.send_replace(value);
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        self.send_if_modified(modify)
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.borrow()
    }

    fn subscribe(&self) -> Receiver<T> {
        self.subscribe()
    }
}

impl<T: OptionalSend + OptionalSync> raft::WatchReceiver<Watched, T> for Receiver<T> {
    async fn changed(&mut self) -> Result<(), raft::RecvError> {
        self.changed().await.map_err(|Closed| raft::RecvError(()))
    }

    fn borrow_watched(&self) -> RwLockReadGuard<'_, T> {
        self.borrow()
    }

    fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        self.borrow_and_update()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn who_waits_is_woken_in_the_order_of_waiting() {
        let (sender, receiver) = channel(0);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        // Fewer than tokio polls before it looks elsewhere: all wait after one turn.
        for number in 0..20 {
            let (mut receiver, woken) = (receiver.clone(), Arc::clone(&woken));
            waiting.spawn(async move {
                receiver.wait_for(|value| *value == 7).await.unwrap();
                woken.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        sender.send_replace(7);
        while waiting.join_next().await.is_some() {}
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn it_is_closed_when_the_last_who_watched_has_gone() {
        let (sender, receiver) = channel(0);
        let other = receiver.clone();
        let closed = tokio::spawn(async move { sender.closed().await });
        tokio::task::yield_now().await;
        drop(receiver);
        tokio::task::yield_now().await;
        assert!(!closed.is_finished());
        drop(other);
        closed.await.unwrap();
    }

    #[tokio::test]
    async fn what_was_not_seen_is_news_once_and_an_end_is_told_after_the_last_news() {
        let (sender, mut receiver) = channel(0);
        assert!(sender.send_if_modified(|value| std::mem::replace(value, 1) != 1));
        assert!(!sender.send_if_modified(|value| std::mem::replace(value, 1) != 1));
        let mut late = sender.subscribe();
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(*receiver.borrow(), 1);
        sender.send_replace(2);
        assert_eq!(*receiver.borrow_and_update(), 2);
        sender.send_replace(3);
        receiver.mark_unchanged();
        drop(sender.clone());
        drop(sender);
        assert_eq!(receiver.changed().await, Err(Closed));
        assert_eq!(late.changed().await, Ok(()), "it was told before the end");
        assert_eq!(late.changed().await, Err(Closed));
        assert_eq!(late.wait_for(|value| *value == 3).await, Ok(()));
    }
}
