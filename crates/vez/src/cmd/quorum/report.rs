//! The answer for scripts.

use std::fmt::Write as _;

use serde::Serialize;
use vez_numbers::Fraction;
use vez_numbers::quorum::{Risk, exactly, given, split_round};

use super::{Answer, Asked, CONFIDENCE, Dice, Thrown};

/// Digits of a probability.
const DIGITS: u32 = 40;

#[derive(Serialize)]
pub(super) struct Report {
    coordinators: u32,
    quorum: u32,
    restart_probability: String,
    down_probability: String,
    overlap: u32,
    violation_probability: String,
    fixed_rival_probability: String,
    availability: String,
    unavailability: String,
    /// One given coordinator restarts and no other does; exactly one does, whichever.
    one_given_restarts: String,
    exactly_one_restarts: String,
    target: String,
    meets_target: bool,
    /// The smallest quorum that meets the target.
    smallest_quorum: Option<u32>,
    /// Quorums up to this size need not meet: unsafe even without failures.
    unsafe_up_to: u32,
    split_round: Vec<Split>,
    every_quorum: Vec<Row>,
    simulation: Option<Simulation>,
}

#[derive(Serialize)]
struct Split {
    participants: u32,
    probability: String,
}

#[derive(Serialize)]
struct Row {
    quorum: u32,
    overlap: u32,
    violation_probability: String,
    fixed_rival_probability: String,
    availability: String,
    unavailability: String,
}

#[derive(Serialize)]
struct Simulation {
    seed: u64,
    trials: u64,
    confidence: f64,
    agrees: bool,
    violation: Seen,
    fixed_rival: Seen,
}

#[derive(Serialize)]
struct Seen {
    feasible: bool,
    trials_needed: Option<String>,
    times: Option<u64>,
    interval: Option<[f64; 2]>,
    agrees: Option<bool>,
}

pub(super) fn report(asked: &Asked, answer: &Answer) -> Report {
    let risk = answer.risk(asked);
    let row = row(risk);
    let split = |&participants: &u32| Split {
        participants,
        probability: decimal(&split_round(asked.n, asked.m, participants)),
    };
    Report {
        coordinators: asked.n,
        quorum: asked.m,
        restart_probability: asked.restart_text.clone(),
        down_probability: asked.down_text.clone(),
        overlap: row.overlap,
        violation_probability: row.violation_probability,
        fixed_rival_probability: row.fixed_rival_probability,
        availability: row.availability,
        unavailability: row.unavailability,
        one_given_restarts: decimal(&given(asked.n, 1, &asked.restart)),
        exactly_one_restarts: decimal(&exactly(asked.n, 1, &asked.restart)),
        target: decimal(&asked.target),
        meets_target: risk.violation <= asked.target,
        smallest_quorum: answer.smallest,
        unsafe_up_to: asked.n / 2,
        split_round: asked.participants.iter().map(split).collect(),
        every_quorum: answer.every.iter().map(self::row).collect(),
        simulation: answer.dice.as_ref().map(simulation),
    }
}

pub(super) fn csv(answer: &Answer) -> String {
    let mut out = String::from(
        "quorum,overlap,violation_probability,fixed_rival_probability,availability,unavailability\n",
    );
    for row in answer.every.iter().map(row) {
        let probabilities = [
            row.violation_probability,
            row.fixed_rival_probability,
            row.availability,
            row.unavailability,
        ];
        writeln!(out, "{},{},{}", row.quorum, row.overlap, probabilities.join(","))
            .expect("to a string");
    }
    out
}

fn row(risk: &Risk) -> Row {
    Row {
        quorum: risk.quorum,
        overlap: risk.overlap,
        violation_probability: decimal(&risk.violation),
        fixed_rival_probability: decimal(&risk.fixed_rival),
        availability: decimal(&risk.unavailable.complement().expect("a probability")),
        unavailability: decimal(&risk.unavailable),
    }
}

fn decimal(value: &Fraction) -> String {
    value.scientific(DIGITS).to_string()
}

fn simulation(dice: &Dice) -> Simulation {
    let seen = |thrown: &Thrown| match thrown {
        Thrown::TooRare(needed) => Seen {
            feasible: false,
            trials_needed: Some(needed.scientific(3).to_string()),
            times: None,
            interval: None,
            agrees: None,
        },
        Thrown::Seen { times, low, high, agrees } => Seen {
            feasible: true,
            trials_needed: None,
            times: Some(*times),
            interval: Some([*low, *high]),
            agrees: Some(*agrees),
        },
    };
    Simulation {
        seed: dice.seed,
        trials: dice.trials,
        confidence: CONFIDENCE,
        agrees: dice.agrees(),
        violation: seen(&dice.violation),
        fixed_rival: seen(&dice.fixed_rival),
    }
}
