//! A search that ends early says so, and what it has found so far.

mod models;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use models::agrawala::{Agrawala, Flaw};
use vez_check::{Hooks, Judgement, Options, Outcome, Progress, Search, Stop, check};
use vez_core::{Promise, Protocol, Topology};

fn explore(options: &Options, hooks: &Hooks<'_>) -> Outcome {
    let topology = Topology::of(Agrawala::META.layout, 4).unwrap();
    check::<Agrawala>(&topology, &Flaw::None, options, hooks).unwrap()
}

fn is_partial(outcome: &Outcome, stop: Stop) {
    assert_eq!((outcome.stopped, outcome.complete), (Some(stop), false));
    assert!(outcome.kept());
    let judgements = outcome.promises.iter().map(|verdict| verdict.judgement);
    assert!(judgements.into_iter().all(|judgement| judgement == Judgement::KeptSoFar));
}

#[test]
fn so_many_states_and_no_more() {
    for (search, threads) in
        [(Search::BreadthFirst, 1), (Search::BreadthFirst, 2), (Search::DepthFirst, 1)]
    {
        let options =
            Options { search, threads, states_max: 50_000, ..Options::new(&Agrawala::META) };
        let outcome = explore(&options, &Hooks::default());
        is_partial(&outcome, Stop::States);
        assert!((50_000..60_000).contains(&outcome.states), "{}", outcome.states);
    }
}

#[test]
fn so_much_memory_and_no_more() {
    for search in [Search::BreadthFirst, Search::DepthFirst] {
        let options = Options { search, memory_max: 8 << 20, ..Options::new(&Agrawala::META) };
        let outcome = explore(&options, &Hooks::default());
        is_partial(&outcome, Stop::Memory);
        assert!(outcome.statistics.memory_bytes < 10 << 20, "{}", outcome.statistics.memory_bytes);
        assert!(50_000 < outcome.states, "{}", outcome.states);
    }
}

#[test]
fn whoever_has_seen_enough_may_stop_it() {
    let cancel = AtomicBool::new(false);
    let reports = AtomicU64::new(0);
    let watch = |progress: Progress| {
        assert!(0 < progress.states && 0 < progress.memory && 0 < progress.transitions);
        reports.fetch_add(1, Ordering::Relaxed);
        cancel.store(100_000 < progress.states, Ordering::Relaxed);
    };
    let hooks = Hooks { cancel: Some(&cancel), progress: Some(&watch) };
    for search in [Search::BreadthFirst, Search::DepthFirst] {
        cancel.store(false, Ordering::Relaxed);
        let options = Options { search, threads: 2, ..Options::new(&Agrawala::META) };
        is_partial(&explore(&options, &hooks), Stop::Cancelled);
    }
    assert!(2 <= reports.load(Ordering::Relaxed));
}

#[test]
fn the_longest_wait_is_measured_where_asked_for() {
    let topology = Topology::of(Agrawala::META.layout, 3).unwrap();
    let mut options = Options { entries: 2, ..Options::new(&Agrawala::META) };
    options.bounded_wait = true;
    options.promises.push(Promise::BoundedWait);
    let outcome = check::<Agrawala>(&topology, &Flaw::None, &options, &Hooks::default()).unwrap();
    assert_eq!(outcome.worst_wait, Some(4));
    assert!(37_229 < outcome.states && outcome.complete);
    let detail = outcome.verdict(Promise::BoundedWait).unwrap().detail.clone().unwrap();
    assert_eq!(detail, "at most 4 × another entered while one waited");
}

#[test]
fn who_goes_on_after_the_first_broken_promise_finds_the_others() {
    let topology = Topology::of(Agrawala::META.layout, 2).unwrap();
    let options = Options { keep_going: true, ..Options::new(&Agrawala::META) };
    let outcome =
        check::<Agrawala>(&topology, &Flaw::NoTieBreak, &options, &Hooks::default()).unwrap();
    let judgement = |promise| outcome.verdict(promise).unwrap().judgement;
    assert_eq!(judgement(Promise::NoDeadlock), Judgement::Broken);
    assert_eq!(judgement(Promise::MutualExclusion), Judgement::Kept);
    assert_eq!(outcome.stopped, Some(Stop::Broken));
}
