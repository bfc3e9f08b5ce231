//! The sums of a quorum against closed forms, against every case of small systems, and against
//! what must hold whatever the numbers.

use proptest::prelude::*;
use vez_numbers::quorum::{Risk, exactly, given, risks, split_round};
use vez_numbers::{Fraction, simulate, trials_needed};

fn fraction(text: &str) -> Fraction {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn risk(n: u32, m: u32, restart: &str) -> Risk {
    let restart = fraction(restart);
    let all = risks(n, &restart, &restart);
    all.into_iter().find(|risk| risk.quorum == m).expect("more than half")
}

fn digits(value: &Fraction, count: u32) -> String {
    value.scientific(count).to_string()
}

#[test]
fn s08_thirty_two_coordinators_and_a_quorum_of_twenty_four() {
    let risk = risk(32, 24, "1e-4");
    assert_eq!(risk.overlap, 16);
    assert_eq!(digits(&risk.violation, 30), "7.34917416615880854323814016455e-59");
    assert_eq!(digits(&risk.fixed_rival, 20), "1.0000000000000000000e-64");
    assert!(risk.violation < fraction("1e-40"), "as the notes say");
}

/// One minute every ten days is 1 in 14,400, not one in ten thousand.
#[test]
fn s08_as_the_notes_meant_it() {
    let risk = risk(32, 24, "1/14400");
    assert_eq!(digits(&risk.violation, 11), "2.1504957574e-61");
    assert_eq!(fraction("1/14400"), fraction("60/864000"));
}

#[test]
fn s09_overlaps() {
    for (n, m, overlap) in [(3, 2, 1), (7, 4, 1), (7, 5, 3), (32, 24, 16), (1, 1, 1), (4, 3, 2)] {
        assert_eq!(risk(n, m, "0.5").overlap, overlap, "{m} of {n}");
    }
}

#[test]
fn an_overlap_of_one_is_violated_by_any_restart_in_the_quorum() {
    for restart in ["0", "1e-300", "1e-4", "1/3", "0.5", "0.999", "1"] {
        for (n, m) in [(3, 2), (7, 4), (1, 1), (101, 51)] {
            let kept = fraction(restart).complement().unwrap().pow(m);
            assert_eq!(risk(n, m, restart).violation, kept.complement().unwrap(), "{m} of {n}");
        }
    }
}

#[test]
fn nothing_cancels_however_small_or_large_the_probability() {
    // 1 − (1 − P)² = 2P − P², of which a double keeps nothing for such a P.
    let tiny = risk(3, 2, "1e-300").violation;
    assert_eq!(digits(&tiny, 25), "2.000000000000000000000000e-300");
    // 1 − 10⁻⁶⁰ has sixty nines.
    let nearly = "0.999999999999999999999999999999";
    let high = risk(3, 2, nearly).violation;
    assert_eq!(digits(&high.complement().unwrap(), 5), "1.0000e-60");
    assert_eq!(high.scientific(60).digits, "9".repeat(60));
    assert!(risk(32, 24, "0").violation.is_zero());
    assert!(risk(32, 24, "1").violation.is_one());
    assert!(risk(32, 24, "1").fixed_rival.is_one());
    assert!(risk(32, 24, "1").unavailable.is_one());
    assert!(risk(32, 24, "0").unavailable.is_zero());
}

/// The sum of the definition, term by term: what the recurrence must come to.
fn definition(n: u32, m: u32, restart: &Fraction) -> Fraction {
    let terms = (2 * m - n..=m).map(|k| exactly(m, k, restart));
    terms.reduce(|sum, term| plus(&sum, &term)).expect("at least one term")
}

fn plus(one: &Fraction, other: &Fraction) -> Fraction {
    let numerator = one.numerator() * other.denominator() + other.numerator() * one.denominator();
    format!("{numerator}/{}", one.denominator() * other.denominator()).parse().unwrap()
}

#[test]
fn the_recurrence_is_the_sum_of_the_definition() {
    for restart in ["1e-4", "1/7", "0.5", "0.9", "0", "1"] {
        let restart = fraction(restart);
        for n in 1..=24 {
            for risk in risks(n, &restart, &restart) {
                assert_eq!(risk.violation, definition(n, risk.quorum, &restart), "{n}: {risk:?}");
                assert_eq!(risk.fixed_rival, restart.pow(risk.overlap));
            }
        }
    }
}

/// Every subset of `n` things as bits.
fn subsets(n: u32) -> impl Iterator<Item = u32> {
    0..1_u32 << n
}

/// Nothing but the story: the first m let the holder in, some of all n restart, and a rival with
/// any quorum whatever gets in if every member it shares with the holder has forgotten.
#[test]
fn every_restart_and_every_rival_of_small_systems() {
    for restart in ["1/3", "0.9", "1e-4"] {
        let restart = fraction(restart);
        for n in 1..=7 {
            for risk in risks(n, &restart, &restart) {
                let m = risk.quorum;
                let holder: u32 = (1 << m) - 1;
                let fixed: u32 = holder << (n - m);
                let rivals: Vec<u32> = subsets(n).filter(|rival| rival.count_ones() == m).collect();
                let smallest = rivals.iter().map(|rival| (rival & holder).count_ones()).min();
                assert_eq!(smallest, Some(risk.overlap));
                let gets_in = |rival: u32, restarted: u32| rival & holder & !restarted == 0;
                let sum = |holds: &dyn Fn(u32) -> bool| {
                    let cases = subsets(n).filter(|&restarted| holds(restarted));
                    let chances = cases.map(|restarted| given(n, restarted.count_ones(), &restart));
                    chances.fold(Fraction::zero(), |sum, chance| plus(&sum, &chance))
                };
                let any = |restarted| rivals.iter().any(|&rival| gets_in(rival, restarted));
                assert_eq!(risk.violation, sum(&any), "{m} of {n}");
                assert_eq!(risk.fixed_rival, sum(&|restarted| gets_in(fixed, restarted)));
                let too_few_up = |down: u32| n - down.count_ones() < m;
                assert_eq!(risk.unavailable, sum(&too_few_up), "{m} of {n}");
            }
        }
    }
}

#[test]
fn one_given_coordinator_is_not_any_one() {
    let restart = fraction("0.1");
    assert_eq!(given(3, 1, &restart), fraction("0.081"));
    assert_eq!(exactly(3, 1, &restart), fraction("0.243"));
    assert_eq!(exactly(24, 16, &restart), exactly(24, 8, &fraction("0.9")));
}

#[test]
fn split_rounds_by_enumeration() {
    assert!(split_round(3, 2, 2).is_zero());
    assert_eq!(split_round(3, 2, 3), fraction("2/9"));
    assert!(split_round(5, 3, 1).is_zero());
    for n in 1..=6 {
        for m in n / 2 + 1..=n {
            for participants in 1..=4_u32 {
                let rounds = participants.pow(n);
                let split = (0..rounds).filter(|round| {
                    let choice = |coordinator| round / participants.pow(coordinator) % participants;
                    (0..participants).all(|participant| {
                        let granted = (0..n).filter(|&c| choice(c) == participant).count();
                        granted < m as usize
                    })
                });
                let expected = fraction(&format!("{}/{rounds}", split.count()));
                assert_eq!(split_round(n, m, participants), expected, "{n}, {m}, {participants}");
            }
        }
    }
}

#[test]
fn a_thousand_coordinators_are_no_work() {
    let restart = fraction("1e-4");
    let all = risks(1_000, &restart, &restart);
    assert_eq!(all.len(), 500);
    assert_eq!(all[499].violation, restart.pow(1_000));
    assert_eq!(digits(&all[499].fixed_rival, 3), "1.00e-4000");
    assert!(all.windows(2).all(|pair| pair[1].violation < pair[0].violation));
    assert!(all.windows(2).all(|pair| pair[0].unavailable < pair[1].unavailable));
}

#[test]
fn dice_agree_with_the_sums() {
    for (n, m, restart) in [(3, 2, "0.1"), (7, 5, "0.3"), (5, 4, "0.9"), (32, 17, "0.05")] {
        let risk = risk(n, m, restart);
        let trials = simulate(n, m, &fraction(restart), 100_000, 7);
        assert!(!trials.are_too_few_for(&risk.violation));
        assert!(trials.violation_interval(0.999).contains(risk.violation.to_f64()), "{trials:?}");
        assert!(trials.fixed_rival_interval(0.999).contains(risk.fixed_rival.to_f64()));
    }
}

/// A judge that accepts anything would be worth nothing.
#[test]
fn dice_disagree_with_wrong_sums() {
    let trials = simulate(7, 5, &fraction("0.3"), 100_000, 7);
    let off_by_one = risk(7, 4, "0.3").violation.to_f64();
    let sum_over_all_n = exactly(7, 3, &fraction("0.3")).to_f64();
    for wrong in [off_by_one, sum_over_all_n, risk(7, 5, "0.31").violation.to_f64()] {
        assert!(!trials.violation_interval(0.999).contains(wrong), "{wrong}");
    }
}

#[test]
fn dice_know_when_they_cannot_tell() {
    let rare = risk(32, 24, "1e-4").violation;
    let trials = simulate(32, 24, &fraction("1e-4"), 1_000, 0);
    assert!(trials.are_too_few_for(&rare) && trials.are_too_few_for(&rare.complement().unwrap()));
    assert_eq!(digits(&trials_needed(&rare).unwrap(), 2), "1.4e60");
    for (certain, violations) in [("0", 0), ("1", 1_000)] {
        let trials = simulate(3, 2, &fraction(certain), 1_000, 0);
        assert!(!trials.are_too_few_for(&fraction(certain)));
        assert_eq!(trials.violations, violations);
        assert!(trials_needed(&fraction(certain)).is_none());
    }
}

proptest! {
    #[test]
    fn risk_falls_with_the_quorum_and_availability_with_it(
        n in 1..60_u32, above in 0..=1_000_u32, down in 0..=1_000_u32
    ) {
        let restart = fraction(&format!("{above}/1000"));
        let all = risks(n, &restart, &fraction(&format!("{down}/1000")));
        for pair in all.windows(2) {
            prop_assert!(pair[1].violation <= pair[0].violation);
            prop_assert!(pair[0].unavailable <= pair[1].unavailable);
        }
        for risk in &all {
            prop_assert!(risk.fixed_rival <= risk.violation, "a bound for every rival");
            prop_assert!(risk.violation <= Fraction::one());
        }
    }

    #[test]
    fn risk_rises_with_the_probability_of_a_restart(
        n in 1..60_u32, one in 0..=1_000_u32, two in 0..=1_000_u32
    ) {
        let (low, high) = (one.min(two), one.max(two));
        let [low, high] = [low, high].map(|above| {
            let restart = fraction(&format!("{above}/1000"));
            risks(n, &restart, &restart)
        });
        for (low, high) in low.iter().zip(&high) {
            prop_assert!(low.violation <= high.violation);
            prop_assert!(low.fixed_rival <= high.fixed_rival);
            prop_assert!(low.unavailable <= high.unavailable);
        }
    }

    #[test]
    fn more_participants_split_more(n in 1..30_u32, beyond in 0..15_u32, p in 1..12_u32) {
        let m = (n / 2 + 1 + beyond).min(n);
        prop_assert!(split_round(n, m, p) <= split_round(n, m, p + 1));
    }
}
