//! The first digits of a very long fraction, without all the others.

use num_bigint::BigUint;

use crate::{Fraction, Scientific};

/// `mantissa · 2^exponent`, with a mantissa cut off at some length.
struct Float {
    mantissa: BigUint,
    exponent: i64,
}

/// Digits beyond those asked for: enough to see on which side of a half they are.
const MORE: u32 = 30;
/// Bits beyond those of all digits, for what is cut off on the way: powers of ten are made by
/// squaring, which doubles the error, and no exponent is near 2⁶⁰.
const GUARD: u32 = 80;

/// Rounded half up; `None` if only all the digits can tell, or there is nothing to gain.
pub(crate) fn first(fraction: &Fraction, digits: u32, estimate: i64) -> Option<Scientific> {
    let all = digits + MORE;
    // A digit takes 3.33 bits.
    let width = u64::from(all * 10 / 3 + GUARD);
    let (numerator, denominator) = (fraction.numerator(), fraction.denominator());
    if numerator.bits().max(denominator.bits()) < 20 * width {
        return None;
    }
    let value = Float::new(numerator.clone(), 0, width)
        .over(&Float::new(denominator.clone(), 0, width), width);
    let mut exponent = estimate;
    let text = loop {
        let power = i64::from(all) - 1 - exponent;
        let scale = Float::power_of_ten(power.unsigned_abs(), width);
        let scaled = if power < 0 { value.over(&scale, width) } else { value.times(&scale, width) };
        let text = scaled.floor().to_string();
        match i64::try_from(text.len()).ok()? - i64::from(all) {
            0 => break text,
            longer => exponent += longer,
        }
    };
    let (kept, rest) = text.split_at(digits as usize);
    // The last few digits may be off; the others must not be on the edge.
    let sure = &rest[..rest.len() - 4];
    let edge = |first: char, others: char| {
        sure.starts_with(first) && sure.chars().skip(1).all(|digit| digit == others)
    };
    if edge('5', '0') || edge('4', '9') {
        return None;
    }
    let kept: BigUint = kept.parse().ok()?;
    let rounded = if sure < "5" { kept } else { kept + 1_u8 }.to_string();
    // 9.99… has become 10.00…
    let carried = i64::from((digits as usize) < rounded.len());
    Some(Scientific { digits: rounded[..digits as usize].to_owned(), exponent: exponent + carried })
}

impl Float {
    fn new(mantissa: BigUint, exponent: i64, width: u64) -> Self {
        let extra = mantissa.bits().saturating_sub(width);
        let cut = i64::try_from(extra).expect("bits fit memory");
        Self { mantissa: mantissa >> extra, exponent: exponent + cut }
    }

    fn times(&self, other: &Self, width: u64) -> Self {
        Self::new(&self.mantissa * &other.mantissa, self.exponent + other.exponent, width)
    }

    fn over(&self, other: &Self, width: u64) -> Self {
        // As many bits as both together leave `width` of them.
        let longer = width + other.mantissa.bits();
        let shift = i64::try_from(longer).expect("bits fit memory");
        let quotient = (&self.mantissa << longer) / &other.mantissa;
        Self::new(quotient, self.exponent - other.exponent - shift, width)
    }

    fn power_of_ten(power: u64, width: u64) -> Self {
        let mut result = Self { mantissa: BigUint::from(1_u8), exponent: 0 };
        for bit in (0..u64::BITS).rev() {
            result = result.times(&result, width);
            if power >> bit & 1 == 1 {
                result = Self::new(result.mantissa * 10_u8, result.exponent, width);
            }
        }
        result
    }

    fn floor(self) -> BigUint {
        match self.exponent < 0 {
            true => self.mantissa >> self.exponent.unsigned_abs(),
            false => self.mantissa << self.exponent.unsigned_abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first;
    use crate::Fraction;

    /// All digits of a fraction, the long way.
    fn slow(value: &Fraction, digits: u32) -> String {
        value.scientific_exactly(digits).to_string()
    }

    fn quick(value: &Fraction, digits: u32) -> Option<String> {
        let estimate = value.exponent_estimate();
        first(value, digits, estimate).map(|found| found.to_string())
    }

    #[test]
    fn the_short_way_comes_to_the_same_digits() {
        let mut tried = 0;
        for base in ["1/3", "0.9999999", "1e-4", "7/11", "0.5", "1e-30", "12345/54321"] {
            for power in [1_500, 2_000, 3_001] {
                let value = base.parse::<Fraction>().unwrap().pow(power);
                for value in [value.complement().unwrap(), value] {
                    for digits in [1, 5, 20, 40] {
                        if let Some(found) = quick(&value, digits) {
                            assert_eq!(found, slow(&value, digits), "{base}, {power}");
                            tried += 1;
                        }
                    }
                }
            }
        }
        assert!(tried > 100, "{tried}");
    }

    #[test]
    fn exact_halves_are_left_to_those_who_see_all_digits() {
        let scale = "1/3".parse::<Fraction>().unwrap().pow(5_000);
        let one = Fraction::new(scale.denominator().clone(), scale.denominator().clone());
        for text in ["0.125", "0.375", "0.5"] {
            let half = one.times(&text.parse().unwrap());
            if text == "0.5" {
                assert_eq!(quick(&half, 2).unwrap(), "5.0e-1");
            } else {
                assert_eq!(quick(&half, 2), None);
                assert_eq!(half.scientific(2).to_string(), slow(&half, 2));
            }
        }
    }

    #[test]
    fn nines_are_carried() {
        let value = "1e-30".parse::<Fraction>().unwrap();
        let long = value.pow(100).complement().unwrap();
        assert_eq!(quick(&long, 5).unwrap(), "1.0000e0");
    }
}
