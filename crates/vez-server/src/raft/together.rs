//! Writes that are put to the log together.
//!
//! A round through a majority costs every member about the same, however much it carries: what is
//! asked while one is under way goes with the next. Whoever was answered just now asks again at
//! once, as a rule, and is waited for a moment: a longer one, if they are many, since it takes a
//! while to hear them all, and until then there is enough to do.
//!
//! **Invariant:** writes are put to the log in the order in which they were asked. Nobody waits
//! long for a round of others, be it that members are far apart or that a disk is slow.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// A round is waited for no longer than this.
const LONG: Duration = Duration::from_millis(10);
/// Those who were just answered are waited for this long, and looked for so often at most.
const GRACE: Duration = Duration::from_micros(60);
const LOOKS: u32 = 64;
/// So many are not looked for: the last of them says that all are there.
const CROWD: usize = 12;
const CROWD_GRACE: Duration = Duration::from_millis(1);
/// Who can wait for company is not left alone for longer than this.
const ALONE: Duration = Duration::from_millis(2);

/// How soon something is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    Now,
    /// With what is written next: whoever asks has to wait for something else anyway.
    InCompany,
}

/// What is written, and what comes of it.
#[derive(Debug)]
pub(crate) struct Together<W, O> {
    line: Mutex<Line<W, O>>,
    /// Rung for who does not want to wait, and when all have come who were waited for.
    hurry: Notify,
}

#[derive(Debug)]
struct Line<W, O> {
    is_under_way: bool,
    waiting: Vec<Asked<W, O>>,
    /// When so many wait, it is to be said.
    crowd: Option<usize>,
}

#[derive(Debug)]
struct Asked<W, O> {
    write: W,
    haste: Haste,
    asker: oneshot::Sender<O>,
}

impl<W, O> Default for Together<W, O> {
    fn default() -> Self {
        let line = Line { is_under_way: false, waiting: Vec::new(), crowd: None };
        Self { line: Mutex::new(line), hurry: Notify::new() }
    }
}

impl<W: Send + 'static, O: Send + 'static> Together<W, O> {
    /// Has them written with others, by `put`, which says what became of each, in order.
    pub(super) fn join<P, F, S>(
        self: &Arc<Self>,
        writes: impl IntoIterator<Item = (W, Haste)>,
        put: P,
    ) -> Vec<oneshot::Receiver<O>>
    where
        P: Fn(Vec<W>) -> F + Send + 'static,
        F: Future<Output = S> + Send + 'static,
        S: Stream<Item = O> + Send + 'static,
    {
        let mut line = self.line();
        let was_idle = is_idle(&line.waiting);
        let join = |(write, haste)| {
            let (asker, told) = oneshot::channel();
            line.waiting.push(Asked { write, haste, asker });
            told
        };
        let told = writes.into_iter().map(join).collect();
        if mem::replace(&mut line.is_under_way, true) {
            let many = line.waiting.len();
            let is_whole = line.crowd.take_if(|crowd| *crowd <= many).is_some();
            if is_whole || was_idle && !is_idle(&line.waiting) {
                self.hurry.notify_one();
            }
        } else {
            // Not in the caller's task: others wait for it, too.
            tokio::spawn(Arc::clone(self).carry(put));
        }
        told
    }

    /// One round after the other, until nobody waits.
    async fn carry<F, S>(self: Arc<Self>, put: impl Fn(Vec<W>) -> F)
    where
        F: Future<Output = S>,
        S: Stream<Item = O> + Send + 'static,
    {
        let mut answered = 0;
        loop {
            self.gather(answered).await;
            let Some(round) = self.next() else { return };
            let hurried = round.iter().filter(|asked| asked.haste == Haste::Now).count();
            let (writes, askers) = round.into_iter().map(|it| (it.write, it.asker)).unzip();
            let mut telling = Box::pin(tell(askers, put(writes).await));
            let is_told = timeout(LONG, &mut telling).await.is_ok();
            answered = if is_told { hurried } else { 0 };
            if !is_told {
                tokio::spawn(telling);
            }
        }
    }

    /// Waits for those who were just answered; and who can wait for company waits for it.
    async fn gather(&self, answered: usize) {
        let since = Instant::now();
        // Beside those who wait already: else the two halves would go on without each other.
        let expected = self.line().waiting.len() + answered;
        if CROWD <= answered {
            self.gather_crowd(expected, since + CROWD_GRACE).await;
        } else {
            self.look_for(if 1 < answered { expected } else { 0 }, since + GRACE).await;
        }
        let until = since + ALONE;
        let is_idle = || is_idle(&self.line().waiting);
        while is_idle() && timeout_at(until, self.hurry.notified()).await.is_ok() {}
    }

    async fn gather_crowd(&self, expected: usize, until: Instant) {
        self.line().crowd = Some(expected);
        let is_awaited = || self.line().crowd.is_some();
        while is_awaited() && timeout_at(until, self.hurry.notified()).await.is_ok() {}
        self.line().crowd = None;
    }

    async fn look_for(&self, expected: usize, until: Instant) {
        for _ in 0..LOOKS {
            // After all who have something to say now, be it here or in another process.
            tokio::task::yield_now().await;
            if expected <= self.line().waiting.len() || until < Instant::now() {
                break;
            }
            std::thread::yield_now();
        }
    }

    fn next(&self) -> Option<Vec<Asked<W, O>>> {
        let mut line = self.line();
        let waiting = mem::take(&mut line.waiting);
        line.is_under_way = !waiting.is_empty();
        line.is_under_way.then_some(waiting)
    }

    fn line(&self) -> MutexGuard<'_, Line<W, O>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits, and nobody is in a hurry.
fn is_idle<W, O>(waiting: &[Asked<W, O>]) -> bool {
    !waiting.is_empty() && waiting.iter().all(|asked| asked.haste == Haste::InCompany)
}

async fn tell<O>(askers: Vec<oneshot::Sender<O>>, outcomes: impl Stream<Item = O> + Send) {
    let mut told = std::pin::pin!(outcomes.zip(futures_util::stream::iter(askers)));
    while let Some((outcome, asker)) = told.next().await {
        // Whoever has gone meanwhile need not know.
        asker.send(outcome).ok();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::BoxStream;
    use tokio::sync::Semaphore;

    use super::*;

    /// A log that remembers its rounds, and says what became of one when it may.
    #[derive(Default)]
    struct Log {
        together: Arc<Together<u32, u32>>,
        rounds: Arc<Mutex<Vec<Vec<u32>>>>,
        may: Arc<Mutex<Option<Arc<Semaphore>>>>,
    }

    impl Log {
        /// Rounds last until they are let go.
        fn held() -> (Self, Arc<Semaphore>) {
            let let_go = Arc::new(Semaphore::new(0));
            let log = Self::default();
            *log.may.lock().unwrap() = Some(Arc::clone(&let_go));
            (log, let_go)
        }

        fn ask(&self, write: u32, haste: Haste) -> oneshot::Receiver<u32> {
            let (rounds, may) = (Arc::clone(&self.rounds), self.may.lock().unwrap().clone());
            let put = move |writes: Vec<u32>| {
                rounds.lock().unwrap().push(writes.clone());
                let may = may.clone();
                let outcomes = futures_util::stream::once(async move {
                    if let Some(may) = may {
                        may.acquire().await.unwrap().forget();
                    }
                    futures_util::stream::iter(writes.into_iter().map(|write| 100 + write))
                });
                std::future::ready(outcomes.flatten().boxed() as BoxStream<'static, u32>)
            };
            self.together.join([(write, haste)], put).pop().unwrap()
        }

        fn rounds(&self) -> Vec<Vec<u32>> {
            self.rounds.lock().unwrap().clone()
        }
    }

    async fn a_moment() {
        tokio::time::sleep(Duration::from_micros(500)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_during_a_round_goes_with_the_next_in_order() {
        let (log, let_go) = Log::held();
        let first = log.ask(1, Haste::Now);
        a_moment().await;
        let others = [2, 3, 4].map(|write| log.ask(write, Haste::Now));
        a_moment().await;
        assert_eq!(log.rounds(), [vec![1]]);
        let_go.add_permits(1);
        assert_eq!(first.await, Ok(101));
        let_go.add_permits(1);
        for (told, expected) in others.into_iter().zip(102..) {
            assert_eq!(told.await, Ok(expected));
        }
        assert_eq!(log.rounds(), [vec![1], vec![2, 3, 4]]);
        let_go.add_permits(1);
        assert_eq!(log.ask(5, Haste::Now).await, Ok(105), "also after all have gone");
    }

    #[tokio::test(start_paused = true)]
    async fn who_can_wait_goes_with_who_cannot() {
        let log = Log::default();
        let patient = [1, 2].map(|write| log.ask(write, Haste::InCompany));
        a_moment().await;
        assert!(log.rounds().is_empty(), "nobody is in a hurry");
        assert_eq!(log.ask(3, Haste::Now).await, Ok(103));
        assert_eq!(log.rounds(), [vec![1, 2, 3]]);
        for told in patient {
            told.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_can_wait_is_not_left_alone() {
        let log = Log::default();
        let begun = Instant::now();
        assert_eq!(log.ask(1, Haste::InCompany).await, Ok(101));
        assert!((ALONE..3 * ALONE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        // A hurry of long ago is none.
        let _ = [2, 3].map(|write| log.ask(write, Haste::Now));
        a_moment().await;
        let begun = Instant::now();
        assert_eq!(log.ask(4, Haste::InCompany).await, Ok(104));
        assert!(ALONE <= begun.elapsed(), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_that_takes_long_holds_nobody_up() {
        let (log, let_go) = Log::held();
        let first = log.ask(1, Haste::Now);
        a_moment().await;
        let second = log.ask(2, Haste::Now);
        tokio::time::sleep(2 * LONG).await;
        assert_eq!(log.rounds(), [vec![1], vec![2]]);
        let_go.add_permits(2);
        assert_eq!((first.await, second.await), (Ok(101), Ok(102)));
    }

    /// Of rounds among so many who ask again after so many `steps`, how many carry all of them.
    async fn full_rounds(crowd: u32, steps: u32) -> usize {
        let (log, let_go) = Log::held();
        let mut askers = tokio::task::JoinSet::new();
        let log = Arc::new(log);
        for number in 0..crowd {
            let log = Arc::clone(&log);
            // Half of them come while the first half is written.
            askers.spawn(async move {
                if number % 2 == 1 {
                    a_moment().await;
                }
                for _ in 0..20 {
                    log.ask(number, Haste::Now).await.unwrap();
                    // It has a way to go before it asks again.
                    for _ in 0..steps {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        let clock = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let_go.add_permits(1);
            }
        };
        tokio::select! {
            _ = clock => {}
            _ = askers.join_all() => {}
        }
        log.rounds().iter().filter(|round| round.len() == crowd as usize).count()
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_were_just_answered_are_waited_for() {
        let full = full_rounds(8, 10).await;
        assert!(15 <= full, "{full} rounds");
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_waited_for_longer_but_not_for_ever() {
        let full = full_rounds(32, 10 * LOOKS).await;
        assert!(15 <= full, "{full} rounds");
        let log = Log::default();
        let crowd: Vec<_> = (0..CROWD as u32).map(|number| log.ask(number, Haste::Now)).collect();
        for told in crowd {
            told.await.unwrap();
        }
        let begun = Instant::now();
        assert_eq!(log.ask(100, Haste::Now).await, Ok(200), "though the others do not come");
        assert!((CROWD_GRACE..3 * CROWD_GRACE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        assert_eq!(log.ask(101, Haste::Now).await, Ok(201));
        assert!(begun.elapsed() < 3 * CROWD_GRACE, "and nobody waits for them again");
    }
}
