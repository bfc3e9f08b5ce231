//! Bytes that nobody wrote: an error or something that works, never a panic.

use bytes::{BufMut, Bytes};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use vez_api::log;
use vez_api::mvccpb::KeyValue;
use vez_server::state::{DecodeError, State};

use crate::build::{Ask, bytes, put, put_leased};
use crate::draw;

fn some_state() -> State {
    let mut state = State::default();
    state.try_grant(7, 60).unwrap();
    state.try_put(put("a/1", "one")).unwrap();
    state.try_put(put("a/1", "two")).unwrap();
    state.try_compact(2).unwrap();
    state.try_put(put_leased("b", 7)).unwrap();
    state
}

/// A snapshot of a store at revision 5, compacted at 3, with lease 7 and these versions.
fn snapshot(versions: &[KeyValue]) -> Vec<u8> {
    let mut bytes = b"vezs\x01".to_vec();
    for number in [5, 3, 1, 7, 60] {
        bytes.put_i64(number);
    }
    bytes.put_u64(versions.len() as u64);
    for version in versions {
        version.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

fn version(key: &str, create_revision: i64, mod_revision: i64, version: i64) -> KeyValue {
    KeyValue { key: bytes(key), create_revision, mod_revision, version, ..KeyValue::default() }
}

#[test]
fn a_snapshot_says_what_is_wrong_with_it() {
    let good = some_state().encode();
    assert!(State::decode(&good).is_ok());
    assert_eq!(State::decode(b"").unwrap_err(), DecodeError::NotASnapshot);
    assert_eq!(State::decode(b"vezx\x01").unwrap_err(), DecodeError::NotASnapshot);
    assert_eq!(State::decode(b"vezs").unwrap_err(), DecodeError::Truncated);
    assert_eq!(State::decode(b"vezs\x02").unwrap_err(), DecodeError::UnknownVersion(2));
    let longer = [good.as_slice(), b"x"].concat();
    assert_eq!(State::decode(&longer).unwrap_err(), DecodeError::TrailingBytes);
    for length in 5..good.len() {
        assert_eq!(State::decode(&good[..length]).unwrap_err(), DecodeError::Truncated);
    }
}

#[test]
fn a_snapshot_that_no_store_could_have_written_is_refused() {
    let leased = KeyValue { lease: 7, ..version("k", 4, 4, 1) };
    let good: [&[KeyValue]; 6] = [
        &[],
        std::slice::from_ref(&leased),
        &[version("k", 2, 2, 1), version("k", 2, 3, 2)],
        &[version("k", 2, 3, 2), version("k", 0, 4, 0), version("k", 5, 5, 1)],
        &[version("k", 0, 3, 0), version("k", 3, 3, 1)],
        &[version("k", 2, 2, 1), version("l", 4, 4, 1), version("k", 0, 5, 0)],
    ];
    for versions in good {
        assert!(State::decode(&snapshot(versions)).is_ok(), "{versions:?}");
    }
    let bad: [&[KeyValue]; 14] = [
        &[version("", 4, 4, 1)],
        &[version("k", 6, 6, 1)],
        &[version("k", 1, 1, 1)],
        &[version("k", 4, 4, 2)],
        &[version("k", 3, 4, 1)],
        &[version("k", 2, 4, 2)],
        &[version("k", 2, 3, 3)],
        &[version("k", 0, 2, 0)],
        &[version("k", 0, 4, 0)],
        &[version("k", 2, 2, 1), version("k", 4, 4, 2)],
        &[version("k", 4, 4, 1), version("k", 4, 5, 3)],
        &[version("k", 4, 4, 1), version("k", 0, 5, 0), version("k", 0, 5, 0)],
        &[version("k", 5, 5, 1), version("l", 4, 4, 1)],
        &[KeyValue { lease: 8, ..leased }],
    ];
    for versions in bad {
        let error = State::decode(&snapshot(versions)).unwrap_err();
        assert!(matches!(error, DecodeError::Inconsistent(_)), "{versions:?}: {error}");
    }
}

#[test]
fn a_snapshot_is_not_believed_about_sizes() {
    let mut leases = b"vezs\x01".to_vec();
    let mut versions = leases.clone();
    for number in [5, 3, i64::MAX] {
        leases.put_i64(number);
    }
    for number in [5, 3, 0, i64::MAX] {
        versions.put_i64(number);
    }
    assert_eq!(State::decode(&leases).unwrap_err(), DecodeError::Truncated);
    assert_eq!(State::decode(&versions).unwrap_err(), DecodeError::Truncated);
}

/// Goes on with whatever came out of a decoder.
fn work_with(mut state: State, commands: &[log::Command]) {
    for command in commands {
        let _ = state.apply(command);
    }
    let revision = state.revision();
    let _ = state.try_compact(revision);
    let again = State::decode(&state.encode()).unwrap();
    assert_eq!(again.encode(), state.encode());
    assert_eq!(again.hash(), state.hash());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_no_snapshot(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(State::decode(&bytes).is_err());
        let headed = [b"vezs\x01".as_slice(), &bytes].concat();
        if let Ok(state) = State::decode(&headed) {
            work_with(state, &[]);
        }
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_works(
        commands in vec(draw::commands(), 0..30),
        more in vec(draw::commands(), 0..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut state = State::default();
        for command in &commands {
            let _ = state.apply(command);
        }
        let mut bytes = state.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(state) = State::decode(&bytes) {
            work_with(state, &more);
        }
    }

    #[test]
    fn arbitrary_bytes_in_the_log_do_no_harm(
        entries in vec(vec(any::<u8>(), 0..60), 0..20),
        commands in vec(draw::commands(), 1..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut entries: Vec<_> = entries.into_iter().map(Bytes::from).collect();
        let mut good = commands.iter().map(Message::encode_to_vec).collect::<Vec<_>>();
        for (at, byte) in damage {
            let entry = at.index(good.len());
            if !good[entry].is_empty() {
                let at = at.index(good[entry].len());
                good[entry][at] = byte;
            }
        }
        entries.extend(good.into_iter().map(Bytes::from));
        let decoded = entries.into_iter().filter_map(|entry| log::Command::decode(entry).ok());
        work_with(State::default(), &decoded.collect::<Vec<_>>());
    }
}

#[test]
fn a_command_of_a_later_version_is_refused_and_changes_nothing() {
    let mut state = some_state();
    let before = state.encode();
    let applied = state.apply(&log::Command::default());
    assert_eq!(applied.response.unwrap_err().code(), tonic::Code::Unimplemented);
    assert_eq!((state.encode(), applied.events.len()), (before, 0));
}
