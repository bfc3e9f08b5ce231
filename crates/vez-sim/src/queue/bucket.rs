//! Items on their way, in the order pushed.
//!
//! A bucket is made of chunks, which its owner uses again as soon as they have been walked.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::mem;

/// A chunk is full at this length: it fits the nearest cache, and is quickly sorted.
pub(super) const CHUNK: usize = 512;

#[derive(Clone, Debug)]
pub struct Item<T> {
    /// Orders items of one instant: the receiver above, the sender below.
    pub key: u64,
    /// Orders items of one instant and key.
    pub seq: u64,
    pub what: T,
}

pub(super) type Chunk<T> = Vec<Item<T>>;

/// Items in the order pushed, and how far that is from the order they come out in.
#[derive(Debug)]
pub(super) struct Bucket<T> {
    pub(super) full: VecDeque<Chunk<T>>,
    pub(super) tail: Chunk<T>,
    /// The order of the last.
    last: u128,
    /// How many come before the one pushed before them; and the chunk, and the place in it, of the
    /// last of these.
    pub(super) breaks: u32,
    turn: (usize, usize),
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        Self { full: VecDeque::new(), tail: Vec::new(), last: 0, breaks: 0, turn: (0, 0) }
    }
}

impl<T> Bucket<T> {
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.tail.len() < self.tail.capacity()
    }

    #[inline]
    pub(super) fn push(&mut self, item: Item<T>) {
        let order = item.order();
        if order < self.last {
            self.breaks += 1;
            self.turn = (self.full.len(), self.tail.len());
        }
        self.last = order;
        self.tail.push(item);
    }

    /// Pushes, and makes room for it where there is none.
    pub(super) fn push_with_room(&mut self, item: Item<T>, chunks: &mut Vec<Chunk<T>>) {
        if self.tail.capacity() == 0 {
            self.tail = chunks.pop().unwrap_or_default();
        } else if !self.has_room() && CHUNK <= self.tail.len() {
            self.full.push_back(mem::replace(&mut self.tail, spare_chunk(chunks)));
        }
        self.push(item);
    }

    pub(super) fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.tail.len()
    }

    fn items(&self) -> impl Iterator<Item = &Item<T>> {
        self.full.iter().chain([&self.tail]).flatten()
    }

    /// Takes the first chunk; `None` once the bucket is empty.
    pub(super) fn first_chunk(&mut self) -> Option<Chunk<T>> {
        let full = self.full.pop_front();
        full.or_else(|| (!self.tail.is_empty()).then(|| mem::take(&mut self.tail)))
    }

    /// The first and the last in order.
    pub(super) fn range(&self) -> (u128, u128) {
        let orders = self.items().map(Item::order);
        orders.fold((u128::MAX, 0), |(low, high), order| (low.min(order), high.max(order)))
    }

    /// Whether walking round from the one break gives the items in order.
    pub(super) fn is_rotated(&self) -> bool {
        let first = self.full.front().unwrap_or(&self.tail).first();
        self.breaks == 1 && first.is_some_and(|first| self.last < first.order())
    }

    /// Takes the items of a bucket that is one chunk, in order, the first at the end.
    pub(super) fn take_tail(&mut self) -> Chunk<T> {
        if self.breaks == 0 {
            self.tail.reverse();
        } else if self.is_rotated() {
            let (late, early) = self.tail.split_at_mut(self.turn.1);
            late.reverse();
            early.reverse();
        } else {
            self.tail.sort_unstable_by_key(|item| Reverse(item.order()));
        }
        self.forget_order();
        mem::take(&mut self.tail)
    }

    /// The bucket is empty again.
    pub(super) fn forget_order(&mut self) {
        (self.last, self.breaks) = (0, 0);
    }

    /// Puts the items of a rotated bucket in order.
    pub(super) fn rotate(&mut self, chunks: &mut Vec<Chunk<T>>) {
        let (chunk, place) = self.turn;
        let mut end = spare_chunk(chunks);
        self.full.push_back(mem::take(&mut self.tail));
        self.full.rotate_left(chunk);
        end.extend(self.full[0].drain(..place));
        self.tail = end;
        if self.tail.is_empty()
            && let Some(last) = self.full.pop_back()
        {
            chunks.push(mem::replace(&mut self.tail, last));
        }
        self.breaks = 0;
    }
}

fn spare_chunk<T>(chunks: &mut Vec<Chunk<T>>) -> Chunk<T> {
    chunks.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK))
}

impl<T> Item<T> {
    #[inline]
    pub(super) fn order(&self) -> u128 {
        u128::from(self.key) << 64 | u128::from(self.seq)
    }
}
