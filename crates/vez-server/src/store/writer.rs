//! The one thread that writes the log: whatever was handed over while it waited for the disk
//! shares the next `fdatasync`.
//!
//! After the first error nothing more is written: what the disk holds is then unknown, and a later
//! success would hide the gap. A panic is such an error too.

use std::fmt::Debug;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
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

/// A write that takes longer than this is worth a word, but not more often than that.
const SLOW: Duration = Duration::from_millis(250);
const SAY_EVERY: Duration = Duration::from_secs(10);

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

/// Where changes go: the log's engine, or what a test has instead of a disk.
pub(crate) trait Sink: Debug + Send {
    /// Returns once all of them are durable.
    fn write(&mut self, changes: &[Change]) -> io::Result<()>;
}

impl Sink for Engine {
    fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        self.write(changes)
    }
}

/// How often the disk was asked to sync, and for how many changes; and how it does.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) syncs: AtomicU64,
    pub(crate) changes: AtomicU64,
    /// How long the disk took, each time.
    pub(crate) took: Histogram,
    opened: Instant,
    /// When the write under way was begun, in microseconds after the log was opened; or [`IDLE`].
    begun: AtomicU64,
    failure: OnceLock<String>,
}

const IDLE: u64 = u64::MAX;

impl Default for Counters {
    fn default() -> Self {
        Self {
            syncs: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            took: Histogram::quick(),
            opened: Instant::now(),
            begun: AtomicU64::new(IDLE),
            failure: OnceLock::new(),
        }
    }
}

impl Counters {
    /// How long the write under way has taken so far.
    pub(crate) fn under_way(&self) -> Option<Duration> {
        let begun = self.begun.load(Ordering::Relaxed);
        let begun = (begun != IDLE).then(|| Duration::from_micros(begun))?;
        Some(self.opened.elapsed().saturating_sub(begun))
    }

    /// Why nothing is written any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn begin(&self, changes: usize) {
        self.changes.fetch_add(changes as u64, Ordering::Relaxed);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let now = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(IDLE);
        self.begun.store(now, Ordering::Relaxed);
    }

    /// How long it took.
    fn end(&self) -> Duration {
        let took = self.under_way().unwrap_or_default();
        self.took.observe(took);
        self.begun.store(IDLE, Ordering::Relaxed);
        took
    }
}

/// Hands changes to the thread. What one handle sends is written in that order.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    queue: Sender<Job>,
}

impl Writer {
    pub(crate) fn start(
        sink: impl Sink + 'static,
        counters: Arc<Counters>,
    ) -> io::Result<(Self, Thread)> {
        let (queue, jobs) = channel();
        let thread = thread::Builder::new()
            .name("vez-log".to_owned())
            .spawn(move || run(sink, &jobs, &counters))?;
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

/// Says that the disk is slow, and not again with every write.
#[derive(Default)]
struct Slowness {
    said: Option<Instant>,
}

impl Slowness {
    fn note(&mut self, took: Duration) {
        if took < SLOW || self.said.is_some_and(|said| said.elapsed() < SAY_EVERY) {
            return;
        }
        self.said = Some(Instant::now());
        tracing::warn!("the disk is slow: it took {took:?} to write to the log");
    }
}

fn run(mut sink: impl Sink, jobs: &Receiver<Job>, counters: &Counters) {
    let mut outcome = Ok(());
    let (mut changes, mut waiting) = (Vec::new(), Vec::new());
    let (mut open, mut slowness) = (true, Slowness::default());
    while open {
        let Ok(first) = jobs.recv() else { return };
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
            counters.begin(changes.len());
            outcome = write(&mut sink, &changes).map_err(|error| {
                tracing::error!("the log cannot be written, so nothing more will be: {error}");
                let text = counters.failure.get_or_init(|| error.to_string()).clone();
                Failure { kind: error.kind(), text }
            });
            slowness.note(counters.end());
        }
        changes.clear();
        waiting.drain(..).for_each(|done: Done| done.tell(&outcome));
    }
}

/// Whoever waits must be told, whatever happens to the log: a panic would leave them waiting.
fn write(sink: &mut impl Sink, changes: &[Change]) -> io::Result<()> {
    panic::catch_unwind(AssertUnwindSafe(|| sink.write(changes))).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Err(io::Error::other(format!("the log gave up: {why}")))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Condvar, Mutex};

    use super::super::Vote;
    use super::*;

    /// A disk that hangs while its gate is shut.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

    impl Gate {
        pub(crate) fn set_shut(&self, is_shut: bool) {
            *self.0.0.lock().unwrap() = is_shut;
            self.0.1.notify_all();
        }

        fn pass(&self) {
            let (is_shut, opened) = &*self.0;
            drop(opened.wait_while(is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
        }
    }

    #[derive(Debug)]
    pub(crate) struct Gated<S>(pub(crate) S, pub(crate) Gate);

    impl<S: Sink> Sink for Gated<S> {
        fn write(&mut self, changes: &[Change]) -> io::Result<()> {
            self.1.pass();
            self.0.write(changes)
        }
    }

    /// Takes what it is given, until it has had enough.
    #[derive(Debug)]
    struct Brittle(u64);

    impl Sink for Brittle {
        fn write(&mut self, _: &[Change]) -> io::Result<()> {
            assert_ne!(self.0, 0, "a page is not where it should be");
            self.0 -= 1;
            Ok(())
        }
    }

    fn vote() -> Change {
        Change::Vote(Vote::new(1, 1))
    }

    #[tokio::test]
    async fn a_panic_of_the_database_is_an_error_for_all_and_nobody_waits_for_ever() {
        let counters = Arc::new(Counters::default());
        let sink = Brittle(1);
        let (writer, mut thread) = Writer::start(sink, Arc::clone(&counters)).unwrap();
        writer.write(vote()).await.unwrap();
        assert_eq!(counters.failure(), None);
        for _ in 0..2 {
            let error = writer.write(vote()).await.unwrap_err().to_string();
            assert!(error.contains("a page is not where it should be"), "{error}");
        }
        assert!(counters.failure().is_some_and(|why| why.contains("a page is not")));
        assert_eq!(counters.under_way(), None);
        thread.close();
        assert!(writer.write(vote()).await.is_err());
    }

    #[tokio::test]
    async fn it_is_known_how_long_the_disk_has_hung() {
        let (gate, counters) = (Gate::default(), Arc::new(Counters::default()));
        let sink = Gated(Brittle(9), gate.clone());
        let (writer, mut thread) = Writer::start(sink, Arc::clone(&counters)).unwrap();
        assert_eq!(counters.under_way(), None);
        gate.set_shut(true);
        let (caller, told) = oneshot::channel();
        writer.send(vote(), Done::Caller(caller));
        let long = Duration::from_millis(20);
        while counters.under_way().is_none_or(|so_far| so_far < long) {
            tokio::task::yield_now().await;
        }
        gate.set_shut(false);
        told.await.unwrap().unwrap();
        thread.close();
        assert_eq!(counters.under_way(), None);
    }
}
