//! Random requests over few keys, few leases and few revisions, so that they meet.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use vez_api::etcdserverpb::compare::TargetUnion;
use vez_api::etcdserverpb::request_op::Request;
use vez_api::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest,
    PutRequest, RangeRequest, RequestOp, TxnRequest,
};
use vez_api::log::{self, Leave, Take, command::Command};

use crate::build::{bytes, command};

pub(crate) const KEYS: [&str; 9] = ["a", "a/", "a/1", "a/2", "a/b/1", "a/b/2", "ab", "b/1", "c"];
pub(crate) const PREFIXES: [&str; 7] = ["", "a", "a/", "a/b", "a/b/", "b/", "d/"];

pub(crate) fn keys() -> impl Strategy<Value = Bytes> {
    prop_oneof![60 => select(&KEYS[..]).prop_map(bytes), 1 => Just(Bytes::new())]
}

/// None, all that follow, behind a prefix, in the midst; sometimes before the start.
pub(crate) fn ends() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        3 => Just(bytes("")),
        2 => Just(bytes("\0")),
        3 => select(&["a0", "a/c", "b0", "b", "a/2", "d"][..]).prop_map(bytes),
    ]
}

fn values() -> impl Strategy<Value = Bytes> {
    select(&["", "x", "y", "z"][..]).prop_map(bytes)
}

fn lease_ids() -> impl Strategy<Value = i64> {
    select(&[-1_i64, 0, 1, 2, 3][..])
}

fn revisions() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0_i64), -2..30_i64]
}

pub(crate) fn puts() -> impl Strategy<Value = PutRequest> {
    let lease = prop_oneof![3 => Just(0_i64), 2 => lease_ids()];
    let rarely = || prop::bool::weighted(0.15);
    (keys(), values(), lease, any::<bool>(), rarely(), rarely()).prop_map(
        |(key, value, lease, prev_kv, ignore_value, ignore_lease)| PutRequest {
            key,
            value,
            lease,
            prev_kv,
            ignore_value,
            ignore_lease,
        },
    )
}

pub(crate) fn deletes() -> impl Strategy<Value = DeleteRangeRequest> {
    (keys(), ends(), any::<bool>()).prop_map(|(key, range_end, prev_kv)| DeleteRangeRequest {
        key,
        range_end,
        prev_kv,
    })
}

pub(crate) fn ranges() -> impl Strategy<Value = RangeRequest> {
    let bound = || prop_oneof![4 => Just(0_i64), 1 => 1..20_i64];
    let shape = (keys(), ends(), -1..5_i64, revisions());
    let order = (prop_oneof![30 => 0..3, 1 => Just(3)], prop_oneof![30 => 0..5, 1 => Just(7)]);
    let rarely = prop::bool::weighted(0.2);
    (shape, order, (any::<bool>(), rarely), (bound(), bound(), bound(), bound())).prop_map(
        |(shape, order, (keys_only, count_only), bounds)| RangeRequest {
            key: shape.0,
            range_end: shape.1,
            limit: shape.2,
            revision: shape.3,
            sort_order: order.0,
            sort_target: order.1,
            serializable: false,
            keys_only,
            count_only,
            min_mod_revision: bounds.0,
            max_mod_revision: bounds.1,
            min_create_revision: bounds.2,
            max_create_revision: bounds.3,
        },
    )
}

fn compares() -> impl Strategy<Value = Compare> {
    let given = prop_oneof![
        (0..4_i64).prop_map(TargetUnion::Version),
        (0..20_i64).prop_map(TargetUnion::CreateRevision),
        (0..20_i64).prop_map(TargetUnion::ModRevision),
        values().prop_map(TargetUnion::Value),
        lease_ids().prop_map(TargetUnion::Lease),
    ];
    let end = prop_oneof![2 => Just(Bytes::new()), 1 => ends()];
    (0..5_i32, 0..6_i32, keys(), end, option::weighted(0.9, given)).prop_map(
        |(result, target, key, range_end, target_union)| Compare {
            result,
            target,
            key,
            range_end,
            target_union,
        },
    )
}

/// Half of them read only.
pub(crate) fn txns() -> impl Strategy<Value = TxnRequest> {
    let read = ranges().prop_map(Request::RequestRange).boxed();
    let any_op = prop_oneof![
        2 => ranges().prop_map(Request::RequestRange),
        3 => puts().prop_map(Request::RequestPut),
        2 => deletes().prop_map(Request::RequestDeleteRange),
    ];
    prop_oneof![txns_of(read), txns_of(any_op.boxed())]
}

fn txns_of(leaf: BoxedStrategy<Request>) -> impl Strategy<Value = TxnRequest> {
    let ops = leaf.prop_recursive(
        2,
        12,
        3,
        |inner| prop_oneof![3 => inner.clone(), 1 => txn_of(inner).prop_map(Request::RequestTxn)],
    );
    txn_of(ops.boxed())
}

fn txn_of(request: BoxedStrategy<Request>) -> impl Strategy<Value = TxnRequest> {
    let op = option::weighted(0.995, request).prop_map(|request| RequestOp { request });
    (vec(compares(), 0..3), vec(op.clone(), 0..4), vec(op, 0..4))
        .prop_map(|(compare, success, failure)| TxnRequest { compare, success, failure })
}

pub(crate) fn commands() -> impl Strategy<Value = log::Command> {
    let ttl = select(&[-1_i64, 0, 1, 2, 3, 60, 9_000_000_000, 9_000_000_001][..]);
    let grant = (lease_ids(), ttl).prop_map(|(id, ttl)| LeaseGrantRequest { id, ttl });
    let compact = (-1..20_i64).prop_map(|revision| CompactionRequest { revision, physical: false });
    let take = (keys(), puts(), any::<bool>()).prop_map(|(key, put, again)| Take {
        key,
        value: put.value,
        lease: put.lease,
        again,
    });
    let leave = (keys(), 0..20_i64, 0..4_i64).prop_map(|(key, since, if_version)| Leave {
        key,
        since,
        if_version,
    });
    prop_oneof![
        6 => take.prop_map(Command::Take),
        4 => leave.prop_map(Command::Leave),
        8 => puts().prop_map(Command::Put),
        3 => deletes().prop_map(Command::DeleteRange),
        8 => txns().prop_map(Command::Txn),
        2 => compact.prop_map(Command::Compact),
        3 => grant.prop_map(Command::LeaseGrant),
        1 => lease_ids().prop_map(|id| Command::LeaseRevoke(LeaseRevokeRequest { id })),
    ]
    .prop_map(command)
}
