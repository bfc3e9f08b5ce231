//! One question for all who want to know the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A round begins after everybody who shares its answer asked; whoever asks while one is under way
/// waits for the next.
#[derive(Debug)]
pub(crate) struct Rounds<T>(Mutex<Line<T>>);

#[derive(Debug)]
struct Line<T> {
    is_under_way: bool,
    waiting: Vec<oneshot::Sender<T>>,
}

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Self(Mutex::new(Line { is_under_way: false, waiting: Vec::new() }))
    }
}

impl<T: Clone + Send + 'static> Rounds<T> {
    /// Nothing, if rounds have come to an end with their runtime.
    pub(crate) async fn join<F, R>(self: &Arc<Self>, ask: F) -> Option<T>
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = T> + Send,
    {
        let (caller, told) = oneshot::channel();
        let begins = {
            let mut line = self.line();
            line.waiting.push(caller);
            !std::mem::replace(&mut line.is_under_way, true)
        };
        if begins {
            let rounds = Arc::clone(self);
            // Not in the caller's task: others wait for it, too.
            tokio::spawn(async move {
                while let Some(callers) = rounds.next() {
                    let answer = ask().await;
                    for caller in callers {
                        // Whoever has gone meanwhile need not know.
                        caller.send(answer.clone()).ok();
                    }
                }
            });
        }
        told.await.ok()
    }

    fn next(&self) -> Option<Vec<oneshot::Sender<T>>> {
        let mut line = self.line();
        let callers = std::mem::take(&mut line.waiting);
        line.is_under_way = !callers.is_empty();
        line.is_under_way.then_some(callers)
    }

    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn who_asks_during_a_round_shares_the_next_and_never_that_one() {
        let (rounds, asked) = (Arc::new(Rounds::default()), Arc::new(AtomicU32::new(0)));
        let gate = Arc::new(Semaphore::new(0));
        let ask = {
            let (asked, gate) = (Arc::clone(&asked), Arc::clone(&gate));
            move || {
                let round = asked.fetch_add(1, Ordering::Relaxed) + 1;
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    round
                }
            }
        };
        let mut callers = tokio::task::JoinSet::new();
        let join = |callers: &mut tokio::task::JoinSet<_>| {
            let (rounds, ask) = (Arc::clone(&rounds), ask.clone());
            callers.spawn(async move { rounds.join(ask).await });
        };
        join(&mut callers);
        while asked.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..5 {
            join(&mut callers);
        }
        while rounds.line().waiting.len() < 5 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        let mut answers = callers.join_all().await;
        answers.sort_unstable();
        assert_eq!(answers, [1, 2, 2, 2, 2, 2].map(Some));
    }
}
