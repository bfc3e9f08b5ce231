//! The fields that a block can name by a number: those that everybody knows, and those that this
//! connection has said lately.

use std::collections::VecDeque;

/// What an entry counts for beyond its name and its value.
const OVERHEAD: usize = 32;

#[derive(Debug)]
struct Entry {
    /// Where in the store the name begins, where it ends and the value begins, and where that ends.
    start: usize,
    middle: usize,
    end: usize,
}

impl Entry {
    fn size(&self) -> usize {
        self.end - self.start + OVERHEAD
    }
}

/// Both tables, under one numbering.
#[derive(Debug)]
pub(super) struct Table {
    /// Newest first, as they are numbered.
    entries: VecDeque<Entry>,
    /// Names and values, oldest first. What was evicted stays at the front until there is as much
    /// of it as the table can hold: moving the rest then costs no more than adding it did.
    store: Vec<u8>,
    size: usize,
    /// What the other side wants to use, and what it may.
    most: usize,
    limit: usize,
}

impl Table {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), store: Vec::new(), size: 0, most: limit, limit }
    }

    /// The name and the value under this number.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(index - STATIC.len())?;
        Some((&self.store[entry.start..entry.middle], &self.store[entry.middle..entry.end]))
    }

    /// Makes this the newest entry, in place of as many of the oldest as it takes; an entry larger
    /// than the table only evicts.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let length = name.len() + value.len();
        let Some(room) = self.most.checked_sub(length + OVERHEAD) else {
            return self.shrink(0);
        };
        self.shrink(room);
        if self.store.len() + length > 2 * self.limit {
            self.forget_evicted();
        }
        let start = self.store.len();
        self.store.extend_from_slice(name);
        self.store.extend_from_slice(value);
        let entry = Entry { start, middle: start + name.len(), end: start + length };
        self.size += entry.size();
        self.entries.push_front(entry);
    }

    /// Keeps the table at `most` from now on. Nothing if that is more than it may have.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        if most > self.limit {
            return None;
        }
        self.most = most;
        self.shrink(most);
        Some(())
    }

    /// Evicts the oldest until there is no more than this.
    fn shrink(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }

    fn forget_evicted(&mut self) {
        let evicted = self.entries.back().map_or(self.store.len(), |oldest| oldest.start);
        self.store.drain(..evicted);
        for entry in &mut self.entries {
            entry.start -= evicted;
            entry.middle -= evicted;
            entry.end -= evicted;
        }
    }

    /// What the entries count for together.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// RFC 7541, appendix A.
static STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{STATIC, Table};

    fn text(table: &Table, index: usize) -> Option<(&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        table.get(index).map(|(name, value)| (text(name), text(value)))
    }

    #[test]
    fn the_first_numbers_are_those_of_appendix_a() {
        let table = Table::new(4096);
        for (index, field) in [
            (1, (":authority", "")),
            (3, (":method", "POST")),
            (8, (":status", "200")),
            (16, ("accept-encoding", "gzip, deflate")),
            (31, ("content-type", "")),
            (58, ("user-agent", "")),
            (61, ("www-authenticate", "")),
        ] {
            assert_eq!(text(&table, index), Some(field));
        }
    }

    #[test]
    fn no_number_is_zero_or_past_the_tables() {
        let mut table = Table::new(4096);
        assert_eq!(text(&table, 0), None);
        assert_eq!(text(&table, 62), None);
        table.insert(b"name", b"value");
        assert_eq!(text(&table, 62), Some(("name", "value")));
        for past in [0, 63, 64, usize::MAX] {
            assert_eq!(text(&table, past), None);
        }
    }

    #[test]
    fn the_newest_has_the_lowest_number() {
        let mut table = Table::new(4096);
        table.insert(b"older", b"1");
        table.insert(b"newer", b"2");
        assert_eq!(text(&table, 62), Some(("newer", "2")));
        assert_eq!(text(&table, 63), Some(("older", "1")));
        assert_eq!(table.size(), 2 * (5 + 1 + 32));
    }

    #[test]
    fn an_entry_that_just_fits_evicts_all_others_and_stays() {
        let mut table = Table::new(100);
        table.insert(b"a", b"b");
        table.insert(&[b'x'; 60], &[b'y'; 8]);
        assert_eq!(table.size(), 100);
        assert_eq!(table.get(62), Some((&[b'x'; 60][..], &[b'y'; 8][..])));
        assert_eq!(table.get(63), None);
    }

    #[test]
    fn an_entry_that_does_not_fit_empties_the_table() {
        let mut table = Table::new(100);
        table.insert(b"a", b"b");
        table.insert(&[b'x'; 60], &[b'y'; 9]);
        assert_eq!((table.size(), table.get(62)), (0, None));
        table.insert(b"c", b"d");
        assert_eq!(text(&table, 62), Some(("c", "d")));
    }

    #[test]
    fn a_smaller_table_evicts_the_oldest_and_a_larger_one_brings_nothing_back() {
        let mut table = Table::new(200);
        for name in [b"a", b"b", b"c"] {
            table.insert(name, b"");
        }
        assert_eq!(table.resize(98), Some(()));
        assert_eq!(table.size(), 66);
        assert_eq!(table.resize(200), Some(()));
        assert_eq!(text(&table, 62), Some(("c", "")));
        assert_eq!(text(&table, 63), Some(("b", "")));
        assert_eq!(text(&table, 64), None);
        assert_eq!(table.resize(201), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn whatever_is_done_it_holds_what_a_plain_list_would(
            limit in 0..400_usize,
            steps in vec((0..12_u8, 0..400_usize, vec(any::<u8>(), 0..40), 0..60_usize), 0..200),
        ) {
            let mut table = Table::new(limit);
            let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut most = limit;
            for (kind, wanted, name, length) in steps {
                if kind == 0 {
                    prop_assert_eq!(table.resize(wanted).is_some(), wanted <= limit);
                    most = if wanted <= limit { wanted } else { most };
                } else {
                    let value = vec![kind; length];
                    table.insert(&name, &value);
                    list.insert(0, (name, value));
                }
                let size = |list: &[(Vec<u8>, Vec<u8>)]| -> usize {
                    list.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
                };
                while size(&list) > most {
                    list.pop();
                }
                prop_assert_eq!(table.size(), size(&list));
                let newest = STATIC.len() + 1;
                for (at, (name, value)) in list.iter().enumerate() {
                    prop_assert_eq!(table.get(newest + at), Some((&name[..], &value[..])));
                }
                prop_assert_eq!(table.get(newest + list.len()), None);
                prop_assert!(table.store.len() <= 2 * limit);
            }
        }
    }
}
