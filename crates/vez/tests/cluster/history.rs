//! What clients do while things go wrong, and whether they were told the truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use vez_tls::net::System;

use crate::clients::{self, Town};
use crate::judge::{Judge, WRITERS};
use crate::trio::Trio;
use crate::watchers;

const TTL: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_millis(500);
/// Now and then somebody stays in a room for so long that a lease which ends early is noticed.
const LONG: Duration = Duration::from_millis(300);
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// Clients at work.
pub(crate) struct History {
    town: Town,
    clients: JoinSet<()>,
    is_wrong: Arc<AtomicBool>,
}

/// Tells when a client ends as none should; it has said why.
struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl History {
    /// As fast as they can, or nearly.
    pub(crate) fn begin(trio: &Trio) -> Self {
        Self::begin_at(trio, Duration::from_millis(1))
    }

    /// Each rests this long after each answer.
    pub(crate) fn begin_at(trio: &Trio, pace: Duration) -> Self {
        let (begun, stays) = (Instant::now(), AtomicU64::new(0));
        let town = Town {
            endpoints: trio.endpoints_from(0),
            net: Arc::new(System),
            judge: Arc::new(Judge::new(&["room"], move || begun.elapsed())),
            ttl: TTL,
            deadline: DEADLINE,
            idle: Arc::new(move || pace),
            stay: Arc::new(move || match stays.fetch_add(1, Ordering::Relaxed) % 10 {
                9 => LONG,
                _ => Duration::from_millis(1),
            }),
        };
        let mut history = Self { town, clients: JoinSet::new(), is_wrong: Arc::default() };
        for client in 0..3 {
            history.employ(clients::write(history.town.clone(), client));
            history.employ(clients::read(history.town.clone(), client));
            history.employ(clients::lock(history.town.clone(), client));
            history.employ(watchers::watch(history.town.clone(), client));
        }
        history
    }

    fn employ(&mut self, client: impl Future<Output = ()> + Send + 'static) {
        let alarm = Alarm(Arc::clone(&self.is_wrong));
        self.clients.spawn(async move {
            let _alarm = alarm;
            client.await;
        });
    }

    /// So far; it need not be waited for until the end.
    pub(crate) fn is_right(&self) {
        assert!(!self.is_wrong.load(Ordering::Relaxed), "a client saw something wrong");
    }

    /// What has been judged so far.
    pub(crate) fn told(&self) -> String {
        let [.., entries, reads] = self.town.judge.progress()[..] else {
            return String::new();
        };
        let numbers = self.written();
        format!("{numbers} numbers written, {reads} read, {entries} times in the room")
    }

    /// How many numbers were acknowledged.
    pub(crate) fn written(&self) -> u64 {
        self.town.judge.progress()[..WRITERS].iter().sum()
    }

    /// Waits until every writer, and the room, and readers, have got on by this much.
    pub(crate) async fn goes_on(&self, by: u64) {
        let judge = &self.town.judge;
        let before = judge.progress();
        let gets_on = async {
            while judge.progress().iter().zip(&before).any(|(now, before)| *now < before + by) {
                self.is_right();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_so = timeout(PATIENCE, gets_on).await.is_ok();
        assert!(is_so, "nothing goes on: {before:?} before, {:?} now", judge.progress());
    }

    /// The longest time in which nobody was told that a write was made; counted anew from here.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.town.judge.longest_gap()
    }

    /// Lets everybody finish, and looks for what was acknowledged, at every member.
    pub(crate) async fn end(self, trio: &Trio) {
        self.end_at(trio, &trio.all().collect::<Vec<_>>()).await;
    }

    /// The same at these members.
    pub(crate) async fn end_at(mut self, trio: &Trio, members: &[usize]) {
        self.town.judge.end();
        let all = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("no client saw anything wrong");
            }
        };
        timeout(PATIENCE, all).await.expect("all clients come to an end");
        for member in members {
            clients::look(&self.town, &trio.client_url(*member)).await;
        }
    }
}
