//! Which keys a request means, as etcd writes it in a key and a range end.

use std::ops::Bound;

pub(super) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span<'a> {
    One(&'a [u8]),
    From(&'a [u8]),
    /// Up to and without the second.
    Between(&'a [u8], &'a [u8]),
}

impl<'a> Span<'a> {
    /// No end means the key alone, an end of one zero byte every key from there on.
    pub fn new(key: &'a [u8], range_end: &'a [u8]) -> Self {
        match range_end {
            [] => Self::One(key),
            [0] => Self::From(key),
            end => Self::Between(key, end),
        }
    }

    pub fn contains(self, key: &[u8]) -> bool {
        match self {
            Self::One(one) => key == one,
            Self::From(start) => key >= start,
            Self::Between(start, end) => key >= start && key < end,
        }
    }

    /// Bounds that a `BTreeMap` takes, or none where it would panic: an end before its start is
    /// not an error in etcd, there is just nothing between them.
    pub(super) fn bounds(self) -> Option<Bounds<'a>> {
        match self {
            Self::One(key) => Some((Bound::Included(key), Bound::Included(key))),
            Self::From(start) => Some((Bound::Included(start), Bound::Unbounded)),
            Self::Between(start, end) if start < end => {
                Some((Bound::Included(start), Bound::Excluded(end)))
            }
            Self::Between(..) => None,
        }
    }
}
