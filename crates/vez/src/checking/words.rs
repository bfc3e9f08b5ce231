//! A check in sentences.

use vez_check::{Judgement, Options, Outcome, Search, Stop, Verdict};
use vez_core::{Channel, Timing};

use crate::registry::Entry;

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// What may happen in the runs: a heading and a sentence each.
pub fn model(entry: &Entry, options: &Options) -> Vec<(&'static str, String)> {
    let mut messages = match options.channel {
        Channel::Lossy => "may be lost, repeated and overtaken, as often as you like",
        Channel::Reliable => "in any order",
        Channel::Fifo => "in the order sent",
    }
    .to_owned();
    if options.channel != Channel::Lossy {
        let lost = match options.losses {
            0 => "none lost".to_owned(),
            losses => format!("up to {losses} lost"),
        };
        let again = match options.duplicates {
            0 => "none heard twice".to_owned(),
            duplicates => format!("up to {duplicates} heard again"),
        };
        messages += &format!(", {lost}, {again}");
    }
    if options.partitions > 0 {
        let splits = options.partitions;
        messages += &format!("; the network may fall in two {splits} ×, and heals");
    }
    let timing = match options.timing {
        _ if (entry.timers)().is_empty() => "none",
        Timing::Asynchronous => "may run out at any moment",
        Timing::Synchronous => "run out only when all that was said has been heard",
    };
    let unsent = if options.unsent { ", also between saving and sending" } else { "" };
    let back = match (options.restarts, options.amnesia) {
        (false, _) => ", for good",
        (true, false) => "; who crashed may come back",
        (true, true) => "; who crashed may come back, and may have forgotten everything",
    };
    let crashes = match options.crashes {
        0 => "none".to_owned(),
        crashes => format!("up to {crashes}{unsent}{back}"),
    };
    vec![("messages", messages), ("timers", timing.to_owned()), ("crashes", crashes)]
}

/// How much was searched.
pub fn searched(outcome: &Outcome) -> String {
    let states = counted(outcome.states, "state", "states");
    let transitions = counted(outcome.transitions, "transition", "transitions");
    let depth = counted(outcome.depth.into(), "step", "steps");
    format!("{states}, {transitions}, {depth} deep")
}

/// Whether that was all, and if not, why not.
pub fn stopped(outcome: &Outcome, options: &Options) -> String {
    let Some(stop) = outcome.stopped else {
        return "complete: these are all the runs there are".to_owned();
    };
    let found = outcome.counterexample.as_ref();
    let is_endless = found.is_some_and(|found| found.cycle_from.is_some());
    let why = match stop {
        Stop::Broken if options.keep_going || is_endless => {
            return "every state there is was seen".to_owned();
        }
        Stop::Broken => {
            return "stopped at the first broken promise (--keep-going goes on)".to_owned();
        }
        Stop::Epoch => {
            let (seen, next) = (options.epoch_max, options.epoch_max + 1);
            format!("nothing after epoch {seen} was explored (--epochs {next} goes further)")
        }
        Stop::States => {
            format!("stopped after {} states (--max-states)", grouped(options.states_max))
        }
        Stop::Memory => format!("{} of memory are full (--memory)", size(options.memory_max)),
        Stop::Cancelled => "interrupted".to_owned(),
        Stop::Walks => match options.search {
            Search::Walks { count, steps_max, seed } => format!(
                "{} random runs of at most {} steps were tried, seed {seed}",
                grouped(count),
                grouped(steps_max.into())
            ),
            _ => "only some runs were tried".to_owned(),
        },
        Stop::Bitstate => "with a few bits a state some were taken for others".to_owned(),
    };
    format!("incomplete: {why}")
}

/// What is said of a promise, after its name.
pub fn judged(verdict: &Verdict) -> String {
    let judgement = match verdict.judgement {
        Judgement::Kept => "kept in every run",
        Judgement::KeptSoFar => "kept as far as was searched",
        Judgement::Broken => "broken",
        Judgement::Unjudged => "not judged: here everything may be lost for ever",
    };
    match &verdict.detail {
        Some(detail) => format!("{judgement}: {detail}"),
        None => judgement.to_owned(),
    }
}

/// `4 GiB`, `12.5 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| *unit <= bytes) {
        Some((name, unit)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}
