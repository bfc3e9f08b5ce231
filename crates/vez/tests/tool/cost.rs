//! Every algorithm has its formulas or a reason for none, and what is said to be exact is.

use std::sync::atomic::AtomicBool;

use vez::registry;
use vez::scenario::Wiring;
use vez::sweep::{Metric, Point, Prepared, Starters, Study, Subject};
use vez_core::Time;
use vez_numbers::cost::{self, Order, Per, Quantity, Relation};
use vez_sim::Delay;

fn study(names: &[&str], nodes: Vec<u32>) -> Study {
    let subject = |name: &&str| Subject {
        entry: registry::find(name).unwrap(),
        config: std::collections::BTreeMap::new(),
    };
    Study {
        algorithms: names.iter().map(subject).collect(),
        nodes,
        load: vec![1.0],
        loss: vec![0.0],
        crash_rate: vec![0.0],
        trials: 2,
        seed: 7,
        metric: Metric::Messages,
        starters: Starters::All,
        order: Order::Random,
        leader_down: false,
        hold: Time::from_millis(1),
        requests: 1,
        delay: Delay::Fixed(Time::from_millis(1)),
        within: Time::ZERO,
        down: Time::from_millis(100),
        wiring: None,
        until: None,
        threads: 2,
    }
}

fn points(study: &Study) -> Vec<Point> {
    Prepared::new(study).unwrap().run(&AtomicBool::new(false), |_, _| ()).points
}

/// All formulas of all points hold; how many are equalities.
#[track_caller]
fn held(study: &Study) -> usize {
    let mut exact = 0;
    for point in points(study) {
        for metric in [Metric::Messages, Metric::Time, Metric::Wait] {
            let (name, n) = (point.algorithm, point.nodes);
            let (found, formulas) = (point.of(metric), &point.formulas);
            assert!(!point.contradicts(metric), "{name} {n}: {found:?} against {formulas:?}");
        }
        let equalities = point.formulas.iter().filter(|v| v.relation == Relation::Exact);
        exact += equalities.filter(|v| v.quantity == Quantity::Messages).count();
    }
    exact
}

#[test]
fn who_is_asked_to_stop_hands_over_what_is_finished() {
    let stop = AtomicBool::new(false);
    let study = Study { trials: 4, threads: 1, ..study(&["bully"], vec![2, 3, 4]) };
    let halt = |done, _| stop.store(5 <= done, std::sync::atomic::Ordering::SeqCst);
    let outcome = Prepared::new(&study).unwrap().run(&stop, halt);
    assert!(!outcome.points.is_empty() && outcome.points.len() + outcome.unfinished == 3);
    assert_eq!(outcome.points[0].nodes, 2);
    assert_eq!(outcome.points[0].trials, 4);
}

#[test]
fn every_algorithm_has_formulas_or_a_reason_for_none() {
    for entry in registry::all() {
        let name = entry.meta.name;
        let cost = cost::of(name).unwrap_or_else(|| panic!("{name} has no entry"));
        assert_eq!(cost.per == Per::Entry, entry.problem == "mutex", "{name}");
        assert!(cost.reason.is_some() || !cost.formulas.is_empty(), "{name}");
        let json = serde_json::to_value(cost).unwrap();
        assert_eq!(json["algorithm"], name);
    }
}

const ENTRIES: [&str; 9] = [
    "coordinator",
    "token-ring",
    "quorum",
    "lamport",
    "ricart-agrawala",
    "ricart-agrawala-tanenbaum",
    "maekawa",
    "suzuki-kasami",
    "raymond",
];

const ELECTIONS: [&str; 11] = [
    "bully",
    "bully-strict",
    "anonymous-ring",
    "itai-rodeh",
    "list-ring",
    "chang-roberts",
    "franklin",
    "peterson",
    "hirschberg-sinclair",
    "yoyo",
    "wireless",
];

fn sizes() -> Vec<u32> {
    (1..=64).collect()
}

#[test]
fn an_entry_costs_what_its_formula_says_when_all_ask() {
    // Lamport, Ricart–Agrawala, the coordinator, both tokens.
    assert_eq!(held(&study(&ENTRIES, sizes())), 5 * 63 + 9);
}

#[test]
fn an_entry_costs_what_its_formula_says_when_all_ask_again_and_again() {
    for requests in [2, 3] {
        let study = Study { requests, ..study(&ENTRIES, vec![2, 3, 5, 8, 13]) };
        // Lamport, Ricart–Agrawala, the coordinator, the token ring.
        assert_eq!(held(&study), 4 * 5);
    }
}

#[test]
fn an_entry_costs_what_its_formula_says_when_one_asks() {
    let one = Study { load: vec![0.0], ..study(&ENTRIES, sizes()) };
    // Those but the token ring and Raymond; Maekawa where the grid is full, and n = 2, 3.
    assert!(held(&one) > 6 * 63);
}

#[test]
fn bounds_hold_on_other_trees_and_graphs() {
    for wiring in [Wiring::Line, Wiring::Star] {
        let wiring = Some(wiring);
        held(&Study { wiring: wiring.clone(), load: vec![0.0], ..study(&["raymond"], sizes()) });
        held(&Study { wiring, ..study(&["yoyo"], sizes()) });
    }
    for wiring in [Wiring::Ring, Wiring::Line, Wiring::Grid] {
        let one = Starters::Some(1);
        let wiring = Some(wiring);
        let exact = held(&Study { wiring, starters: one, ..study(&["wireless"], sizes()) });
        assert_eq!(exact, sizes().len());
    }
}

#[test]
fn an_election_costs_what_its_formula_says() {
    for starters in [
        Starters::All,
        Starters::Some(1),
        Starters::Some(3),
        Starters::Random,
        Starters::Smallest,
        Starters::Largest,
    ] {
        for order in [Order::Ascending, Order::Descending, Order::Random] {
            let names = &ELECTIONS;
            let study = Study { starters, order, ..study(names, vec![1, 2, 3, 4, 7, 8, 9, 16]) };
            assert!(held(&study) >= 8, "{starters:?} {order:?}");
        }
    }
}

#[test]
fn rings_cost_what_their_formulas_say_up_to_sixty_four() {
    for order in [Order::Ascending, Order::Descending] {
        let names = &["chang-roberts", "franklin", "peterson", "list-ring", "anonymous-ring"];
        let nodes: Vec<u32> = (2..=64).collect();
        let study = Study { order, trials: 1, ..study(names, nodes) };
        assert_eq!(held(&study), 5 * 63, "{order:?}");
    }
}

#[test]
fn graphs_cost_what_their_formulas_say_up_to_sixty_four() {
    let (starters, trials) = (Starters::Some(1), 1);
    let names = &["yoyo", "wireless", "itai-rodeh"];
    let one = Study { starters, trials, ..study(names, (2..=64).collect()) };
    assert_eq!(held(&one), 3 * 63);
}

#[test]
fn the_bully_costs_what_the_table_says_up_to_sixty_four() {
    for leader_down in [false, true] {
        for starters in [Starters::Smallest, Starters::Largest, Starters::All] {
            let nodes: Vec<u32> = (3..=64).collect();
            let names = &["bully", "bully-strict"];
            let study = Study { leader_down, starters, trials: 1, ..study(names, nodes) };
            assert_eq!(held(&study), 2 * 62, "{leader_down} {starters:?}");
        }
    }
}

#[test]
fn means_are_means() {
    for (name, starters) in [
        ("chang-roberts", Starters::All),
        ("chang-roberts", Starters::Some(1)),
        ("bully", Starters::Some(1)),
    ] {
        let study = Study { starters, trials: 400, ..study(&[name], vec![12]) };
        let point = points(&study).remove(0);
        let formula = point.formula(Metric::Messages).unwrap();
        assert_eq!(formula.relation, Relation::Mean);
        let found = point.messages.unwrap();
        let off = (found.mean - formula.value).abs();
        assert!(off < 2.0 * found.error(), "{name}: {} against {}", found.mean, formula.value);
    }
}

#[test]
fn schedules_do_not_matter_where_it_is_said_that_they_do_not() {
    let delay = Delay::Uniform(Time::from_millis(1), Time::from_millis(9));
    let names = &["lamport", "ricart-agrawala", "coordinator", "maekawa", "suzuki-kasami"];
    let free = Study { delay, trials: 5, requests: 2, ..study(names, vec![2, 3, 5, 9, 16]) };
    assert_eq!(held(&free), 3 * 5);
    let names = &["franklin", "peterson", "hirschberg-sinclair", "chang-roberts", "yoyo"];
    let free = Study { delay, trials: 5, within: Time::from_millis(20), ..study(names, vec![8]) };
    assert_eq!(held(&free), 1);
}
