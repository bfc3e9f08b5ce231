//! Writes that are put to the log together.
//!
//! A round through a majority costs every member about the same, however much it carries; and while
//! one is under way, there is nothing to do but for those who are not in it. So a round begins when
//! a [part](Company) of all are there: the others are in rounds that are under way, or were
//! answered just now and ask again at once, as a rule. While some are written, others are then
//! answered, and others ask; and whoever is alone, or one of a few, waits for nobody.
//!
//! **Invariant:** writes are put to the log in the order in which they were asked. Nobody waits
//! long for others, be it that members are far apart, that a disk is slow, or that they do not come
//! back.

use std::mem;
use std::pin::pin;
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
/// So many are not looked for: whoever comes and makes them enough says so.
const CROWD: usize = 12;
const CROWD_GRACE: Duration = Duration::from_millis(1);
/// A round is told what became of it in so many parts, unless they are smaller than this, and
/// others have their turn between them. Told all at once, all would come back at once, and be
/// written together: whoever talks and whoever writes would then wait for each other in turns.
const PARTS: usize = 10;
const PART_MIN: usize = 2;
/// Who can wait for company is not left alone for longer than this.
const ALONE: Duration = Duration::from_millis(2);

/// How soon something is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    Now,
    /// With what is written next: whoever asks has to wait for something else anyway.
    InCompany,
}

/// How much company there is in a round.
#[derive(Clone, Copy, Debug)]
pub(super) enum Company {
    /// A third of all: for a member that is alone, a round costs little.
    Third,
    /// Half of all: the more are in a round, the less is said between members.
    Half,
}

impl Company {
    /// For each who waits, so many may be elsewhere when a round begins.
    fn others(self) -> usize {
        match self {
            Self::Third => 2,
            Self::Half => 1,
        }
    }
}

/// What is written, and what comes of it.
#[derive(Debug)]
pub(crate) struct Together<W, O> {
    line: Mutex<Line<W, O>>,
    /// Rung when there may be a reason to begin a round.
    rung: Notify,
}

#[derive(Debug)]
struct Line<W, O> {
    company: Company,
    /// Somebody begins rounds.
    is_carried: bool,
    waiting: Vec<Asked<W, O>>,
    /// How many of those are in a hurry; of the same kind are those who are counted below.
    hurried: usize,
    /// In rounds that are waited for.
    under_way: usize,
    /// Answered, and expected back.
    answered: usize,
}

#[derive(Debug)]
struct Asked<W, O> {
    write: W,
    haste: Haste,
    asker: oneshot::Sender<O>,
}

impl<W, O> Line<W, O> {
    fn new(company: Company) -> Self {
        let waiting = Vec::new();
        Self { company, is_carried: false, waiting, hurried: 0, under_way: 0, answered: 0 }
    }

    fn join(&mut self, write: W, haste: Haste) -> oneshot::Receiver<O> {
        let (asker, told) = oneshot::channel();
        self.waiting.push(Asked { write, haste, asker });
        self.hurried += usize::from(haste == Haste::Now);
        self.answered = self.answered.saturating_sub(1);
        told
    }

    fn elsewhere(&self) -> usize {
        self.under_way + self.answered
    }

    fn is_due(&self) -> bool {
        0 < self.hurried && self.elsewhere() <= self.company.others() * self.hurried
    }

    /// All who wait. If nobody does, nobody begins rounds from now on.
    fn next(&mut self) -> Option<Vec<Asked<W, O>>> {
        self.under_way += mem::take(&mut self.hurried);
        self.is_carried = !self.waiting.is_empty();
        self.is_carried.then(|| mem::take(&mut self.waiting))
    }
}

impl<W: Send + 'static, O: Send + 'static> Together<W, O> {
    pub(super) fn new(company: Company) -> Arc<Self> {
        Arc::new(Self { line: Mutex::new(Line::new(company)), rung: Notify::new() })
    }

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
        let was_idle = line.hurried == 0;
        let told = writes.into_iter().map(|(write, haste)| line.join(write, haste)).collect();
        if mem::replace(&mut line.is_carried, true) {
            if line.is_due() || was_idle && 0 < line.hurried {
                self.rung.notify_one();
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
        loop {
            self.gather().await;
            let Some(round) = self.line().next() else { return };
            let (writes, askers): (_, Vec<_>) =
                round.into_iter().map(|it| (it.write, (it.haste, it.asker))).unzip();
            let outcomes = put(writes).await;
            tokio::spawn(Arc::clone(&self).see_through(askers, outcomes));
        }
    }

    /// Returns when a round is due, or when it is not worth waiting any more.
    async fn gather(&self) {
        // After all who have something to say now.
        tokio::task::yield_now().await;
        let since = Instant::now();
        loop {
            let (hurried, under_way, elsewhere) = {
                let line = self.line();
                if line.is_due() || line.waiting.is_empty() {
                    return;
                }
                (line.hurried, line.under_way, line.elsewhere())
            };
            let is_rung = match (hurried, under_way) {
                (0, _) => timeout_at(since + ALONE, self.rung.notified()).await.is_ok(),
                (_, 0) if CROWD <= elsewhere => {
                    timeout(CROWD_GRACE, self.rung.notified()).await.is_ok()
                }
                (_, 0) => self.look(Instant::now() + GRACE).await,
                // They are not waited for for ever.
                _ => {
                    self.rung.notified().await;
                    true
                }
            };
            if !is_rung {
                break;
            }
        }
        // Whoever is not back by now has gone.
        self.line().answered = 0;
    }

    /// Whether enough have come before that.
    async fn look(&self, until: Instant) -> bool {
        for _ in 0..LOOKS {
            // After all who have something to say now, be it here or in another process.
            tokio::task::yield_now().await;
            if self.line().is_due() {
                return true;
            }
            if until < Instant::now() {
                break;
            }
            std::thread::yield_now();
        }
        false
    }

    /// Tells everybody in a round what became of it.
    async fn see_through(
        self: Arc<Self>,
        askers: Vec<(Haste, oneshot::Sender<O>)>,
        outcomes: impl Stream<Item = O> + Send,
    ) {
        let mut left = askers.iter().filter(|(haste, _)| *haste == Haste::Now).count();
        let part = askers.len().div_ceil(PARTS).max(PART_MIN);
        let mut telling = pin!(outcomes.zip(futures_util::stream::iter(askers)).enumerate());
        let until = Instant::now() + LONG;
        while let Ok(told) = timeout_at(until, telling.next()).await {
            let Some((before, (outcome, (haste, asker)))) = told else { break };
            // Whoever has gone meanwhile need not know.
            asker.send(outcome).ok();
            if haste == Haste::Now {
                left -= 1;
                self.end(1, 1);
            }
            if (before + 1).is_multiple_of(part) {
                tokio::task::yield_now().await;
            }
        }
        // It takes long, or is over.
        self.end(left, 0);
        while let Some((_, (outcome, (_, asker)))) = telling.next().await {
            asker.send(outcome).ok();
        }
    }

    /// So many are not under way any more, and so many of them are expected back.
    fn end(&self, ended: usize, answered: usize) {
        let mut line = self.line();
        line.under_way -= ended;
        line.answered += answered;
        if line.under_way == 0 {
            self.rung.notify_one();
        }
    }

    fn line(&self) -> MutexGuard<'_, Line<W, O>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::BoxStream;
    use tokio::sync::Semaphore;

    use super::*;

    /// A log that remembers its rounds, and says what became of one when it may.
    struct Log {
        together: Arc<Together<u32, u32>>,
        rounds: Arc<Mutex<Vec<Vec<u32>>>>,
        may: Arc<Mutex<Option<Arc<Semaphore>>>>,
    }

    impl Log {
        fn new(company: Company) -> Self {
            let (rounds, may) = (Arc::default(), Arc::default());
            Self { together: Together::new(company), rounds, may }
        }

        /// Rounds last until they are let go.
        fn held(company: Company) -> (Self, Arc<Semaphore>) {
            let let_go = Arc::new(Semaphore::new(0));
            let log = Self::new(company);
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
        let (log, let_go) = Log::held(Company::Third);
        let first: Vec<_> = (1..=5).map(|write| log.ask(write, Haste::Now)).collect();
        a_moment().await;
        assert_eq!(log.rounds(), [[1, 2, 3, 4, 5]], "they came at once");
        let [six, seven] = [6, 7].map(|write| log.ask(write, Haste::Now));
        a_moment().await;
        assert_eq!(log.rounds().len(), 1, "two, and five elsewhere");
        let eight = log.ask(8, Haste::Now);
        a_moment().await;
        assert_eq!(log.rounds()[1..], [[6, 7, 8]], "three are enough, though five are under way");
        let_go.add_permits(2);
        for (told, expected) in first.into_iter().chain([six, seven, eight]).zip(101..) {
            assert_eq!(told.await, Ok(expected));
        }
        let_go.add_permits(1);
        assert_eq!(log.ask(9, Haste::Now).await, Ok(109), "also after all have gone");
    }

    #[tokio::test(start_paused = true)]
    async fn among_several_members_half_of_all_go_together() {
        let (log, let_go) = Log::held(Company::Half);
        let mut told: Vec<_> = (1..=3).map(|write| log.ask(write, Haste::Now)).collect();
        a_moment().await;
        told.extend([4, 5].map(|write| log.ask(write, Haste::Now)));
        a_moment().await;
        assert_eq!(log.rounds(), [[1, 2, 3]], "two, and three elsewhere");
        told.push(log.ask(6, Haste::Now));
        a_moment().await;
        assert_eq!(log.rounds(), [[1, 2, 3], [4, 5, 6]]);
        let_go.add_permits(2);
        for (told, expected) in told.into_iter().zip(101..) {
            assert_eq!(told.await, Ok(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_can_wait_goes_with_who_cannot() {
        let log = Log::new(Company::Third);
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
        let log = Log::new(Company::Third);
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
        let (log, let_go) = Log::held(Company::Third);
        let first: Vec<_> = (1..=3).map(|write| log.ask(write, Haste::Now)).collect();
        a_moment().await;
        let fourth = log.ask(4, Haste::Now);
        a_moment().await;
        assert_eq!(log.rounds().len(), 1, "one, and three elsewhere");
        tokio::time::sleep(2 * LONG).await;
        assert_eq!(log.rounds(), [vec![1, 2, 3], vec![4]]);
        let_go.add_permits(2);
        for (told, expected) in first.into_iter().chain([fourth]).zip(101..) {
            assert_eq!(told.await, Ok(expected));
        }
    }

    /// How many rounds it takes so many who ask twenty times each, again after so many `steps`. A
    /// round takes a millisecond.
    async fn rounds_of(crowd: u32, steps: u32) -> usize {
        let (log, let_go) = Log::held(Company::Third);
        let mut askers = tokio::task::JoinSet::new();
        let log = Arc::new(log);
        for number in 0..crowd {
            let log = Arc::clone(&log);
            askers.spawn(async move {
                // They do not all come at once.
                tokio::time::sleep(Duration::from_micros(u64::from(number) * 100)).await;
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
        log.rounds().len()
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_were_just_answered_are_waited_for() {
        for (crowd, steps) in [(9, 10), (32, 10 * LOOKS)] {
            let rounds = rounds_of(crowd, steps).await;
            // A third of all goes together, or a little more; and the first ones as they come.
            assert!(rounds <= 3 * 20 + 12, "{rounds} rounds of {crowd}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn while_some_are_told_others_are_written() {
        let (log, let_go) = Log::held(Company::Third);
        let log = Arc::new(log);
        let mut askers = tokio::task::JoinSet::new();
        for number in 0..30 {
            let log = Arc::clone(&log);
            askers.spawn(async move {
                log.ask(number, Haste::Now).await.unwrap();
                log.ask(number, Haste::Now).await.unwrap();
            });
        }
        a_moment().await;
        assert_eq!(log.rounds().len(), 1, "they came at once");
        let_go.add_permits(1);
        a_moment().await;
        let second = log.rounds()[1].len();
        assert!((10..20).contains(&second), "{second} of 30 had come back when the next began");
        let_go.add_permits(9);
        askers.join_all().await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_come_back_is_not_waited_for_for_ever() {
        let log = Log::new(Company::Third);
        let many = 2 * CROWD as u32;
        let crowd: Vec<_> = (0..many).map(|number| log.ask(number, Haste::Now)).collect();
        for told in crowd {
            told.await.unwrap();
        }
        let begun = Instant::now();
        assert_eq!(log.ask(100, Haste::Now).await, Ok(200));
        assert!((CROWD_GRACE..3 * CROWD_GRACE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        assert_eq!(log.ask(101, Haste::Now).await, Ok(201));
        assert!(begun.elapsed() < 3 * CROWD_GRACE, "and nobody waits for them again");
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_few_nobody_waits_for_another() {
        let (log, let_go) = Log::held(Company::Third);
        let first = log.ask(1, Haste::Now);
        a_moment().await;
        let second = log.ask(2, Haste::Now);
        a_moment().await;
        let third = log.ask(3, Haste::Now);
        a_moment().await;
        assert_eq!(log.rounds(), [[1], [2], [3]]);
        let_go.add_permits(3);
        assert_eq!((first.await, second.await, third.await), (Ok(101), Ok(102), Ok(103)));
    }
}
