//! Networks that fall apart, in part and in one direction only, and bad ones.

use std::time::Duration;

use rand::RngExt as _;

use crate::faults::chance;
use crate::history::History;
use crate::net::Net;
use crate::trio::Trio;

/// The two that are not this one.
fn others(of: usize) -> [usize; 2] {
    [(of + 1) % 3, (of + 2) % 3]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_replaced_and_follows_when_it_is_back() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    for _ in 0..2 {
        let leader = trio.leader().await;
        others(leader).into_iter().for_each(|other| trio.net().part(leader, other));
        trio.leader_but(leader).await;
        history.goes_on(5).await;
        trio.net().heal();
        history.goes_on(5).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_cut_in_whichever_direction_nobody_is_told_anything_wrong() {
    let mut chance = chance("cuts");
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    for _ in 0..8 {
        let one = chance.random_range(0..3);
        let other = others(one)[chance.random_range(0..2)];
        match chance.random_range(0..4) {
            // One that is heard, and does not hear; the other way round; a pair that meets only
            // through the third; and everybody alone.
            0 => others(one).into_iter().for_each(|from| trio.net().cut(from, one)),
            1 => others(one).into_iter().for_each(|to| trio.net().cut(one, to)),
            2 => trio.net().part(one, other),
            _ => (0..3).for_each(|one| trio.net().part(one, (one + 1) % 3)),
        }
        let time = chance.random_range(100..2_500);
        tokio::time::sleep(Duration::from_millis(time)).await;
        trio.net().heal();
        history.goes_on(3).await;
    }
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_bad_network_it_is_slow_and_right() {
    let Some(net) = Net::make() else { return };
    let trio = Trio::start_on(net).await;
    trio.net().worsen("delay 5ms 4ms loss 2% reorder 20% 50%");
    let history = History::begin(&trio);
    history.goes_on(20).await;
    history.end(&trio).await;
}
