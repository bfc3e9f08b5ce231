use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use vez_api::etcdserverpb::{
    DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RequestOp, TxnRequest,
    request_op::Request,
};

use super::*;

struct World {
    state: State,
    chronicle: Chronicle,
}

impl World {
    fn new() -> Self {
        let state = State::default();
        let chronicle = Chronicle::new(&state);
        Self { state, chronicle }
    }

    fn apply(&mut self, command: Command, cause: Cause) {
        let applied = self.state.apply(&command.into());
        self.chronicle.note(&self.state, cause, &applied.events);
    }

    fn lease(&mut self, id: i64) {
        self.apply(Command::LeaseGrant(LeaseGrantRequest { ttl: 60, id }), Cause::Client);
    }

    fn stand(&mut self, name: &str, lease: i64) {
        self.apply(Command::Put(put(&format!("{name}/{lease:x}"), lease)), Cause::Client);
    }

    fn leave(&mut self, name: &str, lease: i64) {
        self.apply(Command::DeleteRange(delete(&format!("{name}/{lease:x}"), "")), Cause::Client);
    }

    fn revoke(&mut self, id: i64, cause: Cause) {
        self.apply(Command::LeaseRevoke(LeaseRevokeRequest { id }), cause);
    }

    /// What happened: what, to which lease, after how many seconds.
    fn told(&self) -> Vec<(What, i64, u64)> {
        let all = self.chronicle.after(0, usize::MAX).into_iter();
        all.map(|one| (one.what, one.lease, one.took.time.as_secs())).collect()
    }
}

fn put(key: &str, lease: i64) -> PutRequest {
    PutRequest { key: key.to_owned().into(), lease, value: "me".into(), ..PutRequest::default() }
}

fn delete(key: &str, end: &str) -> DeleteRangeRequest {
    let (key, range_end) = (key.to_owned().into(), end.to_owned().into());
    DeleteRangeRequest { key, range_end, ..DeleteRangeRequest::default() }
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn turns_waits_and_ends_are_told_with_how_long_they_took() {
    let mut world = World::new();
    (1..=4).for_each(|id| world.lease(id));
    world.stand("door", 1);
    pass(10).await;
    world.stand("door", 2);
    world.stand("door", 3);
    world.stand("door", 4);
    assert_eq!(world.chronicle.standing(), (1, 3));
    pass(5).await;
    world.leave("door", 1);
    pass(64).await;
    world.leave("door", 3);
    world.revoke(2, Cause::Expiry);
    assert_eq!(world.chronicle.standing(), (1, 0));
    world.revoke(4, Cause::Revocation);
    let told = world.told();
    let expected = [
        (What::Granted, 1, 0),
        (What::Ended(Why::Asked), 1, 15),
        (What::HandedOver, 2, 5),
        (What::Left(Why::Asked), 3, 69),
        (What::Ended(Why::Expired), 2, 64),
        (What::HandedOver, 4, 69),
        (What::Ended(Why::Revoked), 4, 0),
    ];
    assert_eq!(told, expected);
    assert_eq!((world.chronicle.grants.get(), world.chronicle.hand_overs.get()), (3, 2));
    assert_eq!((world.chronicle.waits.now().count(), world.chronicle.holds.now().count()), (3, 3));
    assert_eq!(world.chronicle.standing(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_released_by_hand_is_told_so_and_nothing_else_is() {
    let mut world = World::new();
    (1..=2).for_each(|id| world.lease(id));
    world.stand("door", 1);
    world.stand("door", 2);
    let since = world.state.get(b"door/1").unwrap().create_revision;
    let leave = Command::Leave(log::Leave { key: "door/1".into(), since, if_version: 0 });
    let command = log::Command { reason: Reason::ByHand.into(), ..leave.into() };
    let applied = world.state.apply(&command);
    world.chronicle.note(&world.state, Cause::of(&command), &applied.events);
    world.leave("door", 2);
    let whys: Vec<What> = world.told().into_iter().map(|(what, ..)| what).collect();
    let (by_hand, asked) = (What::Ended(Why::ByHand), What::Ended(Why::Asked));
    assert_eq!(whys, [What::Granted, by_hand, What::HandedOver, asked]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_lock_is_not_told() {
    let mut world = World::new();
    world.lease(0xab);
    for key in ["ab", "a/b", "a/0ab", "a/AB", "a/ac", "a/"] {
        world.apply(Command::Put(put(key, 0xab)), Cause::Client);
    }
    world.apply(Command::Put(put("b/ab", 0)), Cause::Client);
    world.apply(Command::DeleteRange(delete("a", "c")), Cause::Client);
    assert_eq!((world.told(), world.chronicle.standing()), (vec![], (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn many_that_go_at_once_hand_over_once() {
    let mut world = World::new();
    (1..=5).for_each(|id| world.lease(id));
    (1..=5).for_each(|id| world.stand("door", id));
    world.stand("gate", 1);
    world.stand("gate", 2);
    // The first three of five, and another lock's holder, by one lease and one range.
    world.apply(Command::DeleteRange(delete("door/1", "door/4")), Cause::Client);
    world.revoke(1, Cause::Expiry);
    let told: Vec<(What, i64)> =
        world.told().into_iter().map(|(what, lease, _)| (what, lease)).collect();
    let expected = [
        (What::Granted, 1),
        (What::Granted, 1),
        (What::Ended(Why::Asked), 1),
        (What::HandedOver, 4),
        (What::Left(Why::Asked), 2),
        (What::Left(Why::Asked), 3),
        (What::Ended(Why::Expired), 1),
        (What::HandedOver, 2),
    ];
    assert_eq!(told, expected);
    assert_eq!(world.chronicle.standing(), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_the_numbers_are_those_of_a_count() {
    let mut chance = StdRng::seed_from_u64(7);
    let mut world = World::new();
    for step in 0..20_000 {
        let lease = chance.random_range(1..=9);
        let name = ["a", "b", "a/c"][chance.random_range(0..3)];
        let key = format!("{name}/{:x}", chance.random_range(1..=9));
        let command = match chance.random_range(0..10) {
            0 => Command::LeaseGrant(LeaseGrantRequest { ttl: 60, id: lease }),
            1 => Command::LeaseRevoke(LeaseRevokeRequest { id: lease }),
            2 | 3 => Command::DeleteRange(delete(&key, "")),
            4 if step % 7 == 0 => Command::DeleteRange(delete(&key, "c")),
            5 => Command::Put(put(&key, if chance.random_bool(0.5) { lease } else { 0 })),
            6 => {
                let operation = |request| RequestOp { request: Some(request) };
                let success = vec![
                    operation(Request::RequestDeleteRange(delete(&key, ""))),
                    operation(Request::RequestPut(put(&format!("{name}/{lease:x}"), lease))),
                ];
                Command::Txn(TxnRequest { success, ..TxnRequest::default() })
            }
            _ => Command::Put(put(&format!("{name}/{lease:x}"), lease)),
        };
        world.apply(command, Cause::Client);
        assert_eq!(world.chronicle.standing(), count(&world.state), "after step {step}");
    }
    let book = world.chronicle.book();
    assert!(1000 < book.last && book.happenings.len() == REMEMBERED);
    assert!(book.turns.len() <= 27, "{} turns of 27 keys", book.turns.len());
}
