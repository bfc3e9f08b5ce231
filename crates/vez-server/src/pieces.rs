//! A long list that grows at its end and is forgotten from its beginning.
//!
//! **Invariant:** no single step of it takes long, however long the list is: it lies in pieces, so
//! that it never moves, and its copies share them. What was forgotten does not lie there still.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// So many things are in each piece but the first and the last, which have fewer, perhaps.
const PIECE: usize = 1_024;

#[derive(Clone, Debug)]
pub(crate) struct Pieces<T> {
    /// None is empty.
    row: VecDeque<Arc<Vec<T>>>,
    len: usize,
}

/// What was forgotten, to be dropped; or, if it may be much, by who has the time for it.
#[derive(Debug)]
pub(crate) struct Forgotten<T>(Vec<Arc<Vec<T>>>);

impl<T> Forgotten<T> {
    /// Little by little: whoever else has something to do on this processor goes first.
    pub(crate) fn free_at_leisure(self) {
        for piece in self.0 {
            drop(piece);
            std::thread::yield_now();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { row: VecDeque::new(), len: 0 }
    }
}

impl<T: Clone> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut pieces = Self::default();
        things.into_iter().for_each(|thing| pieces.push(thing));
        pieces
    }
}

impl<T> Pieces<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.row.back()?.last()
    }

    /// In which piece a place is, and where there.
    fn find(&self, place: usize) -> (usize, usize) {
        let first = self.row.front().map_or(0, |first| first.len());
        let beyond = place.checked_sub(first);
        beyond.map_or((0, place), |beyond| (1 + beyond / PIECE, beyond % PIECE))
    }

    fn get(&self, place: usize) -> &T {
        let (piece, place) = self.find(place);
        &self.row[piece][place]
    }

    /// Those at these places, in their order.
    pub(crate) fn range(&self, places: Range<usize>) -> impl Iterator<Item = &T> {
        let (piece, place) = self.find(places.start);
        let from = self.row.iter().skip(piece).flat_map(|piece| piece.iter()).skip(place);
        from.take(places.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.range(0..self.len)
    }

    /// How many come before the first for which this does not hold; it holds for all before.
    pub(crate) fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if holds(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl<T: Clone> Pieces<T> {
    pub(crate) fn push(&mut self, thing: T) {
        match self.row.back_mut().filter(|last| last.len() < PIECE) {
            Some(last) => Arc::make_mut(last).push(thing),
            None => self.row.push_back(Arc::new(vec![thing])),
        }
        self.len += 1;
    }

    pub(crate) fn push_front(&mut self, thing: T) {
        match self.row.front_mut().filter(|first| first.len() < PIECE) {
            Some(first) => Arc::make_mut(first).insert(0, thing),
            None => self.row.push_front(Arc::new(vec![thing])),
        }
        self.len += 1;
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> &mut T {
        let (piece, place) = self.find(place);
        &mut Arc::make_mut(&mut self.row[piece])[place]
    }

    pub(crate) fn forget_first(&mut self, many: usize) -> Forgotten<T> {
        let mut left = many.min(self.len);
        self.len -= left;
        let mut forgotten = Vec::new();
        while let Some(first) = self.row.pop_front_if(|first| first.len() <= left) {
            left -= first.len();
            forgotten.push(first);
        }
        if let Some(first) = self.row.front_mut().filter(|_| 0 < left) {
            Arc::make_mut(first).drain(..left);
        }
        Forgotten(forgotten)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        while let Some(last) = self.row.back_mut()
            && len < self.len
        {
            let surplus = self.len - len;
            match last.len().checked_sub(surplus).filter(|left| 0 < *left) {
                Some(left) => {
                    Arc::make_mut(last).truncate(left);
                    self.len = len;
                }
                None => {
                    self.len -= last.len();
                    self.row.pop_back();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        PushFront,
        Forget(usize),
        Truncate(usize),
        Set(usize),
        Copy,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1..3 * PIECE).prop_map(Step::Push),
            2 => Just(Step::PushFront),
            3 => (0..2 * PIECE).prop_map(Step::Forget),
            1 => (0..6 * PIECE).prop_map(Step::Truncate),
            2 => (0..6 * PIECE).prop_map(Step::Set),
            1 => Just(Step::Copy),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn it_is_a_list_like_any_other(steps in proptest::collection::vec(step(), 0..30)) {
            let (mut pieces, mut model) = (Pieces::default(), VecDeque::new());
            let (mut copies, mut number) = (Vec::new(), 0);
            for step in steps {
                number += 1_000_000;
                match step {
                    Step::Push(many) => for thing in number..number + many {
                        pieces.push(thing);
                        model.push_back(thing);
                    },
                    Step::PushFront => {
                        pieces.push_front(number);
                        model.push_front(number);
                    }
                    Step::Forget(many) => {
                        pieces.forget_first(many).free_at_leisure();
                        model.drain(..many.min(model.len()));
                    }
                    Step::Truncate(len) => {
                        pieces.truncate(len);
                        model.truncate(len);
                    }
                    Step::Set(place) => if let Some(thing) = model.get_mut(place) {
                        *thing = number;
                        *pieces.get_mut(place) = number;
                    },
                    Step::Copy => copies.push((pieces.clone(), model.clone())),
                }
                prop_assert_eq!(pieces.last(), model.back());
                copies.push((pieces.clone(), model.clone()));
                // What is done to a copy is not done to the others.
                for (pieces, model) in &copies {
                    prop_assert_eq!(pieces.len(), model.len());
                    prop_assert_eq!(pieces.is_empty(), model.is_empty());
                    prop_assert!(pieces.iter().eq(model));
                    let (start, end) = (model.len() / 3, model.len() / 2);
                    prop_assert!(pieces.range(start..end).eq(model.range(start..end)));
                }
                if copies.len() % 2 == 0 { copies.clear(); }
            }
        }

        #[test]
        fn where_something_stops_to_hold_is_found(
            len in 0..4 * PIECE,
            skipped in 0..PIECE,
            at in 0..4 * PIECE,
        ) {
            let mut pieces: Pieces<usize> = (0..skipped + len).collect();
            pieces.forget_first(skipped).free_at_leisure();
            prop_assert_eq!(pieces.partition_point(|thing| *thing < skipped + at), at.min(len));
        }
    }

    #[test]
    fn what_is_forgotten_does_not_lie_there_still() {
        let mut pieces: Pieces<Arc<()>> = Pieces::default();
        let thing = Arc::new(());
        (0..3 * PIECE).for_each(|_| pieces.push(Arc::clone(&thing)));
        assert!(pieces.forget_first(PIECE - 1).is_empty());
        assert_eq!((pieces.len(), Arc::strong_count(&thing)), (2 * PIECE + 1, 2 + 2 * PIECE));
        pieces.forget_first(PIECE + 1).free_at_leisure();
        assert_eq!((pieces.len(), Arc::strong_count(&thing)), (PIECE, 1 + PIECE));
    }
}
