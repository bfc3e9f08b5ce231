//! Transactions.

use vez_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::response_op::Response;
use vez_api::etcdserverpb::{Compare, PutRequest, RangeRequest, RequestOp, TxnRequest};
use vez_api::log::command::Command;
use vez_server::state::{Error, State, validate};

use crate::build::{
    Ask, always, brief, bytes, compare, everything, names, never, op, op_delete, op_put, op_range,
    op_txn, put, range, ranged,
};

fn holds(state: &State, compare: Compare) -> bool {
    let request = TxnRequest { compare: vec![compare], ..TxnRequest::default() };
    state.read_txn(&request).unwrap().succeeded
}

#[test]
fn a_transaction_takes_one_revision_with_its_changes_in_order() {
    let mut state = State::default();
    let request = always(vec![op_put("b", ""), op_put("a", ""), op_delete("c", "")]);
    let events = state.events_of(Command::Txn(request));
    let told: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(told, [("PUT", "b".to_owned(), 2), ("PUT", "a".to_owned(), 2)]);
    assert_eq!(state.revision(), 2);
    assert_eq!(state.events_since(2, b"\0", b"\0"), Ok(events));
}

#[test]
fn a_transaction_that_changes_nothing_takes_no_revision() {
    let mut state = State::default();
    let response = state.try_txn(always(vec![op_range(everything()), op_delete("a", "")])).unwrap();
    assert_eq!(response.header.unwrap().revision, 1);
    assert_eq!(state.try_txn(always(Vec::new())).unwrap().header.unwrap().revision, 1);
    assert_eq!(state.revision(), 1);
}

#[test]
fn operations_see_what_earlier_ones_did() {
    let mut state = State::default();
    state.try_put(put("old", "")).unwrap();
    let at = |revision| op_range(RangeRequest { revision, ..everything() });
    let ops = vec![at(0), op_put("new", ""), at(0), at(2), op_delete("old", ""), at(0)];
    let response = state.try_txn(always(ops)).unwrap();
    let seen = |n| {
        let response = ranged(&response, n);
        (names(response), response.header.unwrap().revision)
    };
    assert_eq!(seen(0), (vec!["old".to_owned()], 2));
    assert_eq!(seen(2), (vec!["new".to_owned(), "old".to_owned()], 3));
    assert_eq!(seen(3), (vec!["old".to_owned()], 3));
    assert_eq!(seen(5), (vec!["new".to_owned()], 3));
    assert_eq!(response.header.unwrap().revision, 3);
}

#[test]
fn all_comparisons_see_the_store_before_the_whole() {
    let mut state = State::default();
    let is_new = || {
        let given = Some(TargetUnion::CreateRevision(0));
        compare("k", CompareTarget::Create, CompareResult::Equal, given)
    };
    let inner = TxnRequest {
        compare: vec![is_new()],
        success: vec![op_put("inner", "")],
        failure: Vec::new(),
    };
    let request = TxnRequest {
        compare: vec![is_new()],
        success: vec![op_put("k", ""), op_txn(inner)],
        failure: Vec::new(),
    };
    let response = state.try_txn(request.clone()).unwrap();
    assert!(response.succeeded);
    let Some(Response::ResponseTxn(nested)) = &response.responses[1].response else { panic!() };
    assert!(nested.succeeded);
    assert_eq!(nested.header.unwrap().revision, 0);
    assert!(state.get(b"inner").is_some());
    assert!(!state.try_txn(request).unwrap().succeeded);
}

#[test]
fn everything_about_a_key_can_be_compared() {
    use CompareResult::{Equal, Greater, Less, NotEqual};
    let mut state = State::default();
    state.try_grant(9, 60).unwrap();
    state.try_put(put("k", "first")).unwrap();
    state.try_put(PutRequest { lease: 9, ..put("k", "m") }).unwrap();
    let targets: [(CompareTarget, [TargetUnion; 3]); 5] = [
        (CompareTarget::Version, [1, 2, 3].map(TargetUnion::Version)),
        (CompareTarget::Create, [1, 2, 3].map(TargetUnion::CreateRevision)),
        (CompareTarget::Mod, [2, 3, 4].map(TargetUnion::ModRevision)),
        (CompareTarget::Value, ["l", "m", "n"].map(|text| TargetUnion::Value(bytes(text)))),
        (CompareTarget::Lease, [8, 9, 10].map(TargetUnion::Lease)),
    ];
    for (target, [below, same, above]) in targets {
        let is = |result, given: &TargetUnion| {
            holds(&state, compare("k", target, result, Some(given.clone())))
        };
        assert_eq!(
            [Equal, Greater, Less, NotEqual].map(|result| is(result, &below)),
            [false, true, false, true]
        );
        assert_eq!(
            [Equal, Greater, Less, NotEqual].map(|result| is(result, &same)),
            [true, false, false, false]
        );
        assert_eq!(
            [Equal, Greater, Less, NotEqual].map(|result| is(result, &above)),
            [false, false, true, true]
        );
    }
}

#[test]
fn a_missing_key_compares_as_zero_but_has_no_value() {
    let state = State::default();
    for target in [CompareTarget::Version, CompareTarget::Create, CompareTarget::Lease] {
        assert!(holds(&state, compare("k", target, CompareResult::Equal, None)));
        assert!(!holds(&state, compare("k", target, CompareResult::NotEqual, None)));
    }
    for result in [CompareResult::Equal, CompareResult::NotEqual] {
        assert!(!holds(&state, compare("k", CompareTarget::Value, result, None)));
    }
}

#[test]
fn a_comparison_over_a_span_must_hold_for_all_keys() {
    let mut state = State::default();
    state.try_put(put("a/1", "x")).unwrap();
    state.try_put(put("a/2", "y")).unwrap();
    let over = |value: &str, result| {
        let given = Some(TargetUnion::Value(bytes(value)));
        let one = compare("a/", CompareTarget::Value, result, given);
        Compare { range_end: bytes("a0"), ..one }
    };
    assert!(holds(&state, over("a", CompareResult::Greater)));
    assert!(!holds(&state, over("x", CompareResult::Greater)));
}

#[test]
fn a_refused_transaction_changes_nothing() {
    let mut state = State::default();
    state.try_put(put("k", "")).unwrap();
    state.try_put(put("k", "")).unwrap();
    state.try_compact(3).unwrap();
    let before = state.encode();
    let at = |revision| op_range(RangeRequest { revision, ..everything() });
    let keep = |key| op(Request::RequestPut(PutRequest { ignore_value: true, ..put(key, "") }));
    let mut refused = |last: RequestOp| state.try_txn(always(vec![op_put("a", ""), last]));
    assert_eq!(refused(at(4)), Err(Error::FutureRevision));
    assert_eq!(refused(at(2)), Err(Error::Compacted));
    assert_eq!(refused(at(-1)), Err(Error::Compacted));
    assert_eq!(refused(keep("b")), Err(Error::KeyNotFound));
    assert_eq!(refused(op_txn(always(vec![keep("b")]))), Err(Error::KeyNotFound));
    assert_eq!(state.encode(), before);
    assert!(state.try_txn(always(vec![op_put("a", ""), keep("k")])).is_ok());
}

#[test]
fn of_several_faults_etcds_is_told() {
    let mut state = State::default();
    let future = op_range(RangeRequest { revision: 9, ..everything() });
    let leased = op(Request::RequestPut(PutRequest { lease: 1, ..put("a", "") }));
    assert_eq!(state.try_txn(always(vec![future, leased])), Err(Error::LeaseNotFound));
    let both = PutRequest { lease: 1, ignore_value: true, ..put("a", "") };
    let in_txn = always(vec![op(Request::RequestPut(both.clone()))]);
    assert_eq!(state.try_txn(in_txn), Err(Error::KeyNotFound));
    assert_eq!(state.try_put(both), Err(Error::LeaseNotFound));
}

#[test]
fn only_the_way_that_is_gone_can_fail() {
    let mut state = State::default();
    let leased = op(Request::RequestPut(PutRequest { lease: 1, ..put("a", "") }));
    let request = TxnRequest { success: vec![leased], ..never(vec![op_put("b", "")]) };
    assert!(!state.try_txn(request).unwrap().succeeded);
    assert!(state.get(b"b").is_some());
}

#[test]
fn a_key_may_be_written_once() {
    let refused = |ops: Vec<RequestOp>| {
        let result = validate::txn(&always(ops.clone()));
        assert_eq!(result, validate::txn(&never(ops.clone())));
        assert_eq!(result.is_err(), State::default().try_txn(always(ops)).is_err());
        match result {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.to_string(), "etcdserver: duplicate key given in txn request");
                true
            }
        }
    };
    let put = || op_put("k", "");
    let either =
        |then, or_else| op_txn(TxnRequest { compare: Vec::new(), success: then, failure: or_else });
    assert!(refused(vec![put(), put()]));
    assert!(refused(vec![op_delete("k", ""), put()]));
    assert!(refused(vec![put(), op_delete("k", "")]));
    assert!(refused(vec![put(), op_delete("a", "z")]));
    assert!(refused(vec![op_delete("j", "l"), op_delete("a", "c"), op_delete("b", "k"), put()]));
    assert!(refused(vec![put(), either(vec![put()], vec![])]));
    assert!(refused(vec![either(vec![put()], vec![]), either(vec![], vec![put()])]));
    assert!(refused(vec![either(vec![op_delete("k", "")], vec![]), put()]));
    assert!(refused(vec![either(vec![put()], vec![]), op_delete("k", "")]));
    assert!(refused(vec![op_txn(always(vec![put(), put()]))]));
    assert!(!refused(vec![put(), op_put("l", "")]));
    assert!(!refused(vec![put(), op_delete("a", "k"), op_delete("l", "z")]));
    assert!(!refused(vec![op_delete("a", "z"), op_delete("k", "")]));
    assert!(!refused(vec![either(vec![put()], vec![put()])]));
    assert!(!refused(vec![either(vec![put()], vec![op_delete("k", "")])]));
    // etcd lets these pass.
    assert!(!refused(vec![op_delete("a", "\0"), put()]));
    assert!(!refused(vec![either(vec![put()], vec![]), either(vec![op_delete("k", "")], vec![])]));
}

#[test]
fn a_key_deleted_and_put_in_one_transaction_is_a_new_one() {
    let mut state = State::default();
    state.try_put(put("k", "")).unwrap();
    state.try_put(put("k", "")).unwrap();
    let events =
        state.events_of(Command::Txn(always(vec![op_delete("a", "\0"), op_put("k", "new")])));
    let told: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(told, [("DELETE", "k".to_owned(), 4), ("PUT", "k".to_owned(), 4)]);
    assert_eq!(events[1].prev_kv, None);
    let kv = state.get(b"k").unwrap();
    assert_eq!((kv.create_revision, kv.version), (4, 1));
    assert_eq!(State::decode(&state.encode()).unwrap().encode(), state.encode());
}

#[test]
fn of_a_key_put_and_deleted_in_the_compacted_revision_only_its_end_is_left() {
    let mut state = State::default();
    let nested = vec![
        op_txn(always(vec![op_put("k", "")])),
        op_txn(always(vec![op_delete("k", "")])),
        op_put("l", ""),
    ];
    state.try_txn(always(nested)).unwrap();
    assert_eq!(state.events_since(2, b"\0", b"\0").unwrap().len(), 3);
    state.try_compact(2).unwrap();
    let events = state.events_since(2, b"\0", b"\0").unwrap();
    let told: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(told, [("DELETE", "k".to_owned(), 2), ("PUT", "l".to_owned(), 2)]);
}

#[test]
fn a_transaction_has_a_limit_of_operations() {
    let ops = |n: usize| (0..n).map(|n| op_put(&n.to_string(), "")).collect::<Vec<_>>();
    assert_eq!(validate::txn(&always(ops(128))), Ok(()));
    assert_eq!(validate::txn(&always(ops(129))), Err(Error::TooManyOps));
    assert_eq!(validate::txn(&never(ops(129))), Err(Error::TooManyOps));
    let compare = vec![never(Vec::new()).compare.remove(0); 129];
    let request = TxnRequest { compare, ..TxnRequest::default() };
    assert_eq!(validate::txn(&request), Err(Error::TooManyOps));
    assert_eq!(validate::txn(&always(vec![op_txn(always(ops(127)))])), Ok(()));
    assert_eq!(validate::txn(&always(vec![op_txn(always(ops(128)))])), Err(Error::TooManyOps));
    let mut deep = always(Vec::new());
    for _ in 0..200 {
        deep = always(vec![op_txn(deep)]);
    }
    assert_eq!(State::default().try_txn(deep), Err(Error::TooManyOps));
}

#[test]
fn every_operation_of_a_transaction_is_looked_at() {
    let refused = |ops: Vec<RequestOp>| validate::txn(&never(ops)).unwrap_err();
    assert_eq!(refused(vec![op_put("", "")]), Error::EmptyKey);
    assert_eq!(refused(vec![op_delete("", "")]), Error::EmptyKey);
    assert_eq!(refused(vec![op_range(range("", ""))]), Error::EmptyKey);
    assert_eq!(refused(vec![op_txn(always(vec![op_put("", "")]))]), Error::EmptyKey);
    assert_eq!(refused(vec![RequestOp { request: None }]), Error::KeyNotFound);
    let unsorted = RangeRequest { sort_order: 9, ..everything() };
    assert_eq!(refused(vec![op_range(unsorted)]), Error::InvalidSortOption);
    let keyless = compare("", CompareTarget::Mod, CompareResult::Equal, None);
    let request = TxnRequest { compare: vec![keyless], ..TxnRequest::default() };
    assert_eq!(validate::txn(&request), Err(Error::EmptyKey));
}

#[test]
fn a_long_transaction_is_not_compared_pair_by_pair() {
    let level = |inner: Vec<RequestOp>| vec![op_txn(always(inner))];
    // 40 transactions of 40 transactions of 40 deletions, and a put that meets none of them.
    let deletions =
        |n: usize| (0..40).map(move |m| op_delete(&format!("{n:05}{m}"), &format!("{n:05}{m}~")));
    let middle = |n: usize| (0..40).flat_map(|m| level(deletions(n * 40 + m).collect())).collect();
    let mut ops: Vec<RequestOp> = (0..40).flat_map(|n| level(middle(n))).collect();
    ops.push(op_put("zz", ""));
    assert_eq!(validate::txn(&always(ops)), Ok(()));
}

#[test]
fn what_only_reads_need_not_be_logged() {
    let read = op_range(everything());
    assert!(validate::is_read_only(&always(vec![read.clone(), op_txn(never(vec![read]))])));
    assert!(!validate::is_read_only(&never(vec![op_put("k", "")])));
    assert!(!validate::is_read_only(&always(vec![op_txn(never(vec![op_delete("k", "")]))])));
}
