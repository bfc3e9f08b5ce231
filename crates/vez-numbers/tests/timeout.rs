//! Timeouts against closed forms, against trying everything, and against what must hold whatever
//! the costs.

use proptest::prelude::*;
use vez_numbers::timeout::Costs;
use vez_numbers::{Law, Measured};

fn measured(times: &[f64]) -> Law {
    Law::Measured(Measured::new(times.to_vec()).unwrap())
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
}

#[test]
fn exponential_answers_have_a_closed_form() {
    let law = Law::Exponential { rate: 0.1 };
    let costs = Costs { mistake: 1_000.0, wait: 1.0 };
    let best = costs.cheapest(&law);
    near(best.timeout, 100_f64.ln() / 0.1);
    near(best.late, 0.01);
    near(best.expected(), best.timeout + 10.0);
    // C·e^(−λT) = e·T there.
    let first = costs.smallest_acceptable(&law);
    near(first.mistakes, first.waiting);
    assert!(costs.of(&law, first.timeout * (1.0 + 1e-9)).is_acceptable());
    assert!(!costs.of(&law, first.timeout * (1.0 - 1e-9)).is_acceptable());
    assert!(first.timeout < best.timeout, "the two rules differ");
}

#[test]
fn who_has_more_to_lose_by_waiting_does_not_wait() {
    let law = Law::Exponential { rate: 0.1 };
    for mistake in [0.0, 5.0, 10.0] {
        let best = Costs { mistake, wait: 1.0 }.cheapest(&law);
        near(best.timeout, 0.0);
        near(best.expected(), mistake);
    }
}

/// S15: accept a timeout if and only if C·p < E.
#[test]
fn s15_the_condition_of_the_notes() {
    let law = measured(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    let costs = Costs { mistake: 100.0, wait: 2.0 };
    // p = 2/10 at 8: C·p = 20, E = 16. At 9, C·p = 10 and E = 18.
    assert!(!costs.of(&law, 8.0).is_acceptable());
    assert!(costs.of(&law, 9.0).is_acceptable());
    // From 8 to 9 p stays 2/10, and C·p = E only at 10: so from 9 on.
    near(costs.smallest_acceptable(&law).timeout, 9.0);
    // From 7 to 8 p stays 3/10, and 50·0.3 = 2·7.5: so from there on, between two samples.
    near(Costs { mistake: 50.0, wait: 2.0 }.smallest_acceptable(&law).timeout, 7.5);
}

#[test]
fn a_sample_is_cheapest_at_one_of_its_members_or_at_once() {
    let times = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 80.0];
    let law = measured(&times);
    for mistake in [0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 5_000.0] {
        let costs = Costs { mistake, wait: 1.0 };
        let best = costs.cheapest(&law);
        let tried = (0..=10_000).map(|i| costs.of(&law, f64::from(i) * 0.01).expected());
        let cheapest_tried = tried.fold(f64::INFINITY, f64::min);
        assert!(best.expected() <= cheapest_tried + 1e-9, "{mistake}");
        assert!(best.timeout == 0.0 || times.contains(&best.timeout), "{mistake}");
    }
}

#[test]
fn every_law_is_cheapest_where_trying_says() {
    let laws = [
        Law::Exponential { rate: 0.3 },
        Law::Lognormal { median: 5.0, sigma: 0.5 },
        Law::Lognormal { median: 5.0, sigma: 2.0 },
        Law::Uniform { from: 2.0, to: 12.0 },
    ];
    for law in &laws {
        for mistake in [0.0, 1.0, 5.0, 11.0, 20.0, 300.0] {
            let costs = Costs { mistake, wait: 1.0 };
            let best = costs.cheapest(law);
            for i in 0..20_000 {
                let tried = costs.of(law, f64::from(i) * 0.02);
                assert!(
                    best.expected() <= tried.expected() + 1e-9,
                    "{law:?}, {mistake}: {tried:?}"
                );
            }
            let first = costs.smallest_acceptable(law).timeout;
            assert!(costs.of(law, first * 1.000_001 + 1e-9).is_acceptable(), "{law:?}, {mistake}");
            assert!(!costs.of(law, first * 0.999_999 - 1e-9).is_acceptable(), "{law:?}, {mistake}");
        }
    }
}

#[test]
fn the_tails_are_those_of_their_laws() {
    let lognormal = Law::Lognormal { median: 5.0, sigma: 0.5 };
    near(lognormal.late(5.0), 0.5);
    near(lognormal.late(5.0 * 0.5_f64.exp()), 0.158_655_253_931_457_05);
    near(lognormal.late(0.0), 1.0);
    let uniform = Law::Uniform { from: 2.0, to: 12.0 };
    for (timeout, late) in [(0.0, 1.0), (2.0, 1.0), (4.5, 0.75), (12.0, 0.0), (20.0, 0.0)] {
        near(uniform.late(timeout), late);
    }
    // An answer exactly at the deadline is in time.
    near(measured(&[1.0, 2.0, 3.0, 4.0]).late(2.0), 0.5);
    let exponential = Law::Exponential { rate: 2.0 };
    for law in [lognormal, uniform, exponential] {
        for late in [0.5, 0.1, 0.005] {
            near(law.late(law.quantile(late)), late);
        }
    }
    near(measured(&[1.0, 2.0, 3.0, 4.0]).quantile(0.25), 3.0);
    near(measured(&[1.0, 2.0, 3.0, 4.0]).quantile(0.01), 4.0);
}

#[test]
fn beyond_the_largest_sample_the_tail_is_not_really_nothing() {
    let law = measured(&[1.0; 100]);
    near(law.late(2.0), 0.0);
    let between = law.late_between(2.0, 0.95).unwrap();
    assert!(between.low == 0.0 && (0.036..0.037).contains(&between.high), "{between:?}");
    assert!(Law::Exponential { rate: 1.0 }.late_between(2.0, 0.95).is_none());
}

fn any_law() -> impl Strategy<Value = Law> {
    prop_oneof![
        (0.001..10.0).prop_map(|rate| Law::Exponential { rate }),
        (0.01..100.0, 0.1..3.0).prop_map(|(median, sigma)| Law::Lognormal { median, sigma }),
        (0.0..10.0, 0.01..50.0).prop_map(|(from, width)| Law::Uniform { from, to: from + width }),
        proptest::collection::vec(0.0..100.0, 1..40)
            .prop_map(|times| Law::Measured(Measured::new(times).unwrap())),
    ]
}

proptest! {
    #[test]
    fn dearer_mistakes_never_make_one_wait_less(
        law in any_law(), one in 0.0..1e4, two in 0.0..1e4, wait in 0.01..10.0
    ) {
        let (low, high) = (f64::min(one, two), f64::max(one, two));
        let (low, high) = (Costs { mistake: low, wait }, Costs { mistake: high, wait });
        let slack = 1.0 + 1e-9;
        let (short, long) = (low.smallest_acceptable(&law), high.smallest_acceptable(&law));
        prop_assert!(short.timeout <= long.timeout * slack + 1e-12);
        prop_assert!(low.cheapest(&law).timeout <= high.cheapest(&law).timeout * slack + 1e-12);
    }

    #[test]
    fn no_timeout_is_cheaper_than_the_cheapest(
        law in any_law(), mistake in 0.0..1e4, wait in 0.01..10.0, tried in 0.0..1e4
    ) {
        let costs = Costs { mistake, wait };
        let best = costs.cheapest(&law).expected();
        prop_assert!(best <= costs.of(&law, tried).expected() * (1.0 + 1e-9));
    }

    #[test]
    fn acceptable_begins_where_it_is_said_to(
        law in any_law(), mistake in 0.0..1e4, wait in 0.01..10.0, tried in 0.0..1e4
    ) {
        let costs = Costs { mistake, wait };
        let first = costs.smallest_acceptable(&law).timeout;
        let margin = 1e-9 * first.max(1.0);
        if tried < first - margin {
            prop_assert!(!costs.of(&law, tried).is_acceptable());
        }
        if first + margin < tried {
            prop_assert!(costs.of(&law, tried).is_acceptable());
        }
    }
}
