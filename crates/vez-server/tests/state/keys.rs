//! Puts, deletions, ranges, compaction and what watchers of the past hear.

use vez_api::etcdserverpb::range_request::{SortOrder, SortTarget};
use vez_api::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest};
use vez_api::log::command::Command;
use vez_api::mvccpb::KeyValue;
use vez_server::state::{Error, State};

use crate::build::{Ask, brief, bytes, command, delete, everything, put, range};

/// Revisions 2 to 6: a, b, c, then b again and c again.
fn five_puts() -> State {
    let mut state = State::default();
    for (key, value) in [("a", "3"), ("b", "2"), ("c", "1"), ("b", "2"), ("c", "0")] {
        state.try_put(put(key, value)).unwrap();
    }
    state
}

#[test]
fn an_empty_store_is_at_revision_one() {
    let state = State::default();
    let response = state.range(&everything()).unwrap();
    assert_eq!(state.revision(), 1);
    assert_eq!((response.header.unwrap().revision, response.count, response.more), (1, 0, false));
    assert!(state.is_empty());
}

#[test]
fn a_put_counts_revisions_and_versions() {
    let mut state = State::default();
    assert_eq!(state.try_put(put("k", "one")).unwrap().header.unwrap().revision, 2);
    state.try_put(put("other", "")).unwrap();
    let response = state.try_put(PutRequest { prev_kv: true, ..put("k", "two") }).unwrap();
    let first = KeyValue {
        key: bytes("k"),
        create_revision: 2,
        mod_revision: 2,
        version: 1,
        value: bytes("one"),
        lease: 0,
    };
    assert_eq!(response.prev_kv, Some(first.clone()));
    let second = KeyValue { mod_revision: 4, version: 2, value: bytes("two"), ..first };
    assert_eq!(state.get(b"k"), Some(&second));
}

#[test]
fn a_put_may_keep_the_value_or_the_lease() {
    let mut state = State::default();
    let keep_value = PutRequest { ignore_value: true, ..put("k", "") };
    let keep_lease = PutRequest { ignore_lease: true, ..put("k", "new") };
    assert_eq!(state.try_put(keep_value.clone()), Err(Error::KeyNotFound));
    assert_eq!(state.try_put(keep_lease.clone()), Err(Error::KeyNotFound));
    state.try_grant(5, 60).unwrap();
    state.try_put(PutRequest { lease: 5, ..put("k", "old") }).unwrap();
    state.try_put(keep_lease).unwrap();
    let kv = state.get(b"k").unwrap();
    assert_eq!((kv.value.as_ref(), kv.lease), (&b"new"[..], 5));
    state.try_put(keep_value).unwrap();
    let kv = state.get(b"k").unwrap();
    assert_eq!((kv.value.as_ref(), kv.lease), (&b"new"[..], 0));
}

#[test]
fn a_deletion_takes_one_revision_for_all_keys_and_none_for_no_key() {
    let mut state = five_puts();
    let response =
        state.try_delete(DeleteRangeRequest { prev_kv: true, ..delete("a", "c") }).unwrap();
    assert_eq!((response.deleted, response.header.unwrap().revision), (2, 7));
    let values: Vec<_> = response.prev_kvs.iter().map(|kv| kv.value.as_ref()).collect();
    assert_eq!(values, [b"3", b"2"]);
    let response = state.try_delete(delete("a", "c")).unwrap();
    assert_eq!((response.deleted, response.header.unwrap().revision), (0, 7));
    assert_eq!(state.revision(), 7);
}

#[test]
fn a_key_that_comes_back_starts_over() {
    let mut state = five_puts();
    state.try_delete(delete("c", "")).unwrap();
    state.try_put(put("c", "again")).unwrap();
    let kv = state.get(b"c").unwrap();
    assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (8, 8, 1));
}

#[test]
fn a_range_end_says_how_far() {
    let state = five_puts();
    assert_eq!(state.keys_in(range("b", "")), ["b"]);
    assert_eq!(state.keys_in(range("b", "\0")), ["b", "c"]);
    assert_eq!(state.keys_in(range("\0", "\0")), ["a", "b", "c"]);
    assert_eq!(state.keys_in(range("a", "c")), ["a", "b"]);
    assert_eq!(state.keys_in(range("c", "a")), [""; 0]);
    assert_eq!(state.keys_in(range("b", "b")), [""; 0]);
}

#[test]
fn a_range_may_look_at_the_past() {
    let mut state = five_puts();
    state.try_delete(delete("a", "")).unwrap();
    let at = |revision| RangeRequest { revision, ..everything() };
    assert_eq!(state.keys_in(at(1)), [""; 0]);
    assert_eq!(state.keys_in(at(3)), ["a", "b"]);
    assert_eq!(state.keys_in(at(6)), ["a", "b", "c"]);
    assert_eq!(state.keys_in(at(7)), ["b", "c"]);
    assert_eq!(state.keys_in(at(-5)), ["b", "c"]);
    assert_eq!(state.range(&at(8)), Err(Error::FutureRevision));
    let response = state.range(&RangeRequest { revision: 4, ..range("c", "") }).unwrap();
    assert_eq!((response.kvs[0].version, response.kvs[0].value.as_ref()), (1, &b"1"[..]));
    assert_eq!(response.header.unwrap().revision, 7);
}

#[test]
fn a_limit_cuts_kvs_and_not_the_count() {
    let state = five_puts();
    let response = state.range(&RangeRequest { limit: 2, ..everything() }).unwrap();
    assert_eq!((response.kvs.len(), response.more, response.count), (2, true, 3));
    let response = state.range(&RangeRequest { limit: 3, ..everything() }).unwrap();
    assert_eq!((response.kvs.len(), response.more, response.count), (3, false, 3));
    let response = state.range(&RangeRequest { limit: i64::MAX, ..everything() }).unwrap();
    assert_eq!((response.kvs.len(), response.more), (3, false));
    let counted = RangeRequest { limit: 1, count_only: true, ..everything() };
    let response = state.range(&counted).unwrap();
    assert_eq!((response.kvs.len(), response.more, response.count), (0, false, 3));
}

#[test]
fn filters_cut_kvs_before_the_limit_and_not_the_count() {
    let state = five_puts();
    let request = RangeRequest { min_mod_revision: 5, limit: 1, ..everything() };
    let response = state.range(&request).unwrap();
    assert_eq!(state.keys_in(request), ["b"]);
    assert_eq!((response.more, response.count), (true, 3));
    assert_eq!(state.keys_in(RangeRequest { max_mod_revision: 5, ..everything() }), ["a", "b"]);
    assert_eq!(state.keys_in(RangeRequest { min_create_revision: 3, ..everything() }), ["b", "c"]);
    assert_eq!(state.keys_in(RangeRequest { max_create_revision: 3, ..everything() }), ["a", "b"]);
}

#[test]
fn a_range_is_sorted_by_every_target() {
    let state = five_puts();
    let sorted = |target: SortTarget, order: SortOrder| {
        let (sort_target, sort_order) = (target.into(), order.into());
        state.keys_in(RangeRequest { sort_target, sort_order, ..everything() })
    };
    assert_eq!(sorted(SortTarget::Key, SortOrder::None), ["a", "b", "c"]);
    assert_eq!(sorted(SortTarget::Key, SortOrder::Descend), ["c", "b", "a"]);
    assert_eq!(sorted(SortTarget::Version, SortOrder::Ascend), ["a", "b", "c"]);
    assert_eq!(sorted(SortTarget::Version, SortOrder::Descend), ["b", "c", "a"]);
    assert_eq!(sorted(SortTarget::Create, SortOrder::Descend), ["c", "b", "a"]);
    assert_eq!(sorted(SortTarget::Mod, SortOrder::Ascend), ["a", "b", "c"]);
    assert_eq!(sorted(SortTarget::Mod, SortOrder::Descend), ["c", "b", "a"]);
    assert_eq!(sorted(SortTarget::Value, SortOrder::Ascend), ["c", "b", "a"]);
    assert_eq!(sorted(SortTarget::Value, SortOrder::None), ["c", "b", "a"]);
}

#[test]
fn a_limit_comes_after_an_order_and_before_none() {
    let state = five_puts();
    let by_value = |sort_order: SortOrder| RangeRequest {
        sort_target: SortTarget::Value.into(),
        sort_order: sort_order.into(),
        limit: 1,
        ..everything()
    };
    assert_eq!(state.keys_in(by_value(SortOrder::Ascend)), ["c"]);
    // The first two by key, one more than asked for; of these the first by value.
    assert_eq!(state.keys_in(by_value(SortOrder::None)), ["b"]);
}

#[test]
fn keys_only_leaves_out_the_value_and_nothing_else() {
    let state = five_puts();
    let response = state.range(&RangeRequest { keys_only: true, ..range("c", "") }).unwrap();
    let expected = KeyValue { value: bytes(""), ..state.get(b"c").unwrap().clone() };
    assert_eq!(response.kvs, [expected]);
}

#[test]
fn requests_without_sense_are_refused_with_etcds_words() {
    let mut state = five_puts();
    assert_eq!(state.try_put(put("", "x")), Err(Error::EmptyKey));
    assert_eq!(state.try_delete(delete("", "z")), Err(Error::EmptyKey));
    assert_eq!(state.range(&range("", "\0")), Err(Error::EmptyKey));
    let valued = PutRequest { ignore_value: true, ..put("a", "x") };
    assert_eq!(state.try_put(valued), Err(Error::ValueProvided));
    let leased = PutRequest { ignore_lease: true, lease: 1, ..put("a", "x") };
    assert_eq!(state.try_put(leased), Err(Error::LeaseProvided));
    let order = RangeRequest { sort_order: 3, ..everything() };
    let target = RangeRequest { sort_target: 5, ..everything() };
    assert_eq!(state.range(&order), Err(Error::InvalidSortOption));
    assert_eq!(state.range(&target), Err(Error::InvalidSortOption));
    assert_eq!(state.revision(), 6);
    let status = tonic::Status::from(Error::EmptyKey);
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert_eq!(status.message(), "etcdserver: key is not provided");
}

#[test]
fn compaction_goes_forward_and_not_beyond_the_present() {
    let mut state = five_puts();
    assert_eq!(state.try_compact(7), Err(Error::FutureRevision));
    assert_eq!(state.try_compact(-1), Err(Error::Compacted));
    assert_eq!(state.try_compact(4), Ok(6));
    assert_eq!(state.try_compact(4), Err(Error::Compacted));
    assert_eq!(state.try_compact(3), Err(Error::Compacted));
    assert_eq!(state.compacted(), 4);
    let at = |revision| RangeRequest { revision, ..everything() };
    assert_eq!(state.range(&at(3)), Err(Error::Compacted));
    assert_eq!(state.keys_in(at(4)), ["a", "b", "c"]);
    assert_eq!(state.range(&at(4)).unwrap().kvs[2].value.as_ref(), b"1");
    assert_eq!(state.revision(), 6);
}

#[test]
fn compaction_frees_what_nobody_can_ask_for() {
    let mut state = State::default();
    for round in 0..1_000 {
        state.try_put(put("kept", &round.to_string())).unwrap();
        state.try_put(put(&format!("gone/{round}"), "")).unwrap();
        state.try_delete(delete(&format!("gone/{round}"), "")).unwrap();
    }
    assert_eq!(state.history_len(), 3_000);
    let before = state.encode().len();
    state.try_compact(state.revision()).unwrap();
    assert_eq!(state.history_len(), 1);
    state.try_put(put("kept", "new")).unwrap();
    state.try_compact(state.revision()).unwrap();
    assert_eq!((state.history_len(), state.len()), (1, 1));
    assert!(state.encode().len() * 100 < before);
    assert_eq!(state.get(b"kept").unwrap().version, 1_001);
}

#[test]
fn compaction_forgets_an_old_deletion_of_a_key_that_came_back() {
    let mut state = five_puts();
    state.try_delete(delete("b", "")).unwrap();
    state.try_put(put("a", "")).unwrap();
    state.try_put(put("b", "back")).unwrap();
    state.try_compact(8).unwrap();
    assert_eq!(state.keys_in(RangeRequest { revision: 8, ..everything() }), ["a", "c"]);
    assert_eq!(state.events_since(9, b"b", b"").unwrap()[0].prev_kv, None);
    // What compaction left: one version of c, those at 8 and 9.
    assert_eq!(State::decode(&state.encode()).unwrap().encode(), state.encode());
    let expected = [b"c", b"a", b"b"].map(|key| state.get(key).unwrap().clone());
    let bytes = state.encode();
    let kvs = expected.iter().map(prost::Message::encode_length_delimited_to_vec);
    assert!(bytes.ends_with(&kvs.collect::<Vec<_>>().concat()));
    assert_eq!(bytes[29..37], 3_u64.to_be_bytes());
}

#[test]
fn watchers_of_the_past_hear_every_change_in_order() {
    let mut state = five_puts();
    state.try_delete(delete("b", "\0")).unwrap();
    let events = state.events_since(4, b"b", b"\0").unwrap();
    let told: Vec<_> = events.iter().map(brief).collect();
    let of = |kind, key: &str, revision| (kind, key.to_owned(), revision);
    let expected = [
        of("PUT", "c", 4),
        of("PUT", "b", 5),
        of("PUT", "c", 6),
        of("DELETE", "b", 7),
        of("DELETE", "c", 7),
    ];
    assert_eq!(told, expected);
    let before: Vec<_> =
        events.iter().map(|event| event.prev_kv.as_ref().map(|kv| kv.mod_revision)).collect();
    assert_eq!(before, [None, Some(3), Some(4), Some(5), Some(6)]);
    let deleted = KeyValue { key: bytes("c"), mod_revision: 7, ..KeyValue::default() };
    assert_eq!(events[4].kv, Some(deleted));
    assert_eq!(state.events_since(8, b"b", b"\0"), Ok(Vec::new()));
}

#[test]
fn watchers_may_start_at_the_compacted_revision_even_if_it_was_a_deletion() {
    let mut state = five_puts();
    state.try_delete(delete("b", "")).unwrap();
    state.try_put(put("a", "")).unwrap();
    state.try_compact(7).unwrap();
    assert_eq!(state.events_since(6, b"b", b""), Err(Error::Compacted));
    let events = state.events_since(7, b"\0", b"\0").unwrap();
    let told: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(told, [("DELETE", "b".to_owned(), 7), ("PUT", "a".to_owned(), 8)]);
    assert_eq!(events[0].prev_kv, None, "what was before is compacted");
    assert_eq!(events[1].prev_kv.as_ref().unwrap().mod_revision, 2);
}

#[test]
fn a_portion_of_the_past_ends_with_a_whole_revision() {
    let mut state = five_puts();
    state.try_delete(delete("a", "\0")).unwrap();
    state.try_put(put("d", "")).unwrap();
    let past = state.events_since_at_most(6, b"\0", b"\0", 2).unwrap();
    assert_eq!((past.events.len(), past.next_revision), (4, 8));
    let past = state.events_since_at_most(8, b"\0", b"\0", 2).unwrap();
    assert_eq!((past.events.len(), past.next_revision), (1, 9));
    let past = state.events_since_at_most(9, b"\0", b"\0", 2).unwrap();
    assert_eq!((past.events.len(), past.next_revision), (0, 9));
}

#[test]
fn what_is_applied_is_told_with_what_was_before() {
    let mut state = five_puts();
    let old = state.get(b"a").unwrap().clone();
    let events = state.events_of(Command::Put(put("a", "new")));
    assert_eq!(brief(&events[0]), ("PUT", "a".to_owned(), 7));
    assert_eq!(events[0].prev_kv, Some(old));
    assert_eq!(state.events_of(Command::DeleteRange(delete("x", ""))), []);
}

#[test]
fn stored_bytes_do_not_hold_the_buffer_they_came_in() {
    let mut state = State::default();
    let buffer = bytes(&"x".repeat(1_000));
    let request = PutRequest { key: buffer.slice(..1), value: buffer.slice(1..2), ..put("", "") };
    state.try_put(request).unwrap();
    assert!(buffer.is_unique());
}

#[test]
fn a_hash_at_a_revision_is_that_of_its_past_alone() {
    let (mut one, mut other) = (five_puts(), five_puts());
    let hash = one.hash_at(6).unwrap();
    assert_eq!(other.hash_at(6), Ok(hash));
    let earlier = one.hash_at(4).unwrap();
    assert_ne!(earlier, hash);
    // Their ways part here.
    one.try_put(put("a", "later")).unwrap();
    one.apply(&command(Command::DeleteRange(delete("b", "d"))));
    other.try_put(put("z", "")).unwrap();
    assert_eq!((one.hash_at(6), other.hash_at(6)), (Ok(hash), Ok(hash)));
    assert_eq!((one.hash_at(4), other.hash_at(4)), (Ok(earlier), Ok(earlier)));
    assert_ne!(one.hash_at(7), other.hash_at(7));
    assert_eq!(one.hash_at(9), Err(Error::FutureRevision));
    for state in [&mut one, &mut other] {
        state.try_compact(5).unwrap();
        assert_eq!(state.hash_at(4), Err(Error::Compacted));
    }
    for revision in [5, 6] {
        assert_eq!(one.hash_at(revision), other.hash_at(revision));
        assert!(one.hash_at(revision).is_ok());
    }
    let again = State::decode(&one.encode()).unwrap();
    assert_eq!(again.hash_at(6), one.hash_at(6));
}
