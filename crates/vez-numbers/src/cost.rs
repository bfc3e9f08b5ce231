//! What an algorithm should cost: the formulas of the literature, as text and as numbers.
//!
//! [`of`] gives an algorithm's formulas, [`Cost::evaluate`] those that say something of one case.
//! Each says how it relates to what is measured: equal to it, never below or above it, or its
//! mean. Where there is none, it says why.

mod elections;
mod entries;

use std::collections::BTreeMap;

use serde::Serialize;

/// What is known of one algorithm's cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    pub algorithm: &'static str,
    pub per: Per,
    pub formulas: &'static [Formula],
    /// Why there is no formula, or none for some cases.
    pub reason: Option<&'static str>,
    /// The settings the formulas take into account. Others must be at their defaults.
    #[serde(skip)]
    settings: &'static [&'static str],
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// All messages until everyone knows the leader.
    Election,
    /// Messages for one time inside, on the average of a run.
    Entry,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Formula {
    pub quantity: Quantity,
    pub relation: Relation,
    /// As people write it: `2(n − 1)`.
    pub text: &'static str,
    /// When it holds.
    pub when: &'static str,
    /// Whether it holds whatever the delays, or only when every message takes 1 ms.
    pub any_schedule: bool,
    #[serde(skip)]
    value: fn(&Case) -> Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    Messages,
    /// Until everyone knows the leader, in message delays.
    Time,
    /// From asking to entering, in message delays.
    Wait,
}

/// How a formula relates to what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Every run.
    Exact,
    /// The mean over all arrangements, or over all who may start.
    Mean,
    AtMost,
    AtLeast,
    /// Roughly: the literature's estimate, or a formula for other delays than these.
    About,
}

impl Relation {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Exact => "=",
            Self::Mean => "mean",
            Self::AtMost => "≤",
            Self::AtLeast => "≥",
            Self::About => "≈",
        }
    }
}

/// What ran: everything a formula may depend on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Case {
    pub n: u32,
    /// Links, each counted once.
    pub links: u64,
    pub diameter: u32,
    /// Whether everyone is linked to everyone.
    pub complete: bool,
    pub initiators: Initiators,
    /// How uids lie along the direction of travel, or of the processes' addresses.
    pub order: Order,
    /// Whether who would win is down from the start.
    pub leader_down: bool,
    pub askers: Askers,
    /// How often each asker asks, again as soon as it has left.
    pub requests: u32,
    /// The smallest and the largest quorum, where each process has one.
    pub quorum: Option<(u32, u32)>,
    /// Nothing is lost, nobody crashes on the way.
    pub faultless: bool,
    /// Every message takes 1 ms, and all start together.
    pub steady: bool,
    /// The settings that are not at their defaults.
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initiators {
    All,
    /// Exactly so many.
    Some(u32),
    /// One: the smallest or the largest uid of those that are up.
    Smallest,
    Largest,
    /// Some, and it is not known how many.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    Ascending,
    Descending,
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Askers {
    /// Everyone, at once.
    All,
    /// Several, at once, without the first, which coordinates or has the token where there is one.
    Some,
    /// One, and not the first.
    One,
}

impl Case {
    /// Everyone starts or asks once, all at once, on the reference schedule.
    pub fn new(n: u32) -> Self {
        let wide = u64::from(n);
        Self {
            n,
            links: wide * (wide - 1) / 2,
            diameter: u32::from(n > 1),
            complete: true,
            initiators: Initiators::All,
            order: Order::Random,
            leader_down: false,
            askers: Askers::All,
            requests: 1,
            quorum: None,
            faultless: true,
            steady: true,
            settings: BTreeMap::new(),
        }
    }

    fn n(&self) -> f64 {
        f64::from(self.n)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 20 million links")]
    fn links(&self) -> f64 {
        self.links as f64
    }

    fn set(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }

    /// How many start, if that is known.
    fn starters(&self) -> Option<f64> {
        match self.initiators {
            Initiators::All => Some(self.n() - f64::from(u8::from(self.leader_down))),
            Initiators::Some(count) => Some(f64::from(count)),
            Initiators::Smallest | Initiators::Largest => Some(1.0),
            Initiators::Unknown => None,
        }
    }

    /// The order as seen by who looks for the largest.
    fn order_for_max(&self) -> Order {
        match (self.set("pick"), self.order) {
            (Some("min"), Order::Ascending) => Order::Descending,
            (Some("min"), Order::Descending) => Order::Ascending,
            (_, order) => order,
        }
    }
}

/// A formula with its value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    pub quantity: Quantity,
    pub relation: Relation,
    pub text: &'static str,
    pub when: &'static str,
    pub value: f64,
}

/// The formulas of the algorithm of this name.
pub fn of(algorithm: &str) -> Option<Cost> {
    let all = elections::ALL.iter().chain(entries::ALL);
    all.copied().find(|cost| cost.algorithm == algorithm)
}

impl Cost {
    /// The formulas that say something of this case, with their values.
    pub fn evaluate(&self, case: &Case) -> Vec<Value> {
        let known = |key: &String| self.settings.contains(&key.as_str());
        if !case.settings.keys().all(known) {
            return Vec::new();
        }
        if case.n == 1 && !self.formulas.is_empty() {
            let (quantity, relation) = (Quantity::Messages, Relation::Exact);
            return vec![Value { quantity, relation, text: "0", when: "alone", value: 0.0 }];
        }
        let holds = |formula: &Formula| case.faultless && (case.steady || formula.any_schedule);
        let value = |formula: &Formula| {
            let relation = match formula.relation {
                relation if holds(formula) => relation,
                // An equality for other delays, or without faults, is still a yardstick; a bound
                // is none.
                Relation::AtMost | Relation::AtLeast => return None,
                Relation::Exact | Relation::Mean | Relation::About => Relation::About,
            };
            let Formula { quantity, text, when, .. } = *formula;
            (formula.value)(case).map(|value| Value { quantity, relation, text, when, value })
        };
        self.formulas.iter().filter_map(value).collect()
    }

    /// The one formula that says most of this case: an equality, a mean, else the upper bound.
    pub fn best(&self, case: &Case, quantity: Quantity) -> Option<Value> {
        let rank = |value: &Value| match value.relation {
            Relation::Exact => 0,
            Relation::Mean => 1,
            Relation::AtMost => 2,
            Relation::About => 3,
            Relation::AtLeast => 4,
        };
        let of_quantity = self.evaluate(case).into_iter().filter(|v| v.quantity == quantity);
        of_quantity.min_by_key(rank)
    }
}

/// The harmonic number `1 + 1/2 + … + 1/n`.
pub fn harmonic(n: u32) -> f64 {
    // From the smallest term, so that little is lost in rounding.
    (1..=n).rev().map(|k| 1.0 / f64::from(k)).sum()
}

const fn messages(
    relation: Relation,
    text: &'static str,
    when: &'static str,
    value: fn(&Case) -> Option<f64>,
) -> Formula {
    Formula { quantity: Quantity::Messages, relation, text, when, any_schedule: false, value }
}

/// As [`messages`], whatever the delays.
const fn always(
    relation: Relation,
    text: &'static str,
    when: &'static str,
    value: fn(&Case) -> Option<f64>,
) -> Formula {
    Formula { any_schedule: true, ..messages(relation, text, when, value) }
}

const fn delays(
    quantity: Quantity,
    relation: Relation,
    text: &'static str,
    when: &'static str,
    value: fn(&Case) -> Option<f64>,
) -> Formula {
    Formula { quantity, relation, text, when, any_schedule: false, value }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "whole numbers are exact")]
mod tests {
    use super::{Case, Initiators, Order, Quantity, Relation, elections, entries, harmonic, of};

    fn best(name: &str, case: &Case) -> (Relation, f64) {
        let value = of(name).unwrap().best(case, Quantity::Messages).unwrap();
        (value.relation, value.value)
    }

    #[test]
    fn names_are_listed_once_and_what_has_no_formula_has_a_reason() {
        let all: Vec<_> = elections::ALL.iter().chain(entries::ALL).collect();
        for (i, cost) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.algorithm != cost.algorithm));
            let explained = cost.reason.is_some_and(|reason| !reason.is_empty());
            assert!(explained || !cost.formulas.is_empty(), "{}", cost.algorithm);
        }
        assert!(of("paxos").is_none());
    }

    #[test]
    fn the_notes_exercise_has_its_number() {
        let case = Case { order: Order::Descending, ..Case::new(8) };
        assert_eq!(best("chang-roberts", &case), (Relation::Exact, 36.0 + 8.0));
        let case = Case { order: Order::Ascending, ..Case::new(8) };
        assert_eq!(best("chang-roberts", &case), (Relation::Exact, 15.0 + 8.0));
        let (relation, mean) = best("chang-roberts", &Case::new(8));
        assert_eq!(relation, Relation::Mean);
        assert!((mean - (8.0 * 761.0 / 280.0 + 8.0)).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn looking_for_the_smallest_turns_the_ring_round() {
        let mut case = Case { order: Order::Ascending, ..Case::new(8) };
        case.settings.insert("pick".to_owned(), "min".to_owned());
        assert_eq!(best("chang-roberts", &case), (Relation::Exact, 36.0 + 8.0));
    }

    #[test]
    fn settings_that_no_formula_knows_leave_none() {
        let mut case = Case::new(8);
        case.settings.insert("variant".to_owned(), "substitute".to_owned());
        assert!(of("chang-roberts").unwrap().evaluate(&case).is_empty());
    }

    #[test]
    fn the_bully_costs_what_the_table_says() {
        let order = Order::Ascending;
        let with =
            |initiators, leader_down| Case { initiators, order, leader_down, ..Case::new(7) };
        let exact = |case: &Case| {
            let (relation, value) = best("bully", case);
            assert_eq!(relation, Relation::Exact);
            value
        };
        assert_eq!(exact(&with(Initiators::Largest, true)), 7.0);
        assert_eq!(exact(&with(Initiators::Smallest, true)), 42.0);
        assert_eq!(exact(&with(Initiators::Smallest, false)), 48.0);
    }

    #[test]
    fn other_delays_leave_a_yardstick_unless_the_formula_does_not_mind() {
        let case = Case { steady: false, order: Order::Ascending, ..Case::new(8) };
        assert_eq!(best("ricart-agrawala", &case).0, Relation::Exact);
        assert_eq!(best("bully", &case).0, Relation::About);
        let case = Case { faultless: false, ..Case::new(8) };
        assert_eq!(best("ricart-agrawala", &case), (Relation::About, 14.0));
        assert_eq!(of("maekawa").unwrap().best(&case, Quantity::Messages), None);
    }

    #[test]
    fn a_mean_lies_between_its_bounds() {
        for (name, order) in [("chang-roberts", Order::Random), ("bully", Order::Ascending)] {
            for n in 2..200 {
                for initiators in [Initiators::All, Initiators::Some(1)] {
                    let case = Case { initiators, order, ..Case::new(n) };
                    let values = of(name).unwrap().evaluate(&case);
                    let of_relation = |relation| {
                        let mut found = values.iter().filter(|v| v.relation == relation);
                        found.find(|v| v.quantity == Quantity::Messages).map(|v| v.value)
                    };
                    let Some(mean) = of_relation(Relation::Mean) else { continue };
                    assert!(of_relation(Relation::AtLeast).unwrap() <= mean, "{name} {n}");
                    assert!(mean <= of_relation(Relation::AtMost).unwrap(), "{name} {n}");
                }
            }
        }
    }

    #[test]
    fn harmonic_numbers_are_known() {
        assert_eq!(harmonic(1), 1.0);
        assert!((harmonic(4) - 25.0 / 12.0).abs() < 1e-15);
        assert!((harmonic(1_000_000) - 14.392_726_722_865_724).abs() < 1e-12);
    }
}
