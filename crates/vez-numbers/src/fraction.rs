//! Exact fractions: no digit is lost to cancellation, and none to rounding before the last.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::BigUint;
use num_integer::Integer as _;

use crate::digits;

/// A number that is not negative, as a fraction that need not be in lowest terms.
#[derive(Clone, Debug)]
pub struct Fraction {
    numerator: BigUint,
    denominator: BigUint,
}

/// A number rounded to some digits: `d.ddd…e±x`, or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scientific {
    /// As many as were asked for; the point is after the first.
    pub digits: String,
    pub exponent: i64,
}

/// Longer numbers are a slip of the keyboard.
const CHARS_MAX: usize = 5_000;
const EXPONENT_MAX: i64 = 5_000;

impl Fraction {
    pub(crate) fn new(numerator: BigUint, denominator: BigUint) -> Self {
        assert!(denominator != BigUint::ZERO);
        Self { numerator, denominator }
    }

    pub fn zero() -> Self {
        Self::new(BigUint::ZERO, BigUint::from(1_u8))
    }

    pub fn one() -> Self {
        Self::new(BigUint::from(1_u8), BigUint::from(1_u8))
    }

    pub fn is_zero(&self) -> bool {
        self.numerator == BigUint::ZERO
    }

    pub fn is_one(&self) -> bool {
        self.numerator == self.denominator
    }

    pub fn numerator(&self) -> &BigUint {
        &self.numerator
    }

    pub fn denominator(&self) -> &BigUint {
        &self.denominator
    }

    /// What is missing to 1, if this is at most 1.
    pub fn complement(&self) -> Option<Self> {
        let fits = self.numerator <= self.denominator;
        fits.then(|| Self::new(&self.denominator - &self.numerator, self.denominator.clone()))
    }

    #[must_use]
    pub fn pow(&self, exponent: u32) -> Self {
        Self::new(self.numerator.pow(exponent), self.denominator.pow(exponent))
    }

    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self::new(&self.numerator * &other.numerator, &self.denominator * &other.denominator)
    }

    #[must_use]
    pub fn in_lowest_terms(&self) -> Self {
        let common = self.numerator.gcd(&self.denominator);
        Self::new(&self.numerator / &common, &self.denominator / &common)
    }

    /// Rounded half up to so many digits, of which the first is not 0.
    pub fn scientific(&self, digits: u32) -> Scientific {
        assert!(0 < digits);
        if self.is_zero() {
            return Scientific { digits: "0".to_owned(), exponent: 0 };
        }
        let quickly = digits::first(self, digits, self.exponent_estimate());
        quickly.unwrap_or_else(|| self.scientific_exactly(digits))
    }

    /// By all the digits there are.
    pub(crate) fn scientific_exactly(&self, digits: u32) -> Scientific {
        let mut exponent = self.exponent_estimate();
        loop {
            let rounded = self.rounded(i64::from(digits) - 1 - exponent).to_string();
            match i64::try_from(rounded.len()).unwrap_or(0) - i64::from(digits) {
                0 => return Scientific { digits: rounded, exponent },
                longer => exponent += longer,
            }
        }
    }

    /// The exponent of ten, or one or two less, of what is not 0.
    pub(crate) fn exponent_estimate(&self) -> i64 {
        let bits = |number: &BigUint| i64::try_from(number.bits()).unwrap_or(i64::MAX);
        let difference = bits(&self.numerator) - bits(&self.denominator) - 1;
        // log10(2) in millionths, rounded so that the product is rounded down.
        let factor = if difference < 0 { 301_030 } else { 301_029 };
        (difference * factor).div_euclid(1_000_000)
    }

    /// This times a power of ten, to the nearest whole number.
    fn rounded(&self, power: i64) -> BigUint {
        let scale =
            BigUint::from(10_u8).pow(u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX));
        let (numerator, denominator) = match power < 0 {
            false => (&self.numerator * scale, self.denominator.clone()),
            true => (self.numerator.clone(), &self.denominator * scale),
        };
        (numerator * 2_u8 + &denominator) / (denominator * 2_u8)
    }

    /// The nearest double, or nearly; 0 below all of them.
    pub fn to_f64(&self) -> f64 {
        self.scientific(20).to_string().parse().unwrap_or(f64::NAN)
    }

    /// `None` for 0. Good even where [`Fraction::to_f64`] is 0.
    pub fn log10(&self) -> Option<f64> {
        (!self.is_zero()).then(|| self.scientific(20).log10())
    }

    /// How many out of 2⁶⁴, rounded down.
    pub(crate) fn of_two_to_the_64(&self) -> u128 {
        let whole = (&self.numerator << 64_u8) / &self.denominator;
        u128::try_from(whole).unwrap_or(u128::MAX)
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }
}

/// A decimal number means exactly what is written, `1e-4` is 1/10000; so does a fraction,
/// `1/14400`.
impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if CHARS_MAX < text.len() {
            return Err(format!("expected at most {CHARS_MAX} digits"));
        }
        let wrong = || "expected a number such as 0.25, 1e-4 or 1/14400".to_owned();
        let whole = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().ok_or_else(wrong)
        };
        if let Some((above, below)) = text.split_once('/') {
            let (numerator, denominator): (BigUint, BigUint) = (whole(above)?, whole(below)?);
            if denominator == BigUint::ZERO {
                return Err("expected a fraction of something, not of 0".to_owned());
            }
            return Ok(Self::new(numerator, denominator).in_lowest_terms());
        }
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().map_err(|_| wrong())?;
        if EXPONENT_MAX < exponent.abs() {
            return Err(format!("expected an exponent from -{EXPONENT_MAX} to {EXPONENT_MAX}"));
        }
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: BigUint = whole(&format!("{before}{after}"))?;
        let decimals = i64::try_from(after.len()).unwrap_or(i64::MAX) - exponent;
        let scale = BigUint::from(10_u8).pow(u32::try_from(decimals.unsigned_abs()).unwrap_or(0));
        let exact = match decimals < 0 {
            false => Self::new(digits, scale),
            true => Self::new(digits * scale, BigUint::from(1_u8)),
        };
        Ok(exact.in_lowest_terms())
    }
}

impl Scientific {
    pub fn is_zero(&self) -> bool {
        self.digits.bytes().all(|digit| digit == b'0')
    }

    /// Of what is not 0.
    pub fn log10(&self) -> f64 {
        let (first, rest) = self.digits.split_at(1);
        let mantissa: f64 = format!("{first}.{rest}").parse().unwrap_or(f64::NAN);
        let exponent = i32::try_from(self.exponent).unwrap_or(i32::MAX);
        f64::from(exponent) + libm::log10(mantissa)
    }
}

impl fmt::Display for Scientific {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(f, "{first}{point}{rest}e{}", self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::Fraction;

    fn fraction(text: &str) -> Fraction {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_decimal_means_exactly_what_is_written() {
        let pairs = [
            ("1e-4", "1/10000"),
            ("0.0001", "1/10000"),
            (".5", "1/2"),
            ("5.", "5/1"),
            ("1.5E2", "150/1"),
            ("0", "0/7"),
            ("2/6", "1/3"),
            ("0.1", "1/10"),
            ("1e0", "1/1"),
        ];
        for (decimal, exact) in pairs {
            assert_eq!(fraction(decimal), fraction(exact), "{decimal}");
        }
        assert!(fraction("0.1") < fraction("0.10000000000000000000000000000000001"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let huge = "9".repeat(6_000);
        for text in [
            "",
            ".",
            "-1",
            "+1",
            "1e",
            "e5",
            "1.2.3",
            "NaN",
            "inf",
            "1/0",
            "1/",
            "/2",
            "0x1",
            "1 ",
            "1e9999999",
            &huge,
        ] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }

    #[test]
    fn digits_are_rounded_once_and_right() {
        let digits = |text: &str, count| fraction(text).scientific(count).to_string();
        assert_eq!(digits("1/3", 5), "3.3333e-1");
        assert_eq!(digits("2/3", 5), "6.6667e-1");
        assert_eq!(digits("0.99999999", 5), "1.0000e0");
        assert_eq!(digits("0.999994", 5), "9.9999e-1");
        assert_eq!(digits("12345678", 3), "1.23e7");
        assert_eq!(digits("1e-4000", 4), "1.000e-4000");
        assert_eq!(digits("9.5", 1), "1e1");
        assert_eq!(digits("0", 20), "0");
        assert_eq!(digits("1", 3), "1.00e0");
        for exponent in -200..200 {
            for mantissa in ["1", "9.999", "9.9999", "2", "4.99999"] {
                let text = format!("{mantissa}e{exponent}");
                let (found, written) = (fraction(&text).to_f64(), text.parse::<f64>().unwrap());
                assert!((found / written - 1.0).abs() < 1e-15, "{text}: {found}");
            }
        }
    }

    #[test]
    fn logarithms_reach_below_all_doubles() {
        assert!((fraction("2e-4000").log10().unwrap() + 4000.0 - 2_f64.log10()).abs() < 1e-9);
        assert_eq!(fraction("0").log10(), None);
    }
}
