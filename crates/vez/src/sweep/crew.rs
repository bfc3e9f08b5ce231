//! Jobs done by several threads, their results in whatever order, told to one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use crate::cmd::bar::TICK;

/// Does jobs `0..jobs` with `work`, taken in order, until all are done or `stop` is set. `tell`
/// hears of each as it is finished, and of nothing whenever that takes a while.
pub fn crew<R: Send>(
    threads: usize,
    jobs: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> R + Sync,
    mut tell: impl FnMut(Option<(usize, R)>),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let job = next.fetch_add(1, Ordering::SeqCst);
                    // Nobody listens any more only if the listener has panicked.
                    if jobs <= job || sender.send((job, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(finished) => tell(Some(finished)),
                Err(RecvTimeoutError::Timeout) => tell(None),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
}
