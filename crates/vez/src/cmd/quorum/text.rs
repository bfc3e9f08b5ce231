//! The answer in words.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use vez_draw::chart::readable;
use vez_numbers::quorum::{Risk, exactly, given, split_round};

use super::super::figures::{grouped, number, probability};
use super::{Answer, Asked, Dice, Thrown};

/// A longer table leaves out what nobody asked about.
const ROWS_MAX: usize = 24;

pub(super) fn text(asked: &Asked, answer: &Answer, brief: bool) -> String {
    let mut out = String::new();
    head(&mut out, asked, answer);
    if !brief {
        splits(&mut out, asked);
        table(&mut out, asked, answer);
    }
    if let Some(dice) = &answer.dice {
        thrown(&mut out, asked, answer.risk(asked), dice);
    }
    out
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("to a string");
}

fn head(out: &mut String, asked: &Asked, answer: &Answer) {
    let (n, m, risk) = (asked.n, asked.m, answer.risk(asked));
    put(out, format_args!("A quorum of {m} of {n} coordinators"));
    let restart = "that one given coordinator restarts, and forgets, while somebody is inside";
    put(out, format_args!("  P = {}: {restart}", asked.restart_text));
    let down = "that one given coordinator is down when asked";
    put(out, format_args!("  Q = {}: {down}", asked.down_text));
    put(out, format_args!(""));
    let overlap = risk.overlap;
    let one = "one given coordinator restarts, no other";
    let facts = [
        ("any two quorums share at least", format!("{overlap} = 2·{m} − {n}")),
        ("a violation becomes possible, P_v", probability(&risk.violation, 20)),
        ("  by one given rival, P^overlap", probability(&risk.fixed_rival, 20)),
        (one, probability(&given(n, 1, &asked.restart), 6)),
        ("exactly one restarts, whichever", probability(&exactly(n, 1, &asked.restart), 6)),
    ];
    for (what, value) in facts {
        put(out, format_args!("  {what:43}{value}"));
    }
    let unavailable = probability(&risk.unavailable, 6);
    put(out, format_args!("  {:43}{unavailable}", format!("unavailable: fewer than {m} are up")));
    let target = number(&asked.target, 3);
    let verdict = match (risk.violation <= asked.target, answer.smallest) {
        (true, Some(smallest)) if smallest == m => "✔ met, by no smaller quorum".to_owned(),
        (true, Some(smallest)) => format!("✔ met; a quorum of {smallest} would do"),
        (_, Some(smallest)) => format!("✘ not met; it takes a quorum of {smallest}"),
        (_, None) => format!("✘ not met by any quorum of {n}"),
    };
    put(out, format_args!("  {:43}{verdict}", format!("target: P_v at most {target}")));
}

fn splits(out: &mut String, asked: &Asked) {
    put(out, format_args!(""));
    put(
        out,
        format_args!(
            "A split round: each coordinator lets one in by lot, and nobody gets {} of {}",
            asked.m, asked.n
        ),
    );
    for &participants in &asked.participants {
        let split = split_round(asked.n, asked.m, participants);
        let exact = split.in_lowest_terms();
        let fraction = format!("{}/{}", exact.numerator(), exact.denominator());
        let exactly = match fraction.len() <= 12 && !split.is_zero() && !split.is_one() {
            true => format!(" = {fraction}"),
            false => String::new(),
        };
        let asking = format!("{participants} ask at once");
        put(out, format_args!("  {asking:43}{}{exactly}", probability(&split, 6)));
    }
}

fn table(out: &mut String, asked: &Asked, answer: &Answer) {
    put(out, format_args!(""));
    put(out, format_args!("   quorum  overlap  {:20}  unavailable", "P_v"));
    let unsafe_up_to = match asked.n / 2 {
        0 => None,
        1 => Some("1".to_owned()),
        half => Some(format!("1–{half}")),
    };
    if let Some(sizes) = unsafe_up_to {
        let why = "unsafe even without failures: two quorums need not meet";
        put(out, format_args!("  {sizes:>7}        0  {why}"));
    }
    let shown = shown(asked, answer);
    let mut last = None;
    for &index in &shown {
        if last.is_some_and(|last| last + 1 < index) {
            put(out, format_args!("        ⋮"));
        }
        last = Some(index);
        let risk = &answer.every[index];
        let mark = match (risk.quorum == asked.m, Some(risk.quorum) == answer.smallest) {
            (true, true) => "  ← asked for, and the smallest for the target",
            (true, false) => "  ← asked for",
            (false, true) => "  ← the smallest for the target",
            (false, false) => "",
        };
        let (quorum, overlap) = (risk.quorum, risk.overlap);
        let [violation, unavailable] =
            [&risk.violation, &risk.unavailable].map(|chance| probability(chance, 6));
        let width = if mark.is_empty() { 0 } else { 14 };
        put(
            out,
            format_args!("  {quorum:7}  {overlap:7}  {violation:20}  {unavailable:width$}{mark}"),
        );
    }
    if shown.len() < answer.every.len() {
        put(out, format_args!("  (all {} with --format csv)", answer.every.len()));
    }
}

/// Rows by index: all of a short table; of a long one the ends and the neighbours of what matters.
fn shown(asked: &Asked, answer: &Answer) -> BTreeSet<usize> {
    let count = answer.every.len();
    if count <= ROWS_MAX {
        return (0..count).collect();
    }
    let index = |quorum: u32| (quorum - (asked.n / 2 + 1)) as usize;
    let mut shown = BTreeSet::from([0, 1, count - 2, count - 1]);
    for centre in answer.smallest.into_iter().chain([asked.m]).map(index) {
        shown.extend(centre.saturating_sub(3)..(centre + 4).min(count));
    }
    shown
}

fn thrown(out: &mut String, asked: &Asked, risk: &Risk, dice: &Dice) {
    put(out, format_args!(""));
    put(out, format_args!("{} throws of the dice, seed {}", grouped(dice.trials), dice.seed));
    let asked_of = [
        ("P_v", &dice.violation, &risk.violation),
        ("one given rival", &dice.fixed_rival, &risk.fixed_rival),
    ];
    for (what, thrown, chance) in asked_of {
        let said = match thrown {
            Thrown::TooRare(needed) => {
                format!("too rare to be seen: it takes about {} throws", number(needed, 2))
            }
            Thrown::Seen { times, low, high, agrees } => {
                let verdict = match agrees {
                    true => format!("✔ agrees with {}", probability(chance, 6)),
                    false => format!("✘ disagrees with {}", probability(chance, 6)),
                };
                let times = grouped(*times);
                let between = format!("{} to {}", readable(*low), readable(*high));
                format!("{times} times: {between} (99.9 % sure) {verdict}")
            }
        };
        put(out, format_args!("  {what:17}{said}"));
    }
    if !dice.agrees() {
        let why = "one seed in a thousand disagrees by bad luck; try another";
        put(out, format_args!("  (for P = {}: {why})", asked.restart_text));
    }
}
