//! What one time inside costs, on the average of a run.

use super::{Askers, Case, Cost, Formula, Per, Quantity, Relation, always, delays, messages};

pub(super) const ALL: &[Cost] = &[
    cost("coordinator", COORDINATOR, None, &["acknowledge"]),
    cost("token-ring", TOKEN_RING, Some("several ask: depends on where they are"), &[]),
    cost(
        "quorum",
        QUORUM,
        Some("rivals may block each other, or try again and again: no bound"),
        &["retry_after", "quorum", "coordinators"],
    ),
    cost("lamport", LAMPORT, None, &["save_replies"]),
    cost("ricart-agrawala", RICART_AGRAWALA, None, &["variant"]),
    cost("ricart-agrawala-tanenbaum", TANENBAUM, None, &[]),
    cost("maekawa", MAEKAWA, None, &["quorums"]),
    cost("suzuki-kasami", SUZUKI_KASAMI, None, &[]),
    cost("raymond", RAYMOND, None, &[]),
    cost(
        "elected-coordinator",
        &[],
        Some("3 an entry, besides elections and heartbeats that go on as long as the run does"),
        &[],
    ),
];

const fn cost(
    algorithm: &'static str,
    formulas: &'static [Formula],
    reason: Option<&'static str>,
    settings: &'static [&'static str],
) -> Cost {
    Cost { algorithm, per: Per::Entry, formulas, reason, settings }
}

const fn waits(relation: Relation, text: &'static str, value: fn(&Case) -> Option<f64>) -> Formula {
    delays(Quantity::Wait, relation, text, "one asks", value)
}

fn alone(case: &Case) -> bool {
    case.askers == Askers::One
}

/// Two delays for who asks alone: the question and the answer.
fn round_trip(case: &Case) -> Option<f64> {
    (alone(case) && case.requests == 1).then_some(2.0)
}

/// How often anyone is inside when all ask.
fn entries(case: &Case) -> f64 {
    case.n() * f64::from(case.requests)
}

const COORDINATOR: &[Formula] = &[
    always(Relation::Exact, "3", "the coordinator does not ask", |case| {
        (case.askers != Askers::All && !acknowledged(case)).then_some(3.0)
    }),
    always(Relation::Exact, "4", "acknowledged, the coordinator does not ask", |case| {
        (case.askers != Askers::All && acknowledged(case)).then_some(4.0)
    }),
    always(Relation::Exact, "3(n − 1)/n", "all ask, the coordinator for nothing", |case| {
        let share = (case.n() - 1.0) / case.n();
        (case.askers == Askers::All && !acknowledged(case)).then_some(3.0 * share)
    }),
    always(Relation::Exact, "4(n − 1)/n", "acknowledged, all ask", |case| {
        let share = (case.n() - 1.0) / case.n();
        (case.askers == Askers::All && acknowledged(case)).then_some(4.0 * share)
    }),
    waits(Relation::Exact, "2", round_trip),
];

fn acknowledged(case: &Case) -> bool {
    case.set("acknowledge") == Some("true")
}

const TOKEN_RING: &[Formula] = &[
    messages(Relation::Exact, "1 − 1/(nk)", "all ask k times: one hop each", |case| {
        (case.askers == Askers::All).then(|| 1.0 - 1.0 / entries(case))
    }),
    messages(Relation::AtMost, "n", "", |case| Some(case.n())),
    messages(Relation::Mean, "n/2", "one asks once, over all others", |case| {
        (alone(case) && case.requests == 1).then(|| case.n() / 2.0)
    }),
    waits(Relation::AtMost, "n", |case| (alone(case) && case.requests == 1).then(|| case.n())),
];

const QUORUM: &[Formula] = &[
    messages(Relation::Exact, "3(n − 1)", "one asks, all coordinate", |case| {
        (alone(case) && case.set("coordinators").is_none()).then(|| 3.0 * (case.n() - 1.0))
    }),
    messages(Relation::AtMost, "3c", "one asks, c coordinate", |case| {
        let count: f64 = case.set("coordinators")?.parse().ok()?;
        alone(case).then_some(3.0 * count)
    }),
    waits(Relation::Exact, "2", |case| {
        round_trip(case).filter(|_| case.set("coordinators").is_none())
    }),
];

const LAMPORT: &[Formula] = &[
    always(Relation::Exact, "3(n − 1)", "", |case| {
        case.set("save_replies").is_none().then(|| 3.0 * (case.n() - 1.0))
    }),
    always(Relation::AtMost, "3(n − 1)", "with save_replies", |case| {
        case.set("save_replies").map(|_| 3.0 * (case.n() - 1.0))
    }),
    always(Relation::AtLeast, "2(n − 1)", "with save_replies", |case| {
        case.set("save_replies").map(|_| 2.0 * (case.n() - 1.0))
    }),
    waits(Relation::Exact, "2", round_trip),
];

const RICART_AGRAWALA: &[Formula] = &[
    always(Relation::Exact, "2(n − 1)", "", |case| {
        case.set("variant").is_none().then(|| 2.0 * (case.n() - 1.0))
    }),
    always(Relation::AtMost, "2(n − 1)", "with kept permissions", |case| {
        case.set("variant").map(|_| 2.0 * (case.n() - 1.0))
    }),
    waits(Relation::Exact, "2", |case| round_trip(case).filter(|_| case.settings.is_empty())),
];

const TANENBAUM: &[Formula] = &[
    messages(Relation::Exact, "2(n − 1)", "one asks", |case| {
        alone(case).then(|| 2.0 * (case.n() - 1.0))
    }),
    messages(Relation::AtLeast, "2(n − 1)", "", |case| Some(2.0 * (case.n() - 1.0))),
    waits(Relation::Exact, "2", round_trip),
];

const MAEKAWA: &[Formula] = &[
    messages(Relation::Exact, "3(K − 1)", "one asks, all quorums alike", |case| {
        let (smallest, largest) = case.quorum?;
        (alone(case) && smallest == largest).then(|| 3.0 * f64::from(largest - 1))
    }),
    messages(Relation::AtMost, "3(K − 1)", "one asks, K the largest quorum", |case| {
        let (_, largest) = case.quorum?;
        alone(case).then(|| 3.0 * f64::from(largest - 1))
    }),
    always(Relation::AtMost, "6(K − 1)", "K the largest quorum", |case| {
        Some(6.0 * f64::from(case.quorum?.1 - 1))
    }),
    always(Relation::AtLeast, "3(K − 1)", "K the smallest quorum", |case| {
        Some(3.0 * f64::from(case.quorum?.0 - 1))
    }),
    waits(Relation::Exact, "2", round_trip),
];

const SUZUKI_KASAMI: &[Formula] = &[
    messages(Relation::Exact, "n − 1", "all ask once; the first has the token", |case| {
        (case.askers == Askers::All && case.requests == 1).then(|| case.n() - 1.0)
    }),
    messages(Relation::Exact, "n", "one asks once, and not the holder", |case| {
        (alone(case) && case.requests == 1).then(|| case.n())
    }),
    always(Relation::AtMost, "n", "", |case| Some(case.n())),
    waits(Relation::Exact, "2", round_trip),
];

const RAYMOND: &[Formula] = &[
    messages(Relation::AtMost, "2D", "one asks, the token D links away at most", |case| {
        alone(case).then(|| 2.0 * f64::from(case.diameter))
    }),
    messages(Relation::About, "4", "all ask again and again", |case| {
        (case.askers == Askers::All && 1 < case.requests).then_some(4.0)
    }),
    waits(Relation::AtMost, "2D", |case| {
        (alone(case) && case.requests == 1).then(|| 2.0 * f64::from(case.diameter))
    }),
];
