//! Who still has time: the leader's monotonic clock, and nothing else, ends a lease.
//!
//! The state knows which leases there are; only the leader knows when they end, because renewing
//! one is not worth a write. A new leader gives every lease its full time again: it cannot know
//! how much of it was left, and a lease may be lengthened by a change of leader, never shortened.
//!
//! Time counts only while holders can be heard and what ends can be written down. While the log
//! hangs, nothing ends. When this process itself stood still, holders first get a moment in which
//! what they said meanwhile is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// How often it looks at the clock while there are leases.
const LOOK: Duration = Duration::from_millis(250);
/// Who did not get to look for this long did not get to hear anybody either.
pub(crate) const STALL: Duration = Duration::from_secs(1);
/// After a stall, time stands still for so long: what lies in the sockets is read first.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Time, as far as it counts: since the first look, without stalls.
#[derive(Debug)]
struct Clock {
    seen: Instant,
    counts_from: Instant,
    counted: Duration,
}

impl Clock {
    fn new() -> Self {
        let now = Instant::now();
        Self { seen: now, counts_from: now, counted: Duration::ZERO }
    }

    fn look(&mut self, stands_still: bool) -> Duration {
        let now = Instant::now();
        let unseen = now.saturating_duration_since(self.seen);
        if STALL < unseen {
            tracing::warn!("nothing was done for {unseen:?}: leases have that much longer");
            self.counts_from = now + GRACE;
        } else if stands_still {
            self.counts_from = self.counts_from.max(now);
        } else {
            self.counted += now.saturating_duration_since(self.counts_from);
            self.counts_from = self.counts_from.max(now);
        }
        self.seen = now;
        self.counted
    }

    /// When nobody looks because there is nothing to look for.
    fn skip(&mut self) {
        self.seen = Instant::now();
        self.counts_from = self.counts_from.max(self.seen);
    }
}

/// Moments are those of the clock.
#[derive(Clone, Copy, Debug)]
struct Term {
    ttl: Duration,
    ends: Duration,
    /// When it is looked at; not later than it ends, unless ending it failed.
    due: Duration,
}

#[derive(Debug)]
struct Book {
    leads: bool,
    clock: Clock,
    terms: BTreeMap<i64, Term>,
    /// A renewal leaves it alone, so that it costs little: whoever is looked at and has time left
    /// is looked at again when that is over.
    by_due: BTreeSet<(Duration, i64)>,
    /// Who wants to hear that a lease ended.
    ears: BTreeMap<i64, Vec<mpsc::UnboundedSender<i64>>>,
}

impl Book {
    fn new(leads: bool) -> Self {
        Self {
            leads,
            clock: Clock::new(),
            terms: BTreeMap::new(),
            by_due: BTreeSet::new(),
            ears: BTreeMap::new(),
        }
    }

    fn set(&mut self, id: i64, ttl: Duration, now: Duration) {
        self.forget(id);
        let ends = now + ttl;
        self.terms.insert(id, Term { ttl, ends, due: ends });
        self.by_due.insert((ends, id));
    }

    fn forget(&mut self, id: i64) {
        if let Some(term) = self.terms.remove(&id) {
            self.by_due.remove(&(term.due, id));
        }
    }

    /// Seconds, or nothing if its time is over.
    fn renew(&mut self, id: i64, now: Duration) -> Option<i64> {
        let term = self.terms.get_mut(&id).filter(|term| now < term.ends)?;
        term.ends = now + term.ttl;
        Some(term.ttl.as_secs().cast_signed())
    }

    /// Those whose time is over, which are not looked at again.
    fn take_over(&mut self, now: Duration) -> Vec<i64> {
        // Who is due soon is looked at too: many that were renewed are not worth a look each.
        let later = self.by_due.split_off(&(now + LOOK, i64::MAX));
        let mut over = Vec::new();
        for (due, id) in std::mem::replace(&mut self.by_due, later) {
            let Some(term) = self.terms.get_mut(&id) else { continue };
            if due <= now && term.ends <= now {
                over.push(id);
            } else {
                term.due = term.due.max(term.ends);
                self.by_due.insert((term.due, id));
            }
        }
        over
    }
}

pub(crate) struct Lessor {
    book: Mutex<Book>,
    /// The first end may have become another one.
    changed: Notify,
    /// Whether the log takes nothing at the moment.
    log_hangs: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Lessor {
    pub(crate) fn new(log_hangs: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let book = Mutex::new(Book::new(false));
        Self { book, changed: Notify::new(), log_hangs: Box::new(log_hangs) }
    }

    /// From now on this node's clock counts: every lease starts anew.
    pub(crate) fn lead(&self, leases: impl IntoIterator<Item = (i64, i64)>) {
        let mut book = self.book();
        *book = Book { ears: std::mem::take(&mut book.ears), ..Book::new(true) };
        for (id, seconds) in leases {
            book.set(id, time(seconds), Duration::ZERO);
        }
        drop(book);
        self.changed.notify_one();
    }

    /// Another's clock counts now.
    pub(crate) fn follow(&self) {
        let mut book = self.book();
        *book = Book { ears: std::mem::take(&mut book.ears), ..Book::new(false) };
    }

    /// Whether it is this node's clock that counts.
    pub(crate) fn leads(&self) -> bool {
        self.book().leads
    }

    /// Whether a lease has no time left; only who leads knows.
    pub(crate) fn is_over(&self, id: i64) -> bool {
        self.leads() && self.left(id).is_none()
    }

    /// Unless it has time already.
    pub(crate) fn granted(&self, id: i64, seconds: i64) {
        let mut book = self.book();
        let is_new = !book.terms.contains_key(&id);
        if book.leads && is_new {
            if book.terms.is_empty() {
                book.clock.skip();
            }
            let now = self.look(&mut book);
            book.set(id, time(seconds), now);
            drop(book);
            self.changed.notify_one();
        }
    }

    pub(crate) fn ended(&self, id: i64) {
        let mut book = self.book();
        book.forget(id);
        for ear in book.ears.remove(&id).into_iter().flatten() {
            // Whoever has gone meanwhile need not know.
            ear.send(id).ok();
        }
    }

    /// Has `ear` told once when a lease ends; says whether there is such a lease, as far as this
    /// node knows: another's leases are for the caller to know.
    pub(crate) fn watch(&self, id: i64, ear: &mpsc::UnboundedSender<i64>) -> bool {
        let mut book = self.book();
        let is_there = !book.leads || book.terms.contains_key(&id);
        if is_there {
            let ears = book.ears.entry(id).or_default();
            ears.retain(|ear| !ear.is_closed());
            ears.push(ear.clone());
        }
        is_there
    }

    /// Gives a lease its full time again, unless that is over: seconds, or nothing.
    ///
    /// While the log hangs, too: nobody else can end the lease, and after a restart it has its full
    /// time again, so that this is a promise that is kept.
    pub(crate) fn renew(&self, id: i64) -> Option<i64> {
        let mut book = self.book();
        let now = self.look(&mut book);
        book.renew(id, now)
    }

    /// The same for many, 0 for those that are over; nothing, if another's clock counts.
    pub(crate) fn renew_all(&self, ids: &[i64]) -> Option<Vec<i64>> {
        let mut book = self.book();
        let now = self.look(&mut book);
        book.leads.then(|| ids.iter().map(|id| book.renew(*id, now).unwrap_or(0)).collect())
    }

    /// Whole seconds that are left.
    pub(crate) fn left(&self, id: i64) -> Option<i64> {
        let mut book = self.book();
        let now = self.look(&mut book);
        let term = *book.terms.get(&id)?;
        Some(term.ends.checked_sub(now)?.as_secs().cast_signed())
    }

    /// What is left to a lease, and of how much.
    pub(crate) fn time_left(&self, id: i64) -> Option<(Duration, Duration)> {
        let mut book = self.book();
        let now = self.look(&mut book);
        let term = *book.terms.get(&id)?;
        Some((term.ends.saturating_sub(now), term.ttl))
    }

    /// Those that end next: what is left to each, and of how much.
    pub(crate) fn soonest(&self, most: usize) -> Vec<(i64, Duration, Duration)> {
        let mut book = self.book();
        let now = self.look(&mut book);
        let mut terms: Vec<_> = book.terms.iter().map(|(id, term)| (term.ends, *id)).collect();
        if most < terms.len() {
            terms.select_nth_unstable(most);
            terms.truncate(most);
        }
        terms.sort_unstable();
        let soonest = terms.into_iter().filter_map(|(ends, id)| {
            Some((id, ends.saturating_sub(now), book.terms.get(&id)?.ttl))
        });
        soonest.collect()
    }

    /// Waits until leases are over, and says which. Each is told once: who asks must end them.
    pub(crate) async fn next_over(&self) -> Vec<i64> {
        loop {
            let changed = self.changed.notified();
            let Some(pause) = self.pause() else {
                changed.await;
                continue;
            };
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => {
                    let over = self.take_over();
                    if !over.is_empty() {
                        return over;
                    }
                }
                () = changed => {}
            }
        }
    }

    /// How long to wait before looking again; for ever, if there is nothing to look for.
    fn pause(&self) -> Option<Duration> {
        let mut book = self.book();
        let now = self.look(&mut book);
        if book.terms.is_empty() {
            return None;
        }
        let stands_still = (self.log_hangs)() || Instant::now() < book.clock.counts_from;
        let first = book.by_due.first().filter(|_| !stands_still);
        Some(first.map_or(LOOK, |(due, _)| due.saturating_sub(now).min(LOOK)))
    }

    /// Puts a lease that could not be ended back, to be tried again.
    pub(crate) fn retry(&self, id: i64, after: Duration) {
        let mut book = self.book();
        let again = self.look(&mut book) + after;
        // What is over stays over: only the moment of the next attempt is new.
        if let Some(term) = book.terms.get_mut(&id) {
            term.due = again;
            book.by_due.insert((again, id));
            drop(book);
            self.changed.notify_one();
        }
    }

    fn take_over(&self) -> Vec<i64> {
        let mut book = self.book();
        let now = self.look(&mut book);
        book.take_over(now)
    }

    fn look(&self, book: &mut Book) -> Duration {
        if !book.leads {
            return Duration::ZERO;
        }
        book.clock.look((self.log_hangs)())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Lessor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Lessor").field("book", &self.book).finish_non_exhaustive()
    }
}

fn time(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn lessor() -> Lessor {
        Lessor::new(|| false)
    }

    /// Time that passes while the server does its work.
    async fn work(lessor: &Lessor, seconds: u64) {
        for _ in 0..4 * seconds {
            tokio::time::advance(LOOK).await;
            lessor.pause();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_over_when_its_time_is_and_not_before() {
        let lessor = lessor();
        lessor.lead([(1, 5), (2, 3)]);
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [2]);
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_not_renewed() {
        let lessor = lessor();
        lessor.lead([(1, 5)]);
        work(&lessor, 4).await;
        assert_eq!((lessor.renew(1), lessor.left(1)), (Some(5), Some(5)));
        work(&lessor, 5).await;
        assert_eq!((lessor.renew(1), lessor.left(1)), (None, Some(0)));
        assert_eq!(lessor.next_over().await, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_renewed_ends_later_than_those_who_are_not() {
        let lessor = lessor();
        lessor.lead([(1, 5), (2, 6), (3, 5)]);
        let begun = Instant::now();
        work(&lessor, 4).await;
        assert_eq!(lessor.renew_all(&[1, 9]), Some(vec![5, 0]));
        let soonest =
            |most| lessor.soonest(most).into_iter().map(|(id, left, _)| (id, left.as_secs()));
        assert!(soonest(9).eq([(3, 1), (2, 2), (1, 5)]));
        assert!(soonest(2).eq([(3, 1), (2, 2)]));
        for (id, end) in [(3, 5), (2, 6), (1, 9)] {
            assert_eq!(lessor.next_over().await, [id]);
            assert_eq!(begun.elapsed().as_secs(), end);
        }
        lessor.retry(1, Duration::from_secs(2));
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 11, "not before it is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_a_lease_that_ends_sooner() {
        let lessor = lessor();
        lessor.lead([(1, 50)]);
        let sooner = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            lessor.granted(2, 4);
            std::future::pending::<()>().await;
        };
        let begun = Instant::now();
        tokio::select! {
            over = lessor.next_over() => assert_eq!(over, [2]),
            () = sooner => {}
        }
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_granted_anew_is_not_ended_by_an_old_attempt() {
        let lessor = lessor();
        lessor.lead([(1, 2)]);
        assert_eq!(lessor.next_over().await, [1]);
        lessor.retry(1, Duration::from_secs(1));
        lessor.ended(1);
        lessor.granted(1, 10);
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asked_hears_once_that_a_lease_ended() {
        let lessor = lessor();
        lessor.lead([(1, 5), (2, 5)]);
        let (ear, mut heard) = mpsc::unbounded_channel();
        assert!(lessor.watch(1, &ear) && lessor.watch(2, &ear) && !lessor.watch(3, &ear));
        lessor.ended(1);
        lessor.ended(1);
        assert_eq!((heard.try_recv().ok(), heard.try_recv().ok()), (Some(1), None));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_leaders_clock_counts_and_a_new_leader_starts_anew() {
        let lessor = lessor();
        lessor.granted(1, 2);
        assert_eq!(lessor.renew(1), None);
        lessor.lead([(1, 8)]);
        work(&lessor, 7).await;
        lessor.follow();
        assert_eq!(lessor.renew(1), None);
        lessor.lead([(1, 8)]);
        assert_eq!(lessor.left(1), Some(8));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ends_while_the_log_hangs_and_all_have_what_they_had_left() {
        let hangs = Arc::new(AtomicBool::new(false));
        let lessor = Lessor::new({
            let hangs = Arc::clone(&hangs);
            move || hangs.load(Ordering::Relaxed)
        });
        lessor.lead([(1, 10), (2, 20)]);
        work(&lessor, 7).await;
        hangs.store(true, Ordering::Relaxed);
        let hung = tokio::time::timeout(Duration::from_mins(10), lessor.next_over()).await;
        assert!(hung.is_err(), "nothing ends");
        assert_eq!((lessor.left(1), lessor.left(2)), (Some(3), Some(13)));
        assert_eq!(lessor.renew(2), Some(20), "who is heard is answered");
        lessor.granted(3, 5);
        hangs.store(false, Ordering::Relaxed);
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(lessor.next_over().await, [3]);
        assert_eq!(begun.elapsed().as_secs(), 5);
        assert_eq!(lessor.next_over().await, [2]);
        assert_eq!(begun.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stood_still_hears_holders_before_it_ends_their_leases() {
        let lessor = lessor();
        lessor.lead([(1, 5), (2, 5)]);
        work(&lessor, 4).await;
        // Stopped, like a process that gets a signal; longer than any lease.
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(lessor.take_over(), [] as [i64; 0]);
        assert_eq!(lessor.renew(1), Some(5), "what lay in the socket is read");
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [2]);
        let longer = begun.elapsed().checked_sub(GRACE).expect("there is a grace");
        assert!((0..=1).contains(&longer.as_secs()), "{longer:?}");
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_stall_counts_and_a_quiet_time_without_leases_is_none() {
        let lessor = lessor();
        lessor.lead([]);
        tokio::time::advance(Duration::from_hours(1)).await;
        lessor.granted(1, 5);
        tokio::time::advance(STALL).await;
        assert_eq!(lessor.left(1), Some(4));
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 4);
        // It is being ended, which may take its time.
        let none = tokio::time::timeout(Duration::from_mins(1), lessor.next_over()).await;
        assert!(none.is_err(), "it was told");
        lessor.granted(2, 5);
        assert_eq!(lessor.left(2), Some(5));
        work(&lessor, 1).await;
        assert_eq!(lessor.left(2), Some(4));
    }
}
