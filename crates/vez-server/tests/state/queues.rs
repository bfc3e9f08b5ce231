//! Who holds and who is next, as etcd's recipes see it.

use vez_api::etcdserverpb::RangeRequest;
use vez_api::etcdserverpb::range_request::{SortOrder, SortTarget};
use vez_server::state::State;

use crate::build::{Ask, always, bytes, delete, everything, name, op_put, put, put_leased, range};

fn first(state: &State, prefix: &str) -> Option<String> {
    state.first(prefix.as_bytes()).map(name)
}

fn ahead(state: &State, prefix: &str, create_revision: i64) -> Option<String> {
    state.ahead(prefix.as_bytes(), create_revision).map(name)
}

#[test]
fn a_queue_is_ordered_by_create_revision_and_not_by_key() {
    let mut state = State::default();
    for key in ["lock/z", "lock/a", "lock/m"] {
        state.try_put(put(key, "")).unwrap();
    }
    state.try_put(put("lock/z", "a new value does not lose the place")).unwrap();
    assert_eq!(first(&state, "lock/").unwrap(), "lock/z");
    assert_eq!(ahead(&state, "lock/", 2), None);
    assert_eq!(ahead(&state, "lock/", 3).unwrap(), "lock/z");
    assert_eq!(ahead(&state, "lock/", 4).unwrap(), "lock/a");
    state.try_delete(delete("lock/a", "")).unwrap();
    assert_eq!(ahead(&state, "lock/", 4).unwrap(), "lock/z");
    state.try_delete(delete("lock/z", "")).unwrap();
    assert_eq!(ahead(&state, "lock/", 4), None);
    assert_eq!(first(&state, "lock/").unwrap(), "lock/m");
}

#[test]
fn a_queue_has_what_is_under_its_prefix_however_deep() {
    let mut state = State::default();
    for key in ["a/b/1", "a/1", "a0", "a", "ab/1", "a/b/2"] {
        state.try_put(put(key, "")).unwrap();
    }
    assert_eq!(first(&state, "a/").unwrap(), "a/b/1");
    assert_eq!(ahead(&state, "a/", 7).unwrap(), "a/1");
    assert_eq!(ahead(&state, "a/b/", 7).unwrap(), "a/b/1");
    assert_eq!(ahead(&state, "a", 7).unwrap(), "ab/1");
    assert_eq!(first(&state, "ab").unwrap(), "ab/1");
    assert_eq!(first(&state, "").unwrap(), "a/b/1");
    assert_eq!(first(&state, "b/"), None);
}

#[test]
fn those_made_at_once_stand_in_the_order_of_their_keys() {
    let mut state = State::default();
    state.try_txn(always(vec![op_put("q/2", ""), op_put("q/1", "")])).unwrap();
    state.try_put(put("q/0", "")).unwrap();
    assert_eq!(first(&state, "q/").unwrap(), "q/1");
    assert_eq!(ahead(&state, "q/", 3).unwrap(), "q/1");
    assert_eq!(ahead(&state, "q/", 2), None);
}

#[test]
fn the_recipes_own_questions_get_the_same_answers() {
    let mut state = State::default();
    for key in ["e/9", "e/5", "e/7", "e/1"] {
        state.try_put(put(key, "")).unwrap();
    }
    let by_create = |sort_order: SortOrder, max_create_revision| RangeRequest {
        sort_target: SortTarget::Create.into(),
        sort_order: sort_order.into(),
        limit: 1,
        max_create_revision,
        ..range("e/", "e0")
    };
    assert_eq!(state.keys_in(by_create(SortOrder::Ascend, 0)), [first(&state, "e/").unwrap()]);
    for mine in 3..=5 {
        let asked = state.keys_in(by_create(SortOrder::Descend, mine - 1));
        assert_eq!(asked, [ahead(&state, "e/", mine).unwrap()]);
    }
}

#[test]
fn a_long_queue_is_not_walked_through() {
    let waiters = 20_000_i64;
    let mut state = State::default();
    for waiter in 0..waiters {
        state.try_put(put(&format!("lock/{waiter:08x}"), "")).unwrap();
    }
    // Quadratic work would take minutes here.
    for waiter in 0..waiters {
        let holder = state.first(b"lock/").unwrap();
        assert_eq!(holder.create_revision, waiter + 2);
        assert_eq!(state.ahead(b"lock/", waiter + 2), None);
        assert_eq!(state.ahead(b"lock/", waiters + 2).unwrap().create_revision, waiters + 1);
        let key = bytes(&format!("lock/{waiter:08x}"));
        state.try_delete(delete(std::str::from_utf8(&key).unwrap(), "")).unwrap();
    }
    assert_eq!(state.first(b"lock/"), None);
}

/// All that a state is made of is in its debug output: what would be kept of a name would show.
#[test]
fn nothing_is_left_of_a_hundred_thousand_locks_that_were_used() {
    let mut state = State::default();
    state.try_grant(1, 600).unwrap();
    state.try_put(put_leased("held/1", 1)).unwrap();
    state.try_compact(state.revision()).unwrap();
    let before = format!("{state:?}");
    for number in 0..100_000 {
        let key = format!("lock {number}/1");
        state.try_put(put_leased(&key, 1)).unwrap();
        state.try_delete(delete(&key, "")).unwrap();
        if number % 1000 == 999 {
            state.try_compact(state.revision() - 100).unwrap();
        }
    }
    // The last deletion is the last revision that may be read: one more, and it is forgotten.
    state.try_put(put("held/1", "")).unwrap();
    state.try_put(put_leased("held/1", 1)).unwrap();
    state.try_compact(state.revision()).unwrap();
    let after = format!("{state:?}");
    assert!(after.len() < before.len() + 200, "{before}\n{}", &after[..after.len().min(2000)]);
}

#[test]
fn revisions_that_are_left_out_are_never_granted_again() {
    let mut state = State::default();
    for key in ["lock/a", "lock/b", "gone"] {
        state.try_put(put(key, "")).unwrap();
    }
    state.try_delete(delete("gone", "")).unwrap();
    let (revision, before) = (state.revision(), state.range(&everything()).unwrap());
    state.skip_revisions(1000);
    assert_eq!(state.revision(), revision + 1000);
    let after = state.range(&everything()).unwrap();
    assert_eq!(before.kvs, after.kvs);
    assert_eq!(ahead(&state, "lock/", 3).unwrap(), "lock/a");
    assert!(state.events_since(revision, b"\0", b"\0").is_err(), "what was left out is not there");
    assert_eq!(state.events_since(revision + 1000, b"\0", b"\0").unwrap(), []);
    let again = State::decode(&state.encode()).unwrap();
    assert_eq!(again.encode(), state.encode());
    state.try_put(put("lock/c", "")).unwrap();
    assert_eq!(state.get(b"lock/c").unwrap().create_revision, revision + 1001);
}
