//! Who wants to hear of which keys.
//!
//! Whoever publishes holds the state for writing and whoever registers holds it for reading, so
//! that nothing falls between what a watcher read and what it hears next. Publishing never waits:
//! a watcher that does not keep up is let go, marked as late, and reads what it missed from the
//! history when it is ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vez_api::mvccpb::{Event, event::EventType};

use crate::state;

/// A key, or all keys from it up to an end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) key: Bytes,
    /// Empty for the one key; a zero byte for everything from it on.
    pub(crate) end: Bytes,
}

impl Span {
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Self { key: Bytes::copy_from_slice(prefix), end: end.into() };
            }
        }
        Self { key: Bytes::copy_from_slice(prefix), end: Bytes::from_static(b"\0") }
    }

    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        state::Span::new(&self.key, &self.end).contains(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !matches!(&self.end[..], [] | [0]) && self.end <= self.key
    }
}

/// What happened at one revision to the keys of one watch.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) watch: i64,
    pub(crate) revision: i64,
    pub(crate) events: Arc<[Event]>,
}

/// A watcher's end of a registration; dropping it does not end it, [`Hub::leave`] does.
#[derive(Debug)]
pub(crate) struct Registration {
    number: u64,
    span: Span,
    late: Arc<AtomicBool>,
}

impl Registration {
    /// It was let go, because it did not keep up.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
struct Listener {
    number: u64,
    watch: i64,
    ear: mpsc::Sender<Notice>,
    late: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Desk {
    last: u64,
    keys: BTreeMap<Bytes, Vec<Listener>>,
    spans: BTreeMap<Span, Vec<Listener>>,
    gone: BTreeMap<Bytes, Vec<oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Desk>);

impl Hub {
    /// What `watch` hears of goes to `ear` from now on. Call with the state held.
    pub(crate) fn join(&self, span: Span, watch: i64, ear: &mpsc::Sender<Notice>) -> Registration {
        let mut desk = self.desk();
        desk.last += 1;
        let late = Arc::new(AtomicBool::new(false));
        let number = desk.last;
        let listener = Listener { number, watch, ear: ear.clone(), late: Arc::clone(&late) };
        if span.end.is_empty() {
            desk.keys.entry(span.key.clone()).or_default().push(listener);
        } else {
            desk.spans.entry(span.clone()).or_default().push(listener);
        }
        Registration { number, span, late }
    }

    pub(crate) fn leave(&self, registration: &Registration) {
        let Registration { number, span, .. } = registration;
        let mut desk = self.desk();
        let mut rest = |listeners: &mut Vec<Listener>| {
            listeners.retain(|listener| listener.number != *number);
            listeners.is_empty()
        };
        if span.end.is_empty() {
            if desk.keys.get_mut(&span.key).is_some_and(&mut rest) {
                desk.keys.remove(&span.key);
            }
        } else if desk.spans.get_mut(span).is_some_and(&mut rest) {
            desk.spans.remove(span);
        }
    }

    pub(crate) fn watchers(&self) -> usize {
        let desk = self.desk();
        let keys = desk.keys.values().map(Vec::len).sum::<usize>();
        keys + desk.spans.values().map(Vec::len).sum::<usize>()
    }

    /// Resolves when the key is deleted. Call with the state held, and the key in it.
    pub(crate) fn when_gone(&self, key: &Bytes) -> oneshot::Receiver<()> {
        let (tell, heard) = oneshot::channel();
        let mut desk = self.desk();
        let waiting = desk.gone.entry(key.clone()).or_default();
        waiting.retain(|other| !other.is_closed());
        waiting.push(tell);
        heard
    }

    /// Tells of what one command did. Call with the state held.
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
        let Desk { keys, spans, .. } = &mut *desk;
        for event in events {
            if let Some(listeners) = keys.get_mut(key_of(event)) {
                tell(listeners, revision, std::slice::from_ref(event));
                if listeners.is_empty() {
                    keys.remove(key_of(event));
                }
            }
        }
        spans.retain(|span, listeners| {
            let heard: Vec<Event> =
                events.iter().filter(|event| span.holds(key_of(event))).cloned().collect();
            if !heard.is_empty() {
                tell(listeners, revision, &heard);
            }
            !listeners.is_empty()
        });
    }

    /// A lock that is held while somebody panicked still guards whole values: every change above
    /// is one push, retain or remove.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(listeners: &mut Vec<Listener>, revision: i64, events: &[Event]) {
    let events: Arc<[Event]> = events.into();
    listeners.retain(|listener| {
        let notice = Notice { watch: listener.watch, revision, events: Arc::clone(&events) };
        let heard = listener.ear.try_send(notice).is_ok();
        if !heard {
            listener.late.store(true, Ordering::Release);
        }
        heard
    });
}

fn key_of(event: &Event) -> &Bytes {
    static NONE: Bytes = Bytes::new();
    event.kv.as_ref().map_or(&NONE, |kv| &kv.key)
}

#[cfg(test)]
mod tests {
    use vez_api::mvccpb::KeyValue;

    use super::*;

    fn event(kind: EventType, key: &str) -> Event {
        let kv = KeyValue { key: key.to_owned().into(), ..KeyValue::default() };
        Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
    }

    fn heard(ear: &mut mpsc::Receiver<Notice>) -> Vec<(i64, i64, usize)> {
        let notices = std::iter::from_fn(|| ear.try_recv().ok());
        notices.map(|notice| (notice.watch, notice.revision, notice.events.len())).collect()
    }

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        assert_eq!(&Span::prefix(b"a/").end[..], b"a0");
        assert_eq!(&Span::prefix(b"a\xff").end[..], b"b");
        assert_eq!(&Span::prefix(b"\xff\xff").end[..], b"\0");
        assert!(Span::prefix(b"\xff").holds(b"\xff\xff\xff"));
        assert!(!Span::prefix(b"a/").holds(b"a0"));
    }

    #[test]
    fn each_watch_hears_of_its_own_keys() {
        let hub = Hub::default();
        let (tell, mut ear) = mpsc::channel(10);
        let one = Span { key: "a".into(), end: Bytes::new() };
        hub.join(one, 1, &tell);
        let all = hub.join(Span::prefix(b"a"), 2, &tell);
        hub.join(Span::prefix(b"b"), 3, &tell);
        hub.publish(7, &[event(EventType::Put, "a"), event(EventType::Put, "aa")]);
        assert_eq!(heard(&mut ear), [(1, 7, 1), (2, 7, 2)]);
        hub.leave(&all);
        hub.publish(8, &[event(EventType::Put, "aa")]);
        assert_eq!(heard(&mut ear), []);
    }

    #[test]
    fn who_does_not_keep_up_is_let_go_and_knows_it() {
        let hub = Hub::default();
        let (tell, mut ear) = mpsc::channel(2);
        let registration = hub.join(Span::prefix(b"a"), 1, &tell);
        for revision in 1..=5 {
            hub.publish(revision, &[event(EventType::Put, "a")]);
        }
        assert!(registration.is_late());
        assert_eq!(heard(&mut ear), [(1, 1, 1), (1, 2, 1)]);
        hub.publish(6, &[event(EventType::Put, "a")]);
        assert_eq!(heard(&mut ear), [], "it must read the history first");
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
