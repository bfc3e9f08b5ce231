//! Who still has time: the leader's monotonic clock, and nothing else, ends a lease.
//!
//! The state knows which leases there are; only the leader knows when they end, because renewing
//! one is not worth a write. A new leader gives every lease its full time again: it cannot know
//! how much of it was left, and a lease may be lengthened by a change of leader, never shortened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
struct Term {
    ttl: Duration,
    ends: Instant,
}

#[derive(Debug, Default)]
struct Book {
    leads: bool,
    terms: BTreeMap<i64, Term>,
    by_end: BTreeSet<(Instant, i64)>,
    /// Who wants to hear that a lease ended.
    ears: BTreeMap<i64, Vec<mpsc::UnboundedSender<i64>>>,
}

impl Book {
    fn set(&mut self, id: i64, ttl: Duration, now: Instant) {
        self.forget(id);
        let ends = now + ttl;
        self.terms.insert(id, Term { ttl, ends });
        self.by_end.insert((ends, id));
    }

    fn forget(&mut self, id: i64) {
        if let Some(term) = self.terms.remove(&id) {
            self.by_end.remove(&(term.ends, id));
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Lessor {
    book: Mutex<Book>,
    /// The first end may have become another one.
    changed: Notify,
}

impl Lessor {
    /// From now on this node's clock counts: every lease starts anew.
    pub(crate) fn lead(&self, leases: impl IntoIterator<Item = (i64, i64)>) {
        let now = Instant::now();
        let mut book = self.book();
        *book = Book { leads: true, ..Book::default() };
        for (id, seconds) in leases {
            book.set(id, time(seconds), now);
        }
        drop(book);
        self.changed.notify_one();
    }

    /// Another's clock counts now.
    pub(crate) fn follow(&self) {
        *self.book() = Book::default();
    }

    /// Unless it has time already.
    pub(crate) fn granted(&self, id: i64, seconds: i64) {
        let mut book = self.book();
        if book.leads && !book.terms.contains_key(&id) {
            book.set(id, time(seconds), Instant::now());
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

    /// Has `ear` told once when a lease ends; says whether there is such a lease.
    pub(crate) fn watch(&self, id: i64, ear: &mpsc::UnboundedSender<i64>) -> bool {
        let mut book = self.book();
        let is_there = book.terms.contains_key(&id);
        if is_there {
            let ears = book.ears.entry(id).or_default();
            ears.retain(|ear| !ear.is_closed());
            ears.push(ear.clone());
        }
        is_there
    }

    /// Gives a lease its full time again, unless that is over: seconds, or nothing.
    pub(crate) fn renew(&self, id: i64) -> Option<i64> {
        let now = Instant::now();
        let mut book = self.book();
        let term = *book.terms.get(&id)?;
        if term.ends <= now {
            return None;
        }
        book.set(id, term.ttl, now);
        Some(term.ttl.as_secs().cast_signed())
    }

    /// Whole seconds that are left.
    pub(crate) fn left(&self, id: i64) -> Option<i64> {
        let term = *self.book().terms.get(&id)?;
        let left = term.ends.checked_duration_since(Instant::now())?;
        Some(left.as_secs().cast_signed())
    }

    /// What is left to a lease, and of how much.
    pub(crate) fn time_left(&self, id: i64) -> Option<(Duration, Duration)> {
        let term = *self.book().terms.get(&id)?;
        Some((term.ends.saturating_duration_since(Instant::now()), term.ttl))
    }

    /// Those that end next: what is left to each, and of how much.
    pub(crate) fn soonest(&self, most: usize) -> Vec<(i64, Duration, Duration)> {
        let now = Instant::now();
        let book = self.book();
        let soonest = book.by_end.iter().take(most).filter_map(|(_, id)| {
            let term = book.terms.get(id)?;
            Some((*id, term.ends.saturating_duration_since(now), term.ttl))
        });
        soonest.collect()
    }

    /// Waits until leases are over, and says which. Each is told once: who asks must end them.
    pub(crate) async fn next_over(&self) -> Vec<i64> {
        loop {
            let changed = self.changed.notified();
            let first = self.book().by_end.first().map(|(end, _)| *end);
            match first {
                None => changed.await,
                Some(end) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(end) => {
                            let over = self.take_over();
                            if !over.is_empty() {
                                return over;
                            }
                        }
                        () = changed => {}
                    }
                }
            }
        }
    }

    /// Puts a lease that could not be ended back, to be tried again.
    pub(crate) fn retry(&self, id: i64, after: Duration) {
        let again = Instant::now() + after;
        let mut book = self.book();
        // What is over stays over: only the moment of the next attempt is new.
        if book.terms.contains_key(&id) {
            book.by_end.insert((again, id));
            drop(book);
            self.changed.notify_one();
        }
    }

    fn take_over(&self) -> Vec<i64> {
        let now = Instant::now();
        let mut book = self.book();
        let later = book.by_end.split_off(&(now, i64::MAX));
        let over = std::mem::replace(&mut book.by_end, later);
        let is_over = |id: &i64| book.terms.get(id).is_some_and(|term| term.ends <= now);
        over.into_iter().map(|(_, id)| id).filter(is_over).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn time(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_over_when_its_time_is_and_not_before() {
        let lessor = Lessor::default();
        lessor.lead([(1, 5), (2, 3)]);
        let begun = Instant::now();
        assert_eq!(lessor.next_over().await, [2]);
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(lessor.next_over().await, [1]);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_not_renewed() {
        let lessor = Lessor::default();
        lessor.lead([(1, 5)]);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!((lessor.renew(1), lessor.left(1)), (Some(5), Some(5)));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!((lessor.renew(1), lessor.left(1)), (None, Some(0)));
        assert_eq!(lessor.next_over().await, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_a_lease_that_ends_sooner() {
        let lessor = Lessor::default();
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
        let lessor = Lessor::default();
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
        let lessor = Lessor::default();
        lessor.lead([(1, 5), (2, 5)]);
        let (ear, mut heard) = mpsc::unbounded_channel();
        assert!(lessor.watch(1, &ear) && lessor.watch(2, &ear) && !lessor.watch(3, &ear));
        lessor.ended(1);
        lessor.ended(1);
        assert_eq!((heard.try_recv().ok(), heard.try_recv().ok()), (Some(1), None));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_leaders_clock_counts_and_a_new_leader_starts_anew() {
        let lessor = Lessor::default();
        lessor.granted(1, 2);
        assert_eq!(lessor.renew(1), None);
        lessor.lead([(1, 8)]);
        tokio::time::advance(Duration::from_secs(7)).await;
        lessor.follow();
        assert_eq!(lessor.renew(1), None);
        lessor.lead([(1, 8)]);
        assert_eq!(lessor.left(1), Some(8));
    }
}
