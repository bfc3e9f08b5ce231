//! What clients do while things go wrong, and whether they were told the truth.
//!
//! Writers count up, each in its own key; readers look at what they wrote; lockers take turns in
//! one room. Judged: no acknowledged write is lost, no read is older than what was acknowledged
//! before it was asked for, nobody is in the room with another, and fences grow.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient};
use vez_client::{Client, Options};

use crate::trio::Trio;

const WRITERS: usize = 3;
const LOCKERS: usize = 3;
const TTL: Duration = Duration::from_secs(3);
/// Who has no answer after this asks another member: one that stands still says nothing for ever.
const DEADLINE: Duration = Duration::from_millis(500);
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Key {
    tried: AtomicU64,
    acknowledged: AtomicU64,
    revision: AtomicI64,
}

struct Seen {
    keys: [Key; WRITERS],
    reads: AtomicU64,
    inside: AtomicU32,
    fence: AtomicI64,
    entries: AtomicU64,
    /// When somebody was last told that a write was made, and the longest time without that.
    last: Mutex<(Instant, Duration)>,
    /// How long everybody rests after each answer.
    pace: Duration,
    /// A client saw something wrong, and has said what.
    is_wrong: AtomicBool,
    is_over: AtomicBool,
}

impl Seen {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    async fn rest(&self) {
        if !self.pace.is_zero() {
            tokio::time::sleep(self.pace).await;
        }
    }

    fn note_write(&self) {
        let mut last = self.last.lock().expect("nobody panicked");
        let gap = last.0.elapsed();
        *last = (Instant::now(), last.1.max(gap));
    }
}

/// Clients at work.
pub(crate) struct History {
    seen: Arc<Seen>,
    clients: JoinSet<()>,
}

impl History {
    /// As fast as they can.
    pub(crate) fn begin(trio: &Trio) -> Self {
        Self::begin_at(trio, Duration::ZERO)
    }

    /// Each rests this long after each answer.
    pub(crate) fn begin_at(trio: &Trio, pace: Duration) -> Self {
        let seen = Arc::new(Seen {
            keys: Default::default(),
            reads: AtomicU64::default(),
            inside: AtomicU32::default(),
            fence: AtomicI64::default(),
            entries: AtomicU64::default(),
            last: Mutex::new((Instant::now(), Duration::ZERO)),
            pace,
            is_wrong: AtomicBool::default(),
            is_over: AtomicBool::default(),
        });
        let mut clients = JoinSet::new();
        for client in 0..3 {
            let endpoints = trio.endpoints_from(client);
            clients.spawn(write(endpoints.clone(), client, Arc::clone(&seen)));
            clients.spawn(read(endpoints, client, Arc::clone(&seen)));
        }
        for locker in 0..LOCKERS {
            clients.spawn(enter(trio.endpoints_from(locker), Arc::clone(&seen)));
        }
        Self { seen, clients }
    }

    /// Waits until every writer, and the room, and readers, have got on by this much.
    pub(crate) async fn goes_on(&self, by: u64) {
        let seen = &self.seen;
        let now = || {
            let writers = seen.keys.iter().map(|key| key.acknowledged.load(Ordering::Relaxed));
            let others = [&seen.entries, &seen.reads].map(|count| count.load(Ordering::Relaxed));
            writers.chain(others).collect::<Vec<_>>()
        };
        let before = now();
        let gets_on = async {
            while now().iter().zip(&before).any(|(now, before)| *now < before + by) {
                self.is_right();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_so = timeout(PATIENCE, gets_on).await.is_ok();
        assert!(is_so, "nothing goes on: {before:?} before, {:?} now", now());
    }

    /// The longest time in which nobody was told that a write was made; counted anew from here.
    pub(crate) fn longest_gap(&self) -> Duration {
        let mut last = self.seen.last.lock().expect("nobody panicked");
        std::mem::take(&mut last.1)
    }

    /// So far; it need not be waited for until the end.
    pub(crate) fn is_right(&self) {
        assert!(!self.seen.is_wrong.load(Ordering::Relaxed), "a client saw something wrong");
    }

    /// What has been judged so far.
    pub(crate) fn told(&self) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let writes: u64 = self.seen.keys.iter().map(|key| count(&key.acknowledged)).sum();
        let (reads, entries) = (count(&self.seen.reads), count(&self.seen.entries));
        format!("{writes} numbers written, {reads} read, {entries} times in the room")
    }

    /// Lets everybody finish, and looks for what was acknowledged, at every member.
    pub(crate) async fn end(self, trio: &Trio) {
        self.end_at(trio, [0, 1, 2]).await;
    }

    /// The same at these members.
    pub(crate) async fn end_at(mut self, trio: &Trio, members: [usize; 3]) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        let all = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("no client saw anything wrong");
            }
        };
        timeout(PATIENCE, all).await.expect("all clients come to an end");
        for member in members {
            let mut keys = KvClient::new(trio.channel(member));
            for (writer, key) in self.seen.keys.iter().enumerate() {
                let (number, revision) = insist(&mut keys, writer).await;
                let acknowledged = key.acknowledged.load(Ordering::Relaxed);
                let tried = key.tried.load(Ordering::Relaxed);
                assert!(
                    (acknowledged..=tried).contains(&number),
                    "writer {writer} was told of {acknowledged}, tried {tried}, left {number}"
                );
                assert!(key.revision.load(Ordering::Relaxed) <= revision);
            }
        }
    }
}

/// Tells when a client ends as none should.
struct Alarm(Arc<Seen>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_wrong.store(true, Ordering::Relaxed);
        }
    }
}

fn channel(url: &str) -> Channel {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("an address");
    endpoint.connect_timeout(Duration::from_secs(1)).connect_lazy()
}

/// Ways to all members, of which the next is taken when one fails.
struct Ways {
    channels: Vec<Channel>,
    turn: usize,
}

impl Ways {
    fn new(endpoints: &[String]) -> Self {
        Self { channels: endpoints.iter().map(|url| channel(url)).collect(), turn: 0 }
    }

    fn keys(&self) -> KvClient<Channel> {
        KvClient::new(self.channels[self.turn % self.channels.len()].clone())
    }

    async fn move_on(&mut self) {
        self.turn += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn write(endpoints: Vec<String>, writer: usize, seen: Arc<Seen>) {
    let _alarm = Alarm(Arc::clone(&seen));
    let (mut ways, key) = (Ways::new(&endpoints), &seen.keys[writer]);
    let mut number = 0;
    while !seen.is_over() {
        number += 1;
        key.tried.store(number, Ordering::SeqCst);
        let put = PutRequest {
            key: format!("writer/{writer}").into(),
            value: number.to_string().into(),
            ..PutRequest::default()
        };
        match timeout(DEADLINE, ways.keys().put(put)).await {
            Ok(Ok(answer)) => {
                let revision = answer.into_inner().header.expect("a header").revision;
                let before = key.revision.swap(revision, Ordering::SeqCst);
                assert!(before < revision, "revisions grow: {before}, then {revision}");
                key.acknowledged.store(number, Ordering::SeqCst);
                seen.note_write();
                seen.rest().await;
            }
            _ => ways.move_on().await,
        }
    }
}

async fn get(keys: &mut KvClient<Channel>, writer: usize) -> Option<(u64, i64)> {
    let key = format!("writer/{writer}").into();
    let asked = keys.range(RangeRequest { key, ..RangeRequest::default() });
    let answer = timeout(DEADLINE, asked).await.ok()?.ok()?;
    let found = answer.into_inner().kvs.into_iter().next();
    Some(found.map_or((0, 0), |found| {
        let number = std::str::from_utf8(&found.value).expect("a text").parse();
        (number.expect("a number"), found.mod_revision)
    }))
}

async fn insist(keys: &mut KvClient<Channel>, writer: usize) -> (u64, i64) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(found) = get(keys, writer).await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a member does not answer");
}

async fn read(endpoints: Vec<String>, reader: usize, seen: Arc<Seen>) {
    let _alarm = Alarm(Arc::clone(&seen));
    let (mut ways, mut last) = (Ways::new(&endpoints), [0; WRITERS]);
    let mut turn = reader;
    while !seen.is_over() {
        turn += 1;
        let writer = turn % WRITERS;
        let key = &seen.keys[writer];
        let before = key.acknowledged.load(Ordering::SeqCst);
        match get(&mut ways.keys(), writer).await {
            Some((number, _)) => {
                let tried = key.tried.load(Ordering::SeqCst);
                assert!(before <= number, "{before} was acknowledged, and {number} read");
                assert!(number <= tried, "{number} was read, and {tried} written");
                assert!(last[writer] <= number, "{number} was read after {}", last[writer]);
                last[writer] = number;
                seen.reads.fetch_add(1, Ordering::Relaxed);
                seen.rest().await;
            }
            None => ways.move_on().await,
        }
    }
}

/// Takes turns with others; a session that is lost is replaced.
async fn enter(endpoints: Vec<String>, seen: Arc<Seen>) {
    let _alarm = Alarm(Arc::clone(&seen));
    let options = Options {
        connect_timeout: Duration::from_secs(1),
        request_timeout: 2 * DEADLINE,
        ..Options::default()
    };
    while !seen.is_over() {
        let pause = tokio::time::sleep(Duration::from_millis(10));
        let Ok(client) = Client::connect(endpoints.clone(), options.clone()).await else {
            pause.await;
            continue;
        };
        let Ok(session) = client.session(TTL).await else {
            pause.await;
            continue;
        };
        while !seen.is_over() && session.is_alive() {
            let Ok(guard) = session.lock("room").within(PATIENCE).await else { break };
            assert_eq!(seen.inside.fetch_add(1, Ordering::SeqCst), 0, "two are in the room");
            let before = seen.fence.swap(guard.fence(), Ordering::SeqCst);
            assert!(before < guard.fence(), "fences grow: {before}, then {}", guard.fence());
            // Now and then for so long that a lease which ends early is noticed.
            let stays = match seen.entries.load(Ordering::Relaxed) % 10 {
                9 => Duration::from_millis(300),
                _ => Duration::from_millis(1),
            };
            tokio::select! {
                () = tokio::time::sleep(stays) => {}
                _ = guard.lost() => {}
            }
            seen.inside.fetch_sub(1, Ordering::SeqCst);
            seen.entries.fetch_add(1, Ordering::Relaxed);
            if guard.release().await.is_err() {
                break;
            }
            seen.rest().await;
        }
    }
}
