//! What a journal promises, on a real directory: power failures are made by cutting its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use vez_journal::{Error, Journal, Opened};

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vez-journal-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> (Journal, Opened) {
        Journal::open(&self.0).unwrap()
    }

    /// The newest segment, with few of the zeros that follow.
    fn newest_bytes(&self) -> Vec<u8> {
        let mut bytes = fs::read(files(&self.0).pop().unwrap()).unwrap();
        bytes.truncate(4096);
        bytes
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|at| at.unwrap().path()).collect();
    files.sort();
    files
}

fn texts(opened: &Opened) -> Vec<String> {
    let text = |found: &vez_journal::Found| String::from_utf8(found.record.clone()).unwrap();
    opened.records.iter().map(text).collect()
}

/// What is in a journal whose newest segment holds these bytes.
fn with(scratch: &Scratch, bytes: &[u8]) -> Result<Opened, Error> {
    let path = scratch.0.join("0000000000000001");
    fs::write(path, bytes).unwrap();
    Journal::open(&scratch.0).map(|(_, opened)| opened)
}

/// Where the zeros begin.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn what_was_appended_comes_back_in_order() {
    let scratch = Scratch::new();
    let (mut journal, opened) = scratch.open();
    assert!(opened.records.is_empty());
    journal.append(&["one", "two"]).unwrap();
    journal.append(&[""]).unwrap();
    journal.append(&["three"]).unwrap();
    // Not closed, as a crash leaves it.
    drop(journal);
    let (mut journal, opened) = scratch.open();
    assert_eq!(
        (texts(&opened), opened.cut),
        (vec!["one".into(), "two".into(), String::new(), "three".into()], 0)
    );
    journal.append(&["four"]).unwrap();
    journal.close().unwrap();
    let (_, opened) = scratch.open();
    assert_eq!(texts(&opened).last().unwrap(), "four");
    assert_eq!((opened.records.len(), opened.cut), (5, 0));
}

#[test]
fn a_batch_is_there_whole_or_not_at_all_wherever_it_is_cut() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    journal.append(&["before"]).unwrap();
    let base = scratch.newest_bytes();
    let long = "x".repeat(500);
    journal.append(&["a", &long, "b", &long]).unwrap();
    let whole = scratch.newest_bytes();
    drop(journal);
    let changed: Vec<_> = (0..whole.len()).filter(|at| whole[*at] != base[*at]).collect();
    let (start, end) = (changed[0], *changed.last().unwrap());
    let check = |bytes: &[u8]| {
        let opened = with(&scratch, bytes).unwrap();
        let records = opened.records.len();
        assert!(records == 1 || (records == 5 && bytes == whole), "{records}");
        assert_eq!(0 < opened.cut, records == 1 && bytes != base);
    };
    for cut in start..=end + 1 {
        check(&[&whole[..cut], &base[cut..]].concat());
    }
    check(&base);
    // Sectors come to the disk in any order: each of them missing, and each of them alone.
    for sector in start / 512..=end / 512 {
        let part = sector * 512..(sector * 512 + 512).min(whole.len());
        let (mut missing, mut alone) = (whole.clone(), base.clone());
        missing[part.clone()].copy_from_slice(&base[part.clone()]);
        alone[part.clone()].copy_from_slice(&whole[part]);
        check(&missing);
        check(&alone);
    }
    // The file may also not have grown yet.
    for length in start..=end {
        assert_eq!(with(&scratch, &whole[..length]).unwrap().records.len(), 1);
    }
}

#[test]
fn what_was_left_of_a_torn_batch_is_gone_when_the_next_is_shorter() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    journal.append(&["before"]).unwrap();
    // Longer than what is written ahead.
    journal.append(&["a", &"frame ".repeat(500_000), "b"]).unwrap();
    drop(journal);
    let mut bytes = fs::read(&files(&scratch.0)[0]).unwrap();
    let last = written(&bytes) - 1;
    bytes[last] ^= 1;
    assert!(3_000_000 < with(&scratch, &bytes).unwrap().cut);
    let (mut journal, _) = scratch.open();
    journal.append(&["after"]).unwrap();
    drop(journal);
    let (_, opened) = scratch.open();
    assert_eq!((texts(&opened), opened.cut), (vec!["before".into(), "after".into()], 0));
}

#[test]
fn a_flipped_bit_is_noticed_unless_it_is_in_the_last_batch_after_a_crash() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    for number in 0..10 {
        journal.append(&[format!("record {number}")]).unwrap();
    }
    let last = |bytes: &[u8]| bytes.windows(8).rposition(|part| part == b"record 9").unwrap() - 20;
    let crashed = scratch.newest_bytes();
    journal.close().unwrap();
    let closed = scratch.newest_bytes();
    let (mut noticed, mut undone) = (0, 0);
    for (bytes, is_closed) in [(&crashed, false), (&closed, true)] {
        let last_batch = last(bytes);
        let end = written(bytes) + 100;
        let end_mark = if is_closed { last_batch + 32 } else { end };
        for at in (0..end).flat_map(|at| [(at, 1), (at, 1 << (at % 8))]) {
            let mut flipped = bytes.clone();
            flipped[at.0] ^= at.1;
            match with(&scratch, &flipped) {
                Err(Error::Damaged { .. } | Error::Foreign { .. }) => noticed += 1,
                Err(error) => panic!("{error}"),
                Ok(opened) if opened.records.len() == 10 => {
                    assert!(end_mark - 1 <= at.0 || !is_closed);
                }
                Ok(opened) => {
                    assert!(!is_closed && last_batch <= at.0, "byte {} of {last_batch}", at.0);
                    assert_eq!(opened.records.len(), 9);
                    undone += 1;
                }
            }
        }
    }
    assert!(500 < noticed && 0 < undone, "{noticed} noticed, {undone} undone");
}

#[test]
fn zeros_where_a_batch_was_are_noticed() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    for number in 0..10 {
        journal.append(&[format!("record {number}")]).unwrap();
    }
    drop(journal);
    let mut bytes = scratch.newest_bytes();
    let at = bytes.windows(8).position(|part| part == b"record 5").unwrap() - 20;
    bytes[at..at + 32].fill(0);
    let error = with(&scratch, &bytes).unwrap_err();
    assert!(matches!(error, Error::Damaged { at: found, .. } if found == at as u64), "{error}");
}

#[test]
fn old_segments_are_forgotten_and_the_newest_never() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    journal.set_segment_bytes(100);
    let mut begun = 0;
    for number in 0..40 {
        journal.append(&[format!("record {number}")]).unwrap();
        if journal.is_full() {
            begun = journal.begin_segment(&[format!("head {number}")]).unwrap();
        }
    }
    assert!(8 < begun && begun == journal.segment());
    assert_eq!(files(&scratch.0).len() as u64, begun);
    drop(journal);
    let (mut journal, opened) = scratch.open();
    assert_eq!(opened.records.len() as u64, 40 + begun - 1);
    assert!(opened.records.is_sorted_by_key(|found| found.segment));
    while journal.forget_one_before(begun - 1).unwrap() {}
    assert_eq!(files(&scratch.0).len(), 2);
    while journal.forget_one_before(u64::MAX).unwrap() {}
    assert_eq!(files(&scratch.0).len(), 1);
    drop(journal);
    let (_, opened) = scratch.open();
    assert!(texts(&opened)[0].starts_with("head "), "{:?}", texts(&opened));
}

#[test]
fn a_segment_that_is_missing_short_or_not_ours_is_named() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    for number in 0..3 {
        journal.append(&[format!("record {number}")]).unwrap();
        journal.begin_segment::<&str>(&[]).unwrap();
    }
    drop(journal);
    let paths = files(&scratch.0);
    let second = fs::read(&paths[1]).unwrap();
    let refused = || Journal::open(&scratch.0).unwrap_err();
    fs::remove_file(&paths[1]).unwrap();
    assert!(matches!(refused(), Error::Missing { path } if path == paths[1]));
    for length in [8, 20, second.len() - 1] {
        fs::write(&paths[1], &second[..length]).unwrap();
        assert!(matches!(refused(), Error::Damaged { path, .. } if path == paths[1]), "{length}");
    }
    fs::write(&paths[1], [&second[..24], &vec![0; second.len() - 24]].concat()).unwrap();
    assert!(matches!(refused(), Error::Damaged { path, .. } if path == paths[1]), "zeros");
    fs::write(&paths[1], b"a letter to the editor").unwrap();
    assert!(matches!(refused(), Error::Foreign { path } if path == paths[1]));
    fs::write(&paths[1], second).unwrap();
    assert_eq!(scratch.open().1.records.len(), 3);
}

#[test]
fn a_segment_that_was_never_finished_does_not_matter() {
    let scratch = Scratch::new();
    let (mut journal, _) = scratch.open();
    journal.append(&["record"]).unwrap();
    drop(journal);
    fs::write(scratch.0.join("unfinished"), b"vez l").unwrap();
    let (mut journal, opened) = scratch.open();
    assert_eq!(opened.records.len(), 1);
    journal.begin_segment(&["head"]).unwrap();
    drop(journal);
    assert_eq!(texts(&scratch.open().1), ["record", "head"]);
}
