//! Simulated time: whole microseconds, for instants and spans alike.
//!
//! People write and read it as `250ms` or `2s`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Microseconds since the run began, or between two moments of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(u64::MAX);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000)
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000)
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds, as results print them. Exact up to 285 years.
    #[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add for Time {
    type Output = Self;
    /// Saturates: a moment past the end of time is never reached, and must not wrap to the past.
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("time runs forward"))
    }
}

impl Mul<u64> for Time {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const UNITS: [(&str, u64); 5] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

impl fmt::Display for Time {
    /// In the largest unit that divides it, so that reading it back gives the same time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0ms");
        }
        let (unit, size) =
            UNITS.iter().rev().find(|(_, size)| self.0.is_multiple_of(*size)).unwrap();
        write!(f, "{}{unit}", self.0 / size)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTimeError(String);

impl fmt::Display for ParseTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseTimeError {}

impl FromStr for Time {
    type Err = ParseTimeError;

    /// Reads `250ms`, `1.5s`, `20us`, `2m`, `1h`; a bare `0` needs no unit.
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        let bad = |why: &str| {
            ParseTimeError(format!("`{text}` is not a time{why}; expected a form like 250ms or 2s"))
        };
        if text == "0" {
            return Ok(Self::ZERO);
        }
        let digits =
            text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(|| bad(": no unit"))?;
        let (number, unit) = text.split_at(digits);
        let size = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, size) = size.ok_or_else(|| bad(&format!(": no unit `{unit}`")))?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
            return Err(bad(""));
        }
        let scale = 10_u128.pow(fraction.len() as u32);
        let whole: u128 = whole.parse().map_err(|_| bad(": too large"))?;
        let fraction: u128 = fraction.parse().map_err(|_| bad(""))?;
        let micros = whole
            .checked_mul(scale)
            .and_then(|n| n.checked_add(fraction))
            .and_then(|n| n.checked_mul(u128::from(*size)))
            .ok_or_else(|| bad(": too large"))?;
        if !micros.is_multiple_of(scale) {
            return Err(bad(": finer than a microsecond"));
        }
        // Anything beyond this could overflow when two are added.
        let micros = u64::try_from(micros / scale).ok().filter(|&n| n <= u64::MAX / 4);
        micros.map(Self).ok_or_else(|| bad(": too large"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn what_is_written_reads_back_the_same() {
        for micros in [0, 1, 999, 1_000, 1_500, 2_000_000, 60_000_000, 3_600_000_000, 90_000_001] {
            let time = Time::from_micros(micros);
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
        assert_eq!("1.5s".parse(), Ok(Time::from_millis(1_500)));
        assert_eq!("0".parse(), Ok(Time::ZERO));
    }

    #[test]
    fn what_is_no_time_says_why() {
        for bad in ["", "5", "ms", "-1ms", "1.ms", "1 ms", "5d", "1e3ms", "0.0001ms", "1.2.3s"] {
            let error = bad.parse::<Time>().unwrap_err().to_string();
            assert!(error.contains("expected a form like 250ms"), "{bad}: {error}");
        }
        assert!("99999999999999999999h".parse::<Time>().is_err());
        assert!("18446744073709551615us".parse::<Time>().is_err());
    }
}
