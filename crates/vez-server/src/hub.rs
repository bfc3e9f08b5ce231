//! Who wants to hear of which keys.
//!
//! Whoever publishes holds the state for writing and whoever registers holds it for reading, so
//! that nothing falls between what a watcher read and what it hears next. Publishing never waits:
//! a watcher that does not keep up is let go, marked as late, and reads what it missed from the
//! history when it is ready. Watchers are woken when all that became durable together is published:
//! they then have it in one piece. A crowd is told no faster than telling it takes, so that what
//! happens meanwhile is told in the same words; a few are always told at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use vez_api::mvccpb::{Event, event::EventType};

use crate::spans::Spans;

pub(crate) use crate::spans::Span;

/// So many watches are a crowd.
const CROWD: usize = 100;
/// About what it takes to tell one watch, here and at the client.
const TELLING: Duration = Duration::from_micros(10);

/// The number of `events` in a `WatchResponse`.
const EVENTS_TAG: u32 = 11;

/// What happened at one revision to the keys of a span: one for all who hear of it.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) revision: i64,
    pub(crate) events: Vec<Event>,
    encoded: OnceLock<Bytes>,
}

impl Batch {
    fn new(revision: i64, events: Vec<Event>) -> Arc<Self> {
        Arc::new(Self { revision, events, encoded: OnceLock::new() })
    }

    /// As they stand in an answer to whoever does not want to know what was there before. Encoded
    /// once, however many hear of it.
    pub(crate) fn encoded(&self) -> &Bytes {
        self.encoded.get_or_init(|| {
            let mut bytes = BytesMut::new();
            for event in &self.events {
                let event = Event { prev_kv: None, ..event.clone() };
                prost::encoding::message::encode(EVENTS_TAG, &event, &mut bytes);
            }
            bytes.freeze()
        })
    }
}

/// What happened, for one who registered under a number of his own.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) tag: u64,
    pub(crate) batch: Arc<Batch>,
}

/// Where notices gather until whoever wants them takes them, all at once.
#[derive(Debug)]
pub(crate) struct Mailbox {
    content: Mutex<Content>,
    most: usize,
    came: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) notices: Vec<Notice>,
    /// There were more than there is room for: somebody was let go.
    pub(crate) was_full: bool,
}

impl Mailbox {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { content: Mutex::default(), most, came: Notify::new() })
    }

    /// Says whether it is the first there is; nothing if there was no room.
    fn put(&self, notice: Notice) -> Option<bool> {
        let mut content = self.content();
        if self.most <= content.notices.len() {
            content.was_full = true;
            return None;
        }
        content.notices.push(notice);
        Some(content.notices.len() == 1)
    }

    /// Returns when its owner was told that there is something in it.
    pub(crate) async fn filled(&self) {
        loop {
            self.came.notified().await;
            let content = self.content();
            if content.was_full || !content.notices.is_empty() {
                return;
            }
        }
    }

    pub(crate) fn take(&self) -> Content {
        std::mem::take(&mut *self.content())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watcher's end of a registration; dropping it does not end it, [`Hub::leave`] does.
#[derive(Debug)]
pub(crate) struct Registration {
    number: u64,
    span: Span,
    late: Arc<AtomicBool>,
    watches: Arc<AtomicUsize>,
}

impl Registration {
    /// How many watches are told what is heard here; one, if nobody says.
    pub(crate) fn set_watches(&self, watches: usize) {
        self.watches.store(watches, Ordering::Relaxed);
    }

    /// It was let go, because it did not keep up.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
struct Listener {
    number: u64,
    tag: u64,
    mailbox: Arc<Mailbox>,
    late: Arc<AtomicBool>,
    watches: Arc<AtomicUsize>,
}

impl Listener {
    fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Desk {
    last: u64,
    listeners: Spans<Vec<Listener>>,
    gone: BTreeMap<Bytes, Vec<oneshot::Sender<()>>>,
    /// Whose owner does not know yet that something came.
    filled: Vec<Arc<Mailbox>>,
    /// And who is told with the crowd, for so many watches.
    crowd: Vec<(Arc<Mailbox>, usize)>,
    /// When the crowd has had the time to hear what it was told last.
    crowd_hears: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Hub {
    desk: Mutex<Desk>,
    /// The crowd has to be told later.
    later: Notify,
}

impl Hub {
    /// What happens to these keys goes to `mailbox` from now on, under `tag`. Call with the state
    /// held.
    pub(crate) fn join(&self, span: Span, tag: u64, mailbox: &Arc<Mailbox>) -> Registration {
        let mut desk = self.desk();
        desk.last += 1;
        let (late, watches) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(1)));
        let registration = Registration { number: desk.last, span, late, watches };
        let listener = Listener {
            number: registration.number,
            tag,
            mailbox: Arc::clone(mailbox),
            late: Arc::clone(&registration.late),
            watches: Arc::clone(&registration.watches),
        };
        desk.listeners.entry(&registration.span).push(listener);
        registration
    }

    pub(crate) fn leave(&self, registration: &Registration) {
        let Registration { number, span, .. } = registration;
        self.desk().listeners.change(span, |listeners| {
            listeners.retain(|listener| listener.number != *number);
            !listeners.is_empty()
        });
    }

    pub(crate) fn watchers(&self) -> usize {
        self.desk().listeners.things().flatten().map(Listener::watches).sum()
    }

    /// Resolves when the key is deleted; to an error when it may have been, unseen. Call with the
    /// state held, and the key in it.
    pub(crate) fn when_gone(&self, key: &Bytes) -> oneshot::Receiver<()> {
        let (tell, heard) = oneshot::channel();
        let mut desk = self.desk();
        let waiting = desk.gone.entry(key.clone()).or_default();
        waiting.retain(|other| !other.is_closed());
        waiting.push(tell);
        heard
    }

    /// Tells everybody what happened at a revision. Call with the state held for writing.
    pub(crate) fn publish(&self, revision: i64, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let mut desk = self.desk();
        for event in events {
            if event.r#type() == EventType::Delete
                && let Some(waiting) = desk.gone.remove(key_of(event))
            {
                for tell in waiting {
                    // Who waited may have gone meanwhile.
                    tell.send(()).ok();
                }
            }
        }
        // Which of the events each span holds, by their places.
        let mut heard: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            desk.listeners.holding(key_of(event), |group| {
                heard.entry(group).or_default().push(place);
            });
        }
        let mut whole = None;
        for (group, places) in heard {
            let batch = if places.len() == events.len() {
                let whole = whole.get_or_insert_with(|| Batch::new(revision, events.to_vec()));
                Arc::clone(whole)
            } else {
                let events = places.into_iter().map(|place| events[place].clone());
                Batch::new(revision, events.collect())
            };
            let Desk { listeners, filled, crowd, .. } = &mut *desk;
            listeners.change_group(group, |listeners| {
                tell(listeners, &batch, filled, crowd);
                !listeners.is_empty()
            });
        }
    }

    /// The state was replaced by another, and nobody was told what happened in between: whoever
    /// listens is let go as if late, and whoever waits for a key looks again. Call with the state
    /// held for writing.
    pub(crate) fn begin_anew(&self) {
        let mut desk = self.desk();
        // They hear that nobody will tell them.
        desk.gone.clear();
        let listeners = std::mem::take(&mut desk.listeners);
        for listener in listeners.things().flatten() {
            listener.late.store(true, Ordering::Release);
            listener.mailbox.content().was_full = true;
            listener.mailbox.came.notify_one();
        }
    }

    /// Wakes all for whom something was published, or has the crowd woken when it is time.
    pub(crate) fn ring(&self) {
        let mut desk = self.desk();
        let mut filled = std::mem::take(&mut desk.filled);
        if !desk.crowd.is_empty() {
            let now = Instant::now();
            if desk.crowd_hears.is_none_or(|until| until <= now) {
                let (crowd, watches): (Vec<_>, Vec<usize>) = desk.crowd.drain(..).unzip();
                filled.extend(crowd);
                let many = u32::try_from(watches.iter().sum::<usize>()).unwrap_or(u32::MAX);
                desk.crowd_hears = Some(now + TELLING.saturating_mul(many));
            } else {
                self.later.notify_one();
            }
        }
        drop(desk);
        for mailbox in filled {
            mailbox.came.notify_one();
        }
    }

    /// Wakes the crowd that could not be woken at once; never ends.
    pub(crate) async fn ring_later(&self) {
        loop {
            self.later.notified().await;
            let until = self.desk().crowd_hears;
            if let Some(until) = until {
                tokio::time::sleep_until(until).await;
            }
            self.ring();
        }
    }

    /// A lock that is held while somebody panicked still guards whole values: every change above
    /// is one push, retain or remove.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(
    listeners: &mut Vec<Listener>,
    batch: &Arc<Batch>,
    filled: &mut Vec<Arc<Mailbox>>,
    crowd: &mut Vec<(Arc<Mailbox>, usize)>,
) {
    let is_crowd = CROWD <= listeners.iter().map(Listener::watches).sum::<usize>();
    listeners.retain(|listener| {
        let notice = Notice { tag: listener.tag, batch: Arc::clone(batch) };
        let room = listener.mailbox.put(notice);
        match room {
            // Whoever has something waiting is on the list already.
            Some(is_first) if is_crowd => {
                if is_first {
                    crowd.push((Arc::clone(&listener.mailbox), listener.watches()));
                }
            }
            Some(_) => filled.push(Arc::clone(&listener.mailbox)),
            None => listener.late.store(true, Ordering::Release),
        }
        room.is_some()
    });
}

fn key_of(event: &Event) -> &Bytes {
    static NONE: Bytes = Bytes::new();
    event.kv.as_ref().map_or(&NONE, |kv| &kv.key)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use vez_api::etcdserverpb::WatchResponse;
    use vez_api::mvccpb::KeyValue;

    use super::*;

    fn event(kind: EventType, key: &str) -> Event {
        let kv = KeyValue { key: key.to_owned().into(), ..KeyValue::default() };
        Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
    }

    fn heard(mailbox: &Mailbox) -> Vec<(u64, i64, usize)> {
        let told = |notice: &Notice| (notice.tag, notice.batch.revision, notice.batch.events.len());
        let mut all: Vec<_> = mailbox.take().notices.iter().map(told).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn each_hears_of_its_own_keys() {
        let hub = Hub::default();
        let mailbox = Mailbox::new(10);
        let one = Span { key: "a".into(), end: Bytes::new() };
        hub.join(one, 1, &mailbox);
        let all = hub.join(Span::prefix(b"a"), 2, &mailbox);
        hub.join(Span::prefix(b"b"), 3, &mailbox);
        hub.publish(7, &[event(EventType::Put, "a"), event(EventType::Put, "aa")]);
        assert_eq!(heard(&mailbox), [(1, 7, 1), (2, 7, 2)]);
        hub.leave(&all);
        hub.publish(8, &[event(EventType::Put, "aa")]);
        assert_eq!(heard(&mailbox), []);
    }

    #[test]
    fn who_does_not_keep_up_is_let_go_and_knows_it() {
        let hub = Hub::default();
        let mailbox = Mailbox::new(2);
        let registration = hub.join(Span::prefix(b"a"), 1, &mailbox);
        for revision in 1..=5 {
            hub.publish(revision, &[event(EventType::Put, "a")]);
        }
        assert!(registration.is_late());
        let Content { notices, was_full } = mailbox.take();
        let revisions: Vec<_> = notices.iter().map(|notice| notice.batch.revision).collect();
        assert_eq!((revisions, was_full), (vec![1, 2], true));
        hub.publish(6, &[event(EventType::Put, "a")]);
        assert_eq!(heard(&mailbox), [], "it must read the history first");
    }

    #[tokio::test]
    async fn a_mailbox_rings_when_something_comes_and_also_if_it_came_before() {
        let hub = Hub::default();
        let mailbox = Mailbox::new(10);
        hub.join(Span::prefix(b"a"), 1, &mailbox);
        for _ in 0..2 {
            hub.publish(1, &[event(EventType::Put, "a")]);
            hub.publish(2, &[event(EventType::Put, "a")]);
            hub.ring();
            mailbox.filled().await;
            assert_eq!(heard(&mailbox).len(), 2);
        }
        let told = async {
            tokio::task::yield_now().await;
            hub.publish(3, &[event(EventType::Put, "a")]);
            hub.ring();
        };
        tokio::join!(mailbox.filled(), told);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_told_no_faster_than_it_can_hear_and_a_few_at_once() {
        let hub = Hub::default();
        let (crowd, one) = (Mailbox::new(1000), Mailbox::new(1000));
        hub.join(Span::prefix(b"a"), 1, &crowd).set_watches(1000);
        hub.join(Span::prefix(b"b"), 1, &one);
        let publish = async {
            for revision in 1..=100 {
                hub.publish(revision, &[event(EventType::Put, "a"), event(EventType::Put, "b")]);
                hub.ring();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(TELLING * 1000).await;
        };
        let count = async |mailbox: &Mailbox, times: &mut u32, heard: &mut usize| {
            loop {
                mailbox.filled().await;
                *times += 1;
                *heard += mailbox.take().notices.len();
            }
        };
        let (mut crowd_times, mut crowd_heard, mut times, mut heard) = (0, 0, 0, 0);
        tokio::select! {
            () = publish => {}
            () = hub.ring_later() => {}
            () = count(&crowd, &mut crowd_times, &mut crowd_heard) => {}
            () = count(&one, &mut times, &mut heard) => {}
        }
        assert_eq!((heard, crowd_heard, times), (100, 100, 100));
        assert!((9..=12).contains(&crowd_times), "told {crowd_times} times in 100 ms");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_watches_many_keys_is_no_crowd_at_any_of_them() {
        let hub = Hub::default();
        let mailbox = Mailbox::new(1000);
        let key = |number: i64| format!("key {number}");
        for number in 0..1000 {
            hub.join(Span { key: key(number).into(), end: Bytes::new() }, 1, &mailbox);
        }
        assert_eq!(hub.watchers(), 1000);
        let began = Instant::now();
        for number in 0..1000 {
            hub.publish(number, &[event(EventType::Put, &key(number))]);
            hub.ring();
            mailbox.filled().await;
            assert_eq!(heard(&mailbox).len(), 1);
        }
        assert_eq!(began.elapsed(), Duration::ZERO, "each is told at once");
    }

    #[test]
    fn what_is_encoded_once_is_what_an_answer_says() {
        let before = Event { prev_kv: Some(KeyValue::default()), ..event(EventType::Put, "a") };
        let batch = Batch::new(5, vec![before, event(EventType::Delete, "b")]);
        let answer = WatchResponse::decode(batch.encoded().clone()).unwrap();
        let events = vec![event(EventType::Put, "a"), event(EventType::Delete, "b")];
        assert_eq!(answer, WatchResponse { events, ..WatchResponse::default() });
    }

    #[test]
    fn only_a_deletion_makes_a_key_gone() {
        let hub = Hub::default();
        let mut gone = hub.when_gone(&"a".into());
        hub.publish(2, &[event(EventType::Put, "a"), event(EventType::Delete, "b")]);
        assert!(gone.try_recv().is_err());
        hub.publish(3, &[event(EventType::Delete, "a")]);
        assert!(gone.try_recv().is_ok());
    }
}
