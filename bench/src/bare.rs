//! Loops written by hand that do nothing but pass messages: no faults, no promises, no counting by
//! kind. What a simulator is held against.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vez_core::{NodeId, Time};
use vez_sim::Queue;

use crate::textbook::Candidacy;

/// How a bare loop keeps what is in flight.
pub(crate) trait Pending<M>: Default {
    /// `key` is the receiver, then the sender; `seq` counts what was sent.
    fn push(&mut self, at: u64, key: u64, seq: u64, message: M);
    /// The next by time, key and seq: when, whom and what.
    fn pop(&mut self) -> Option<(u64, u64, M)>;
}

/// The standard library's priority queue.
#[derive(Debug)]
pub(crate) struct Heap<M: Ord>(BinaryHeap<Reverse<(u64, u64, u64, M)>>);

impl<M: Ord> Default for Heap<M> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<M: Ord> Pending<M> for Heap<M> {
    fn push(&mut self, at: u64, key: u64, seq: u64, message: M) {
        self.0.push(Reverse((at, key, seq, message)));
    }

    fn pop(&mut self) -> Option<(u64, u64, M)> {
        self.0.pop().map(|Reverse((at, key, _, message))| (at, key, message))
    }
}

/// The simulator's own queue.
#[derive(Debug)]
pub(crate) struct Wheel<M> {
    queue: Queue<M>,
    now: Time,
}

impl<M> Default for Wheel<M> {
    fn default() -> Self {
        Self { queue: Queue::default(), now: Time::ZERO }
    }
}

impl<M> Pending<M> for Wheel<M> {
    #[inline]
    fn push(&mut self, at: u64, key: u64, seq: u64, message: M) {
        self.queue.push(Time::from_micros(at), key, seq, message);
    }

    #[inline]
    fn pop(&mut self) -> Option<(u64, u64, M)> {
        loop {
            if self.queue.is_due(self.now) {
                let item = self.queue.take();
                return Some((self.now.as_micros(), item.key, item.what));
            }
            self.now = self.queue.next_time()?;
        }
    }
}

/// Two lists, this tick's and the next's, emptied in the order they were filled. Fits delays that
/// are all the same, and breaks the order within a tick: a floor, not a queue.
#[derive(Debug)]
pub(crate) struct Buckets<M> {
    now: u64,
    current: std::vec::IntoIter<(u64, M)>,
    next: Vec<(u64, M)>,
}

impl<M> Default for Buckets<M> {
    fn default() -> Self {
        Self { now: 0, current: Vec::new().into_iter(), next: Vec::new() }
    }
}

impl<M> Pending<M> for Buckets<M> {
    #[inline]
    fn push(&mut self, _at: u64, key: u64, _seq: u64, message: M) {
        self.next.push((key, message));
    }

    #[inline]
    fn pop(&mut self) -> Option<(u64, u64, M)> {
        if self.current.len() == 0 {
            self.current = std::mem::take(&mut self.next).into_iter();
            self.now += DELAY;
        }
        self.current.next().map(|(key, message)| (self.now, key, message))
    }
}

/// Every message takes one millisecond, as in the reference schedule.
const DELAY: u64 = 1_000;

pub(crate) fn key(to: u32, from: u32) -> u64 {
    u64::from(to) << 32 | u64::from(from)
}

/// Chang–Roberts with everyone starting: a candidacy travels on until it meets a larger one's
/// owner, the largest comes home, and its owner tells all. Returns the messages sent.
pub(crate) fn ring<Q: Pending<Candidacy>>(uids: &[u64]) -> u64 {
    let n = uids.len() as u32;
    let next = |node: u32| if node + 1 == n { 0 } else { node + 1 };
    let mut leaders = vec![None; uids.len()];
    let mut pending = Q::default();
    let mut sent = 0;
    for (node, &uid) in (0..).zip(uids) {
        sent += 1;
        pending.push(DELAY, key(next(node), node), sent, Candidacy::Election { uid });
    }
    while let Some((at, key_of, message)) = pending.pop() {
        let to = (key_of >> 32) as u32;
        let forward = match message {
            Candidacy::Election { uid } if uid > uids[to as usize] => message,
            Candidacy::Election { uid } if uid == uids[to as usize] => {
                leaders[to as usize] = Some(NodeId(to));
                Candidacy::Elected { leader: NodeId(to) }
            }
            Candidacy::Election { .. } => continue,
            Candidacy::Elected { leader } if leader.0 == to => continue,
            Candidacy::Elected { leader } => {
                leaders[to as usize] = Some(leader);
                message
            }
        };
        sent += 1;
        pending.push(at + DELAY, key(next(to), to), sent, forward);
    }
    assert!(leaders.iter().all(|&leader| leader.is_some() && leader == leaders[0]));
    sent
}

/// Everyone asks everyone and everyone answers, as when all want in at once. Returns the messages
/// sent.
pub(crate) fn flood<Q: Pending<Question>>(n: u32) -> u64 {
    let mut answers = vec![0; n as usize];
    let mut pending = Q::default();
    let mut sent = 0;
    for from in 0..n {
        for to in (0..n).filter(|&to| to != from) {
            sent += 1;
            let question = Question::Request { stamp: 1 };
            pending.push(DELAY, key(to, from), sent, question);
        }
    }
    while let Some((at, key_of, message)) = pending.pop() {
        let (to, from) = ((key_of >> 32) as u32, key_of as u32);
        match message {
            Question::Request { .. } => {
                sent += 1;
                pending.push(at + DELAY, key(from, to), sent, Question::Reply);
            }
            Question::Reply => answers[to as usize] += 1,
        }
    }
    assert!(answers.iter().all(|&count| count == n - 1));
    sent
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Request { stamp: u64 },
    Reply,
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Heap, Wheel, flood, ring};
    use crate::ours;

    #[test]
    fn every_bare_loop_passes_the_messages_the_simulator_passes() {
        for n in [2, 3, 50] {
            let uids = ours::shuffled(n);
            let (topology, plan) = (ours::ring_of(n), ours::all_start());
            let expected = ours::ring(&topology, &plan).messages.total;
            assert_eq!(ours::shipped_ring(&topology, &plan).messages.total, expected);
            assert_eq!(ring::<Heap<_>>(&uids), expected);
            assert_eq!(ring::<Wheel<_>>(&uids), expected);
            assert_eq!(ring::<Buckets<_>>(&uids), expected);
            let expected = ours::flood(n).messages.total;
            assert_eq!(flood::<Heap<_>>(n), expected);
            assert_eq!(flood::<Wheel<_>>(n), expected);
            assert_eq!(flood::<Buckets<_>>(n), expected);
        }
    }
}
