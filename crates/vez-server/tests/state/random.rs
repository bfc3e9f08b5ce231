//! Random commands and questions: the state and the model must always say the same.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use vez_api::etcdserverpb::{RangeRequest, TxnRequest};
use vez_api::log;
use vez_server::state::{State, validate};

use crate::build::everything;
use crate::draw;
use crate::model::Model;

#[derive(Clone, Debug)]
enum Step {
    Apply(log::Command),
    Range(RangeRequest),
    ReadTxn(TxnRequest),
    Events {
        start: i64,
        key: Bytes,
        range_end: Bytes,
        events_max: usize,
    },
    /// The state is written, read back and used from then on.
    Snapshot,
}

fn steps() -> impl Strategy<Value = Step> {
    let events = (-1..40_i64, draw::keys(), draw::ends(), 0..6_usize);
    prop_oneof![
        10 => draw::commands().prop_map(Step::Apply),
        3 => draw::ranges().prop_map(Step::Range),
        1 => draw::txns().prop_map(Step::ReadTxn),
        1 => events.prop_map(|(start, key, range_end, events_max)| {
            Step::Events { start, key, range_end, events_max }
        }),
        1 => Just(Step::Snapshot),
    ]
}

fn take(state: &mut State, model: &mut Model, step: &Step) {
    match step {
        Step::Apply(command) => {
            let before = state.encode();
            let applied = state.apply(command);
            assert_eq!(applied, model.apply(command), "{command:?}");
            if applied.response.is_err() {
                assert_eq!(state.encode(), before, "what is refused changes nothing");
            }
        }
        Step::Range(request) => {
            assert_eq!(state.range(request), model.range(request), "{request:?}");
        }
        Step::ReadTxn(request) => {
            if validate::is_read_only(request) {
                assert_eq!(state.read_txn(request), model.clone().txn(request), "{request:?}");
            }
        }
        Step::Events { start, key, range_end, events_max } => {
            assert_eq!(
                state.events_since(*start, key, range_end),
                model.events_since(*start, key, range_end)
            );
            in_portions(state, model, *start, key, range_end, *events_max);
        }
        Step::Snapshot => {
            let restored = State::decode(&state.encode()).unwrap();
            assert_eq!(restored.encode(), state.encode());
            assert_eq!(restored.hash(), state.hash());
            *state = restored;
        }
    }
    assert_eq!((state.revision(), state.compacted()), (model.revision, model.compacted));
}

/// Portions are whole revisions, no longer than they must be, and together they are all.
fn in_portions(
    state: &State,
    model: &Model,
    start: i64,
    key: &[u8],
    range_end: &[u8],
    events_max: usize,
) {
    let Ok(all) = model.events_since(start, key, range_end) else { return };
    let mut told = Vec::new();
    let mut next_revision = start;
    while next_revision <= model.revision {
        let past = state.events_since_at_most(next_revision, key, range_end, events_max).unwrap();
        assert!(past.next_revision > next_revision);
        let of_last = past.events.last().map_or(0, |event| {
            let last = event.kv.as_ref().unwrap().mod_revision;
            let of_last = |event: &&_| revision_of(event) == last;
            past.events.iter().filter(of_last).count()
        });
        let excess = past.events.len() - of_last;
        assert!(past.events.is_empty() || excess < events_max.max(1));
        told.extend(past.events);
        next_revision = past.next_revision;
    }
    assert_eq!(told, all);
}

fn revision_of(event: &vez_api::mvccpb::Event) -> i64 {
    event.kv.as_ref().unwrap().mod_revision
}

fn orders() -> impl Iterator<Item = (i32, i32, i64)> {
    let pairs = (0..5).flat_map(|target| (0..3).map(move |order| (target, order)));
    pairs.flat_map(|(target, order)| (0..4).map(move |limit| (target, order, limit)))
}

/// Everything that can be asked.
fn compare_all(state: &State, model: &Model) {
    for revision in model.compacted.max(1)..=model.revision {
        let request = RangeRequest { revision, ..everything() };
        assert_eq!(state.range(&request), model.range(&request));
    }
    for (sort_target, sort_order, limit) in orders() {
        let request = RangeRequest { sort_target, sort_order, limit, ..everything() };
        assert_eq!(state.range(&request), model.range(&request));
    }
    let start = model.compacted.max(0);
    assert_eq!(state.events_since(start, b"\0", b"\0"), model.events_since(start, b"\0", b"\0"));
    assert_eq!(state.history_len(), model.history().len());
    assert_eq!(state.len(), model.now().len());
    let leases: Vec<_> = state
        .leases()
        .map(|lease| (lease.id, lease.ttl, lease.keys().cloned().collect::<Vec<_>>()))
        .collect();
    let expected: Vec<_> =
        model.leases.iter().map(|(&id, &ttl)| (id, ttl, model.keys_of(id))).collect();
    assert_eq!(leases, expected);
    for key in draw::KEYS {
        assert_eq!(state.get(key.as_bytes()), model.now().get(key.as_bytes()));
    }
    for prefix in draw::PREFIXES.map(str::as_bytes) {
        let queue = model.queue(prefix);
        assert_eq!(state.first(prefix), queue.first(), "{prefix:?}");
        for revision in -1..=model.revision + 1 {
            let ahead = model.ahead(prefix, revision);
            assert_eq!(state.ahead(prefix, revision), ahead.as_ref(), "{prefix:?} {revision}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1_000)
    })]

    #[test]
    fn the_state_says_what_the_model_says(steps in vec(steps(), 1..60)) {
        let (mut state, mut model) = (State::default(), Model::new());
        let mut hashes = Vec::new();
        for step in &steps {
            take(&mut state, &mut model, step);
            let (revision, compacted) = (state.revision(), state.compacted());
            hashes.push((revision, compacted, state.hash_at(revision)));
        }
        for (revision, compacted, hash) in hashes {
            if compacted == state.compacted() {
                assert_eq!(state.hash_at(revision), hash, "revision {revision}");
            }
        }
        compare_all(&state, &model);
        take(&mut state, &mut model, &Step::Snapshot);
        compare_all(&state, &model);
    }
}
