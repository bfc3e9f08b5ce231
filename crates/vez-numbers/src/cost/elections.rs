//! What an election costs, until everyone knows the leader.

use super::{
    Case, Cost, Formula, Initiators, Order, Per, Quantity, Relation, always, delays, harmonic,
    messages,
};

pub(super) const ALL: &[Cost] = &[
    cost("bully", BULLY, Some(SOME), &[]),
    cost("bully-strict", BULLY_STRICT, Some(SOME), &[]),
    cost("anonymous-ring", ANONYMOUS, None, &[]),
    cost(
        "itai-rodeh",
        ITAI_RODEH,
        Some("O(n log n) expected when several start: chance decides, and no closed form is known"),
        &[],
    ),
    cost("list-ring", LIST_RING, None, &["pick"]),
    cost("chang-roberts", CHANG_ROBERTS, None, &["pick"]),
    cost("franklin", FRANKLIN, None, &["pick"]),
    cost("peterson", PETERSON, None, &["pick"]),
    cost("hirschberg-sinclair", HIRSCHBERG_SINCLAIR, None, &["pick"]),
    cost("yoyo", YOYO, None, &["pick"]),
    cost(
        "wireless",
        WIRELESS,
        Some("how far rival elections get before they yield depends on the graph"),
        &["announce"],
    ),
    cost("probabilistic", PROBABILISTIC, Some("chance decides"), &["k"]),
    cost("weighted-majority", &[], Some(BEATS), &[]),
    cost("stable", &[], Some(BEATS), &[]),
    cost("monitored", &[], Some(BEATS), &[]),
];

const SOME: &str = "no bound is known if some start, or if ties are not in the order of uids";
const BEATS: &str = "heartbeats go on for as long as the run does";

const fn cost(
    algorithm: &'static str,
    formulas: &'static [Formula],
    reason: Option<&'static str>,
    settings: &'static [&'static str],
) -> Cost {
    Cost { algorithm, per: Per::Election, formulas, reason, settings }
}

const BULLY: &[Formula] = &[
    messages(Relation::Exact, "n² − 1", "the smallest starts, or all do", |case| {
        (!case.leader_down && from_the_smallest(case)).then(|| case.n() * case.n() - 1.0)
    }),
    messages(Relation::Exact, "n(n − 1)", "the largest is down; the smallest starts", |case| {
        (case.leader_down && from_the_smallest(case)).then(|| case.n() * (case.n() - 1.0))
    }),
    messages(Relation::Exact, "n", "the largest is down; the next starts", |case| {
        (case.leader_down && case.initiators == Initiators::Largest).then(|| case.n())
    }),
    messages(Relation::Exact, "n − 1", "the largest starts", |case| {
        (!case.leader_down && case.initiators == Initiators::Largest).then(|| case.n() - 1.0)
    }),
    // Whoever starts sets off all above it: m processes, m(m − 1)/2 questions and as many answers.
    messages(Relation::Mean, "(n² − 1)/3 + n − 1", "a random one starts", |case| {
        let one = !case.leader_down && case.initiators == Initiators::Some(1) && ties_by_uid(case);
        one.then(|| (case.n() * case.n() - 1.0) / 3.0 + case.n() - 1.0)
    }),
    messages(Relation::AtMost, "n² − 1", "one starts, or all do", |case| {
        (one_or_all(case) && !case.leader_down).then(|| case.n() * case.n() - 1.0)
    }),
    messages(Relation::AtMost, "n(n − 1)", "the largest is down; one starts, or all do", |case| {
        (one_or_all(case) && case.leader_down).then(|| case.n() * (case.n() - 1.0))
    }),
    messages(Relation::AtLeast, "n − 1", "", |case| Some(case.n() - 1.0)),
    delays(Quantity::Time, Relation::AtMost, "4", "with the default timers", |case| {
        one_or_all(case).then_some(4.0)
    }),
];

const BULLY_STRICT: &[Formula] = &[
    messages(Relation::Exact, "(n + 3)(n − 1)", "the smallest starts, or all do", |case| {
        (!case.leader_down && from_the_smallest(case)).then(|| (case.n() + 3.0) * (case.n() - 1.0))
    }),
    messages(
        Relation::Exact,
        "(n − 1)² + 3(n − 2)",
        "the largest is down; the smallest starts",
        |case| {
            let applies = case.leader_down && from_the_smallest(case);
            applies.then(|| (case.n() - 1.0).powi(2) + 3.0 * (case.n() - 2.0))
        },
    ),
    messages(Relation::Exact, "3n − 5", "the largest is down; the next starts", |case| {
        (case.leader_down && case.initiators == Initiators::Largest).then(|| 3.0 * case.n() - 5.0)
    }),
    messages(Relation::Exact, "3(n − 1)", "the largest starts", |case| {
        (!case.leader_down && case.initiators == Initiators::Largest)
            .then(|| 3.0 * (case.n() - 1.0))
    }),
    messages(Relation::AtMost, "(n + 3)(n − 1)", "one starts, or all do", |case| {
        one_or_all(case).then(|| (case.n() + 3.0) * (case.n() - 1.0))
    }),
];

fn from_the_smallest(case: &Case) -> bool {
    ties_by_uid(case) && matches!(case.initiators, Initiators::All | Initiators::Smallest)
}

/// Those who start beside the largest ask on although all have heard of it, and are asked again:
/// more than if all had started, and no bound is known.
fn one_or_all(case: &Case) -> bool {
    let one = case.starters() == Some(1.0);
    ties_by_uid(case) && (one || case.initiators == Initiators::All)
}

/// What arrives at one moment is heard in the order of uids. In other orders a process may hear of
/// the leader first and of the election next, and hold one more.
fn ties_by_uid(case: &Case) -> bool {
    case.order == Order::Ascending
}

const ANONYMOUS: &[Formula] =
    &[messages(Relation::Exact, "2n", "however many stand", |case| Some(2.0 * case.n()))];

const ITAI_RODEH: &[Formula] = &[
    always(Relation::Exact, "2n", "one starts", |case| {
        (case.starters() == Some(1.0)).then(|| 2.0 * case.n())
    }),
    always(Relation::AtLeast, "2n", "", |case| Some(2.0 * case.n())),
];

const LIST_RING: &[Formula] = &[
    always(Relation::Exact, "2kn", "k start together", |case| {
        case.starters().map(|k| 2.0 * k * case.n())
    }),
    always(Relation::AtMost, "2n²", "", |case| Some(2.0 * case.n() * case.n())),
    delays(Quantity::Time, Relation::AtMost, "2n", "", |case| Some(2.0 * case.n())),
];

const CHANG_ROBERTS: &[Formula] = &[
    messages(Relation::Exact, "n(n + 1)/2 + n", "all start, uids descending", |case| {
        all_in_order(case, Order::Descending).then(|| worst_ring(case))
    }),
    messages(Relation::Exact, "3n − 1", "all start, uids ascending", |case| {
        all_in_order(case, Order::Ascending).then(|| 3.0 * case.n() - 1.0)
    }),
    messages(Relation::Mean, "n·Hₙ + n", "all start, over all arrangements", |case| {
        all_in_order(case, Order::Random).then(|| case.n() * (harmonic(case.n) + 1.0))
    }),
    messages(Relation::Mean, "(3n − 1)/2 + n", "one starts, over all arrangements", |case| {
        let one = case.initiators == Initiators::Some(1);
        one.then(|| (3.0 * case.n() - 1.0) / 2.0 + case.n())
    }),
    messages(Relation::AtMost, "3n − 1", "one starts", |case| {
        (case.starters() == Some(1.0)).then(|| 3.0 * case.n() - 1.0)
    }),
    always(Relation::AtMost, "n(n + 1)/2 + n", "", |case| Some(worst_ring(case))),
    always(Relation::AtLeast, "2n", "", |case| Some(2.0 * case.n())),
    delays(Quantity::Time, Relation::AtMost, "3n − 1", "", |case| Some(3.0 * case.n() - 1.0)),
];

fn all_in_order(case: &Case, order: Order) -> bool {
    case.initiators == Initiators::All && case.order_for_max() == order
}

fn worst_ring(case: &Case) -> f64 {
    case.n() * (case.n() + 1.0) / 2.0 + case.n()
}

const FRANKLIN: &[Formula] = &[
    always(Relation::Exact, "5n", "uids ascending or descending: 2 rounds", |case| {
        (case.order != Order::Random).then(|| 5.0 * case.n())
    }),
    always(Relation::AtMost, "2n(⌊log₂ n⌋ + 1) + n", "", |case| {
        Some(2.0 * case.n() * rounds_max(case) + case.n())
    }),
    always(Relation::AtLeast, "5n", "", |case| Some(5.0 * case.n())),
];

const PETERSON: &[Formula] = &[
    always(Relation::Exact, "4n", "uids ascending or descending: 2 phases", |case| {
        (case.order != Order::Random).then(|| 4.0 * case.n())
    }),
    always(Relation::AtMost, "2n(⌊log₂ n⌋ + 1)", "", |case| {
        Some(2.0 * case.n() * rounds_max(case))
    }),
    always(Relation::AtLeast, "4n", "", |case| Some(4.0 * case.n())),
];

fn rounds_max(case: &Case) -> f64 {
    f64::from(case.n.ilog2() + 1)
}

const HIRSCHBERG_SINCLAIR: &[Formula] =
    &[always(Relation::AtMost, "8n(1 + ⌈log₂ n⌉) + n", "", |case| {
        let log = f64::from(case.n.next_power_of_two().ilog2());
        Some(8.0 * case.n() * (1.0 + log) + case.n())
    })];

const YOYO: &[Formula] = &[
    always(Relation::Exact, "(n − 1)(3n − 1)", "everyone linked to everyone", |case| {
        case.complete.then(|| (case.n() - 1.0) * (3.0 * case.n() - 1.0))
    }),
    always(Relation::AtMost, "2E(⌈log₂ n⌉ + 3) − (n − 1)", "", |case| {
        let log = f64::from(case.n.next_power_of_two().ilog2());
        Some(2.0 * case.links() * (log + 3.0) - (case.n() - 1.0))
    }),
    always(Relation::AtLeast, "6E − (n − 1)", "", |case| {
        Some(6.0 * case.links() - (case.n() - 1.0))
    }),
];

const WIRELESS: &[Formula] = &[
    always(Relation::Exact, "4E − (n − 1)", "one starts", |case| {
        let tree = case.starters() == Some(1.0) && case.set("announce") != Some("flood");
        tree.then(|| 4.0 * case.links() - (case.n() - 1.0))
    }),
    always(Relation::Exact, "6E − 3(n − 1)", "one starts, the result is flooded", |case| {
        let flood = case.starters() == Some(1.0) && case.set("announce") == Some("flood");
        flood.then(|| 6.0 * case.links() - 3.0 * (case.n() - 1.0))
    }),
];

const PROBABILISTIC: &[Formula] =
    &[always(Relation::About, "2(n − 1) + k²", "one starts", |case| {
        let k = case.set("k").map_or(Some(8.0), |k| k.parse::<f64>().ok())?;
        (case.starters() == Some(1.0)).then(|| 2.0 * (case.n() - 1.0) + k * k)
    })];
