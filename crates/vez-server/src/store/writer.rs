//! The one who writes the log: whatever was handed over while the disk was waited for shares the
//! next `fdatasync`. It is a thread, since whoever talks must not wait for a disk; a simulated disk
//! is waited for in a task.
//!
//! After the first error nothing more is written: what the disk holds is then unknown, and a later
//! success would hide the gap. A panic is such an error too.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use openraft::storage::IOFlushed;
use tokio::sync::mpsc as tasks;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Types;
use super::disk::{Disk, Latency};
use super::engine::{Change, Engine};
use crate::seen::meter::Histogram;

/// How much may share one `fdatasync`: the first of a batch waits for the last.
const BATCH_MAX: usize = 4096;

/// Whoever was answered alone asks again within this, as a rule. Until then the thread of a member
/// that is alone does not sleep: to be woken would take it about half as long as the disk takes.
const LINGER: Duration = Duration::from_micros(200);

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

    /// Nothing more will be written.
    fn close(&mut self) {}
}

impl Sink for Engine {
    fn write(&mut self, changes: &[Change]) -> io::Result<()> {
        self.write(changes)
    }

    fn close(&mut self) {
        self.close();
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

    /// How long it took, if anything was written.
    fn end(&self) -> Option<Duration> {
        let took = self.under_way()?;
        self.took.observe(took);
        self.begun.store(IDLE, Ordering::Relaxed);
        Some(took)
    }
}

/// Hands changes to whoever writes them. What one handle sends is written in that order.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    queue: Queue,
}

#[derive(Clone, Debug)]
enum Queue {
    Thread(mpsc::Sender<Job>),
    Task(tasks::UnboundedSender<Job>),
}

impl Writer {
    pub(crate) fn start(
        sink: impl Sink + 'static,
        counters: Arc<Counters>,
        disk: &Disk,
        is_alone: bool,
    ) -> io::Result<(Self, Writing)> {
        let batches = Batches::new(sink, counters);
        let (queue, hand) = match disk {
            Disk::Real => {
                let (queue, jobs) = mpsc::channel();
                let name = "vez-log".to_owned();
                let thread = thread::Builder::new()
                    .name(name)
                    .spawn(move || batches.run(&jobs, is_alone))?;
                (Queue::Thread(queue), Hand::Thread(thread))
            }
            Disk::Simulated(latency) => {
                let (queue, jobs) = tasks::unbounded_channel();
                let task = tokio::spawn(batches.run_slowly(jobs, Arc::clone(latency)));
                (Queue::Task(queue), Hand::Task(task))
            }
        };
        let writer = Self { queue };
        Ok((writer.clone(), Writing { writer, hand }))
    }

    /// Gives it back, if nobody writes any more.
    fn hand_over(&self, job: Job) -> Result<(), Job> {
        match &self.queue {
            Queue::Thread(queue) => queue.send(job).map_err(|refused| refused.0),
            Queue::Task(queue) => queue.send(job).map_err(|refused| refused.0),
        }
    }

    /// Does not wait: `done` is told.
    pub(crate) fn send(&self, change: Change, done: Done) {
        if let Err(Job::Write(_, done)) = self.hand_over(Job::Write(change, done)) {
            let text = "the log is closed".to_owned();
            done.tell(&Err(Failure { kind: io::ErrorKind::BrokenPipe, text }));
        }
    }

    /// Returns once the change is durable.
    pub(crate) async fn write(&self, change: Change) -> io::Result<()> {
        let (caller, told) = oneshot::channel();
        self.send(change, Done::Caller(caller));
        told.await.unwrap_or_else(|_| Err(io::Error::other("nobody writes the log any more")))
    }
}

/// Whoever writes, to be waited for.
#[derive(Debug)]
pub(crate) struct Writing {
    writer: Writer,
    hand: Hand,
}

#[derive(Debug)]
enum Hand {
    Thread(thread::JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
}

impl Writing {
    /// Writes what is queued, closes the files, and returns when that is done.
    pub(crate) async fn close(self) -> io::Result<()> {
        // Gone already, if this fails.
        self.writer.hand_over(Job::Close).ok();
        match self.hand {
            Hand::Task(task) => task.await.map_err(io::Error::other),
            Hand::Thread(thread) => {
                let ended = tokio::task::spawn_blocking(|| thread.join()).await;
                ended?.map_err(|panic| io::Error::other(reason(&*panic).to_owned()))
            }
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

/// What is written next, and to where.
struct Batches<S> {
    sink: S,
    counters: Arc<Counters>,
    changes: Vec<Change>,
    waiting: Vec<Done>,
    outcome: Result<(), Failure>,
    slowness: Slowness,
    is_open: bool,
}

impl<S: Sink> Batches<S> {
    fn new(sink: S, counters: Arc<Counters>) -> Self {
        let (changes, waiting) = (Vec::new(), Vec::new());
        let (outcome, slowness) = (Ok(()), Slowness::default());
        Self { sink, counters, changes, waiting, outcome, slowness, is_open: true }
    }

    fn run(mut self, jobs: &mpsc::Receiver<Job>, is_alone: bool) {
        let mut is_soon = false;
        while self.is_open {
            let Some(first) = next(jobs, is_soon) else { break };
            self.take(std::iter::once(first).chain(jobs.try_iter()));
            is_soon = is_alone && self.asked() == 1;
            self.begin();
            self.write();
            self.end();
        }
        self.sink.close();
    }

    /// The same, with a disk that takes as long as it is told to.
    async fn run_slowly(
        mut self,
        mut jobs: tasks::UnboundedReceiver<Job>,
        latency: Arc<dyn Latency>,
    ) {
        while self.is_open {
            let Some(first) = jobs.recv().await else { break };
            self.take(std::iter::once(first).chain(waiting(&mut jobs)));
            let [before, after] = latency.next();
            self.begin();
            tokio::time::sleep(before).await;
            self.write();
            tokio::time::sleep(after).await;
            self.end();
        }
        self.sink.close();
    }

    fn take(&mut self, jobs: impl Iterator<Item = Job>) {
        for job in jobs {
            match job {
                Job::Write(change, done) => {
                    self.changes.push(change);
                    self.waiting.push(done);
                }
                Job::Close => self.is_open = false,
            }
            if !self.is_open || BATCH_MAX <= self.changes.len() {
                break;
            }
        }
    }

    /// How much there is to write that somebody may wait for.
    fn asked(&self) -> u64 {
        let of = |change: &Change| match change {
            Change::Append(entries) => entries.len() as u64,
            _ => 1,
        };
        self.changes.iter().map(of).sum()
    }

    fn begin(&self) {
        if self.outcome.is_ok() && !self.changes.is_empty() {
            self.counters.begin(self.changes.len());
        }
    }

    fn write(&mut self) {
        let Self { sink, counters, changes, outcome, .. } = self;
        if outcome.is_ok() && !changes.is_empty() {
            *outcome = write(sink, changes).map_err(|error| {
                tracing::error!("the log cannot be written, so nothing more will be: {error}");
                let text = counters.failure.get_or_init(|| error.to_string()).clone();
                Failure { kind: error.kind(), text }
            });
        }
        changes.clear();
    }

    fn end(&mut self) {
        if let Some(took) = self.counters.end() {
            self.slowness.note(took);
        }
        for done in self.waiting.drain(..) {
            done.tell(&self.outcome);
        }
    }
}

/// Looks for what comes without sleeping, if it comes soon; then waits for it.
fn next(jobs: &mpsc::Receiver<Job>, is_soon: bool) -> Option<Job> {
    let since = Instant::now();
    while is_soon && since.elapsed() < LINGER {
        if let Ok(job) = jobs.try_recv() {
            return Some(job);
        }
        // Whoever else wants to run does.
        thread::yield_now();
    }
    jobs.recv().ok()
}

fn waiting(jobs: &mut tasks::UnboundedReceiver<Job>) -> impl Iterator<Item = Job> {
    std::iter::from_fn(|| jobs.try_recv().ok())
}

/// Whoever waits must be told, whatever happens to the log: a panic would leave them waiting.
fn write(sink: &mut impl Sink, changes: &[Change]) -> io::Result<()> {
    panic::catch_unwind(AssertUnwindSafe(|| sink.write(changes))).unwrap_or_else(|panic| {
        Err(io::Error::other(format!("the log gave up: {}", reason(&*panic))))
    })
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let why = panic.downcast_ref::<String>().map(String::as_str);
    why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason")
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
        let (writer, writing) =
            Writer::start(sink, Arc::clone(&counters), &Disk::Real, true).unwrap();
        writer.write(vote()).await.unwrap();
        assert_eq!(counters.failure(), None);
        for _ in 0..2 {
            let error = writer.write(vote()).await.unwrap_err().to_string();
            assert!(error.contains("a page is not where it should be"), "{error}");
        }
        assert!(counters.failure().is_some_and(|why| why.contains("a page is not")));
        assert_eq!(counters.under_way(), None);
        writing.close().await.unwrap();
        assert!(writer.write(vote()).await.is_err());
    }

    #[tokio::test]
    async fn it_is_known_how_long_the_disk_has_hung() {
        let (gate, counters) = (Gate::default(), Arc::new(Counters::default()));
        let sink = Gated(Brittle(9), gate.clone());
        let (writer, writing) =
            Writer::start(sink, Arc::clone(&counters), &Disk::Real, true).unwrap();
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
        writing.close().await.unwrap();
        assert_eq!(counters.under_way(), None);
    }
}
