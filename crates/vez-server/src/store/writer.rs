//! The one thread that writes the log: whatever was handed over while it waited for the disk
//! shares the next `fdatasync`.
//!
//! After the first error nothing more is written: what the disk holds is then unknown, and a later
//! success would hide the gap.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openraft::storage::IOFlushed;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Types;
use super::engine::{Change, Engine};
use crate::seen::meter::Histogram;

/// How much may share one `fdatasync`: the first of a batch waits for the last.
const BATCH_MAX: usize = 4096;

/// Whom to tell that a change is durable, or that it is not.
pub(crate) enum Done {
    Nobody,
    Raft(IOFlushed<Types>),
    Caller(oneshot::Sender<io::Result<()>>),
}

impl Done {
    fn tell(self, outcome: &Result<(), Failure>) {
        let outcome = outcome.as_ref().copied().map_err(Failure::again);
        match self {
            Self::Nobody => {}
            Self::Raft(flushed) => flushed.io_completed(outcome),
            // Whoever asked may have given up.
            Self::Caller(caller) => drop(caller.send(outcome)),
        }
    }
}

enum Job {
    Write(Change, Done),
    Close,
}

/// The first error, which all later writes get too.
#[derive(Clone, Debug)]
struct Failure {
    kind: io::ErrorKind,
    text: String,
}

impl Failure {
    fn again(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

/// How often the disk was asked to sync, and for how many changes.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) syncs: AtomicU64,
    pub(crate) changes: AtomicU64,
    /// How long the disk took, each time.
    pub(crate) took: Histogram,
    begun: Instant,
    /// When the write under way began, in microseconds after `begun`; 0 if there is none.
    writing: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            syncs: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            took: Histogram::quick(),
            begun: Instant::now(),
            writing: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// For how long a write has been under way, if one is.
    pub(crate) fn writing_for(&self) -> Option<Duration> {
        match self.writing.load(Ordering::Relaxed) {
            0 => None,
            since => Some(self.begun.elapsed().saturating_sub(Duration::from_micros(since))),
        }
    }

    fn watch<T>(&self, write: impl FnOnce() -> T) -> T {
        let since = self.begun.elapsed();
        let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX).max(1);
        self.writing.store(micros, Ordering::Relaxed);
        let written = write();
        self.writing.store(0, Ordering::Relaxed);
        self.took.observe(self.begun.elapsed().saturating_sub(since));
        written
    }
}

/// Hands changes to the thread. What one handle sends is written in that order.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    queue: Sender<Job>,
}

impl Writer {
    pub(crate) fn start(engine: Engine, counters: Arc<Counters>) -> io::Result<(Self, Thread)> {
        let (queue, jobs) = channel();
        let thread = thread::Builder::new()
            .name("vez-log".to_owned())
            .spawn(move || run(&engine, &jobs, &counters))?;
        let writer = Self { queue };
        Ok((writer.clone(), Thread { writer, thread: Some(thread) }))
    }

    /// Does not wait: `done` is told.
    pub(crate) fn send(&self, change: Change, done: Done) {
        if let Err(refused) = self.queue.send(Job::Write(change, done)) {
            let Job::Write(_, done) = refused.0 else { return };
            let text = "the log is closed".to_owned();
            done.tell(&Err(Failure { kind: io::ErrorKind::BrokenPipe, text }));
        }
    }

    /// Returns once the change is durable.
    pub(crate) async fn write(&self, change: Change) -> io::Result<()> {
        let (caller, told) = oneshot::channel();
        self.send(change, Done::Caller(caller));
        told.await.unwrap_or_else(|_| Err(io::Error::other("the log's thread is gone")))
    }
}

/// The thread itself, to be waited for.
#[derive(Debug)]
pub(crate) struct Thread {
    writer: Writer,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// Writes what is queued, closes the files, and returns when that is done.
    pub(crate) fn close(&mut self) {
        // Gone already, if this fails.
        let _ = self.writer.queue.send(Job::Close);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

fn run(engine: &Engine, jobs: &Receiver<Job>, counters: &Counters) {
    let mut outcome = Ok(());
    let (mut changes, mut waiting) = (Vec::new(), Vec::new());
    let mut open = true;
    while open && let Ok(first) = jobs.recv() {
        for job in std::iter::once(first).chain(jobs.try_iter()) {
            match job {
                Job::Write(change, done) => {
                    changes.push(change);
                    waiting.push(done);
                }
                Job::Close => open = false,
            }
            if !open || BATCH_MAX <= changes.len() {
                break;
            }
        }
        if outcome.is_ok() && !changes.is_empty() {
            counters.changes.fetch_add(changes.len() as u64, Ordering::Relaxed);
            counters.syncs.fetch_add(1, Ordering::Relaxed);
            let written = counters.watch(|| engine.write(changes.iter()));
            outcome = written.map_err(|error| {
                tracing::error!("the log cannot be written, so nothing more will be: {error}");
                Failure { kind: error.kind(), text: error.to_string() }
            });
        }
        changes.clear();
        waiting.drain(..).for_each(|done: Done| done.tell(&outcome));
    }
}
