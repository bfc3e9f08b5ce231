//! Waking many who wait for another thread at once.
//!
//! What becomes durable together is answered together. If each who waits were woken by itself, the
//! thread that answers would ring once for each of them, which is a system call; here it rings
//! once, and they are woken where they are.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Who is to be woken.
    called: Mutex<Vec<Arc<Bell>>>,
    rung: Notify,
}

/// Called from another thread in place of who waits.
#[derive(Debug)]
struct Bell {
    gathering: Arc<Gathering>,
    waits: AtomicWaker,
    is_called: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_called.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut called = self.gathering.called.lock().unwrap_or_else(PoisonError::into_inner);
        called.push(Arc::clone(self));
        let is_first = called.len() == 1;
        drop(called);
        if is_first {
            self.gathering.rung.notify_one();
        }
    }
}

impl Gathering {
    /// Waits for what another thread does.
    pub(crate) async fn wait<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        let bell = Arc::new(Bell {
            gathering: Arc::clone(self),
            waits: AtomicWaker::new(),
            is_called: AtomicBool::new(false),
        });
        let ringing = Waker::from(Arc::clone(&bell));
        let mut work = pin!(work);
        std::future::poll_fn(move |cx| poll(work.as_mut(), &bell, &ringing, cx)).await
    }

    /// Wakes those who are called, until it is dropped; in the thread in which they wait.
    pub(crate) async fn wake_all(self: Arc<Self>) {
        loop {
            self.rung.notified().await;
            let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
            let bells = std::mem::take(&mut *called);
            drop(called);
            for bell in bells {
                // Before it looks: who calls again meanwhile is heard again.
                bell.is_called.store(false, Ordering::Release);
                bell.waits.wake();
            }
        }
    }
}

fn poll<F: Future>(
    work: Pin<&mut F>,
    bell: &Bell,
    ringing: &Waker,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    bell.waits.register(cx.waker());
    work.poll(&mut Context::from_waker(ringing))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn all_are_woken_however_they_were_called() {
        let gathering = Arc::<Gathering>::default();
        tokio::spawn(Arc::clone(&gathering).wake_all());
        for round in 0..50 {
            let (callers, waiting): (Vec<_>, Vec<_>) = (0..100)
                .map(|number| {
                    let (call, called) = oneshot::channel();
                    let gathering = Arc::clone(&gathering);
                    let waits = async move { (number, gathering.wait(called).await) };
                    (call, tokio::spawn(waits))
                })
                .unzip();
            std::thread::spawn(move || {
                for (number, call) in callers.into_iter().enumerate() {
                    if (number + round) % 7 == 0 {
                        std::thread::yield_now();
                    }
                    call.send(number).expect("somebody waits");
                }
            });
            for waits in waiting {
                let waited = tokio::time::timeout(Duration::from_mins(1), waits).await;
                let (number, told) = waited.expect("nobody is forgotten").expect("no panic");
                assert_eq!(told, Ok(number));
            }
        }
    }
}
