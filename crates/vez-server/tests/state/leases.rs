//! Leases and the keys they take with them.

use bytes::Bytes;
use vez_api::etcdserverpb::{LeaseRevokeRequest, PutRequest};
use vez_api::log::command::Command;
use vez_server::state::{Error, State};

use crate::build::{Ask, always, brief, delete, op, put, put_leased};

fn keys_of(state: &State, lease: i64) -> Vec<&[u8]> {
    state.lease(lease).unwrap().keys().map(Bytes::as_ref).collect()
}

#[test]
fn a_lease_is_granted_within_etcds_bounds() {
    let mut state = State::default();
    assert_eq!(state.try_grant(1, 60), Ok(60));
    assert_eq!(state.try_grant(2, 1), Ok(2));
    assert_eq!(state.try_grant(3, -5), Ok(2));
    assert_eq!(state.try_grant(-4, 9_000_000_000), Ok(9_000_000_000));
    assert_eq!(state.try_grant(5, 9_000_000_001), Err(Error::LeaseTtlTooLarge));
    assert_eq!(state.try_grant(1, 60), Err(Error::LeaseExists));
    assert_eq!(state.try_grant(0, 60), Err(Error::LeaseNotFound));
    let granted: Vec<_> = state.leases().map(|lease| (lease.id, lease.ttl)).collect();
    assert_eq!(granted, [(-4, 9_000_000_000), (1, 60), (2, 2), (3, 2)]);
    assert_eq!(state.revision(), 1);
}

#[test]
fn a_put_needs_the_lease_it_names() {
    let mut state = State::default();
    let error = state.try_put(put_leased("k", 1)).unwrap_err();
    assert_eq!(error.to_string(), "etcdserver: requested lease not found");
    assert_eq!(error.code(), tonic::Code::NotFound);
    assert_eq!(state.revision(), 1);
}

#[test]
fn keys_go_from_lease_to_lease_with_their_puts() {
    let mut state = State::default();
    state.try_grant(1, 60).unwrap();
    state.try_grant(2, 60).unwrap();
    for key in ["b", "c", "a"] {
        state.try_put(put_leased(key, 1)).unwrap();
    }
    assert_eq!(keys_of(&state, 1), [b"a", b"b", b"c"]);
    state.try_put(put_leased("b", 2)).unwrap();
    state.try_put(put_leased("c", 1)).unwrap();
    assert_eq!((keys_of(&state, 1), keys_of(&state, 2)), (vec![&b"a"[..], b"c"], vec![&b"b"[..]]));
    state.try_put(put("a", "free")).unwrap();
    state.try_delete(delete("c", "")).unwrap();
    assert_eq!(keys_of(&state, 1), [b""; 0]);
    state.try_put(PutRequest { ignore_lease: true, ..put("b", "kept") }).unwrap();
    assert_eq!(keys_of(&state, 2), [b"b"]);
}

#[test]
fn a_revoked_lease_deletes_its_keys_in_one_revision() {
    let mut state = State::default();
    state.try_grant(1, 60).unwrap();
    for key in ["c", "a", "b"] {
        state.try_put(put_leased(key, 1)).unwrap();
    }
    state.try_put(put("b", "no longer leased")).unwrap();
    let events = state.events_of(Command::LeaseRevoke(LeaseRevokeRequest { id: 1 }));
    let told: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(told, [("DELETE", "a".to_owned(), 6), ("DELETE", "c".to_owned(), 6)]);
    assert_eq!(events[1].prev_kv.as_ref().unwrap().lease, 1);
    assert_eq!((state.revision(), state.len()), (6, 1));
    assert!(state.lease(1).is_none());
    assert_eq!(state.try_revoke(1), Err(Error::LeaseNotFound));
}

#[test]
fn a_revoked_lease_without_keys_takes_no_revision() {
    let mut state = State::default();
    state.try_grant(1, 60).unwrap();
    assert_eq!(state.try_revoke(1), Ok(1));
    assert_eq!(state.try_grant(1, 60), Ok(60));
}

#[test]
fn a_missing_lease_fails_a_whole_transaction() {
    let mut state = State::default();
    let leased = op(vez_api::etcdserverpb::request_op::Request::RequestPut(put_leased("b", 9)));
    let request = always(vec![crate::build::op_put("a", ""), leased]);
    assert_eq!(state.try_txn(request), Err(Error::LeaseNotFound));
    assert!(state.is_empty());
}
