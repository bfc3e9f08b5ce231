//! A quorum of m of n coordinators that may restart and forget what they promised.
//!
//! P is the probability that one given coordinator restarts while the first holder is inside. Two
//! quorums share at least 2m − n coordinators; a second one can form once at least that many of
//! the m that let the holder in have forgotten it. So
//! `P_v = Σ C(m,k) P^k (1−P)^(m−k)` for k from 2m − n to m.
//!
//! All sums are exact: over whole numbers with one denominator.

use num_bigint::BigUint;

use crate::Fraction;

/// What a quorum of this size risks, and what it costs in availability.
#[derive(Clone, Debug)]
pub struct Risk {
    pub quorum: u32,
    /// Coordinators that any two quorums share at least.
    pub overlap: u32,
    /// `P_v`: some second quorum can form while the first holder is inside.
    pub violation: Fraction,
    /// One given rival quorum, with the smallest overlap, can form.
    pub fixed_rival: Fraction,
    /// Fewer than a quorum of coordinators are up.
    pub unavailable: Fraction,
}

/// Every safe size of a quorum, smallest first: more than half of n, up to n.
///
/// `restart` and `down` are probabilities: that one given coordinator restarts while somebody is
/// inside, and that it is down when asked.
pub fn risks(n: u32, restart: &Fraction, down: &Fraction) -> Vec<Risk> {
    let smallest = n / 2 + 1;
    let violations = violations(n, restart);
    let unavailable = unavailabilities(n, down);
    let mut rival = restart.pow(2 * smallest - n);
    let step = restart.pow(2);
    let mut risks = Vec::new();
    for (quorum, violation) in (smallest..=n).zip(violations) {
        risks.push(Risk {
            quorum,
            overlap: 2 * quorum - n,
            violation,
            fixed_rival: rival.clone(),
            unavailable: unavailable[quorum as usize - 1].clone(),
        });
        rival = rival.times(&step);
    }
    risks
}

/// `P_v` for every m of more than half, in order.
///
/// With a binomial B(m) of m trials, `P[B(m+1) ≥ j] = P[B(m) ≥ j] + P·P[B(m) = j−1]`, and from one
/// threshold to the next a single probability is taken away. Whole numbers do not cancel.
fn violations(n: u32, restart: &Fraction) -> Vec<Fraction> {
    let (forget, of) = (restart.numerator(), restart.denominator());
    let keep = of - forget;
    let mut m = n / 2 + 1;
    if keep == BigUint::ZERO {
        return (m..=n).map(|_| Fraction::one()).collect();
    }
    // The threshold; 1 or 2 at first.
    let mut j = 2 * m - n;
    let mut denominator = of.pow(m);
    let none = keep.pow(m);
    let one = keep.pow(m - 1) * forget * m;
    let mut at_least = &denominator - &none;
    if j == 2 {
        at_least -= &one;
    }
    // P[B(m) = j − 1].
    let mut below = if j == 2 { one } else { none };
    let mut all = vec![Fraction::new(at_least.clone(), denominator.clone())];
    while m < n {
        at_least = at_least * of + forget * &below;
        let first = below * forget * (m + 1) / j;
        let second = &first * forget * (m + 1 - j) / (&keep * (j + 1));
        at_least -= &first;
        at_least -= &second;
        (m, j, below) = (m + 1, j + 2, second);
        denominator *= of;
        all.push(Fraction::new(at_least.clone(), denominator.clone()));
    }
    all
}

/// For every m from 1 to n: fewer than m of n are up.
fn unavailabilities(n: u32, down: &Fraction) -> Vec<Fraction> {
    if down.is_zero() {
        return (1..=n).map(|_| Fraction::zero()).collect();
    }
    let (down, of) = (down.numerator(), down.denominator());
    let up = of - down;
    let denominator = of.pow(n);
    // Exactly `n − m + 1` are down; all of them at first.
    let mut exactly = down.pow(n);
    let mut at_least = BigUint::ZERO;
    let mut all = Vec::new();
    for m in 1..=n {
        at_least += &exactly;
        all.push(Fraction::new(at_least.clone(), denominator.clone()));
        exactly = exactly * &up * (n - m + 1) / (down * m);
    }
    all
}

/// Exactly k given ones of n restart, and no other: `P^k (1−P)^(n−k)`.
pub fn given(n: u32, k: u32, restart: &Fraction) -> Fraction {
    let other = restart.complement().expect("a probability");
    restart.pow(k).times(&other.pow(n - k))
}

/// Exactly k of n restart, whichever: `C(n,k) P^k (1−P)^(n−k)`.
pub fn exactly(n: u32, k: u32, restart: &Fraction) -> Fraction {
    let ways = Fraction::new(choose(n, k), BigUint::from(1_u8));
    ways.times(&given(n, k, restart))
}

/// Nobody gets a quorum: each of n coordinators lets in one of p participants, by lot, and none
/// gets m.
///
/// As m is more than half of n at most one participant can get m, so the chances that each does
/// add up: `1 − p·Σ C(n,k) (p−1)^(n−k) / p^n` for k from m to n.
pub fn split_round(n: u32, m: u32, participants: u32) -> Fraction {
    assert!(n < 2 * m && m <= n && 0 < participants);
    let others = BigUint::from(participants - 1);
    let mut won = BigUint::ZERO;
    let mut ways = choose(n, m);
    for k in m..=n {
        won += &ways * others.pow(n - k);
        ways = ways * (n - k) / (k + 1);
    }
    let all = BigUint::from(participants).pow(n);
    Fraction::new(&all - won * participants, all).in_lowest_terms()
}

fn choose(n: u32, k: u32) -> BigUint {
    (0..k).fold(BigUint::from(1_u8), |ways, i| ways * (n - i) / (i + 1))
}
