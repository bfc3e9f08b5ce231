//! How exact numbers and flags' numbers read.

use std::str::FromStr;

use vez_draw::chart::power;
use vez_numbers::Fraction;

/// A probability to so many digits: `0.25`, `7.349·10⁻⁵⁹`; next to 1 by what is missing to it,
/// `1 − 10⁻³⁰`.
pub(super) fn probability(value: &Fraction, digits: u32) -> String {
    let missing = value.complement().filter(|missing| !missing.is_zero());
    if let Some(missing) = missing.filter(|missing| *missing < one_in(10_000)) {
        return format!("1 − {}", number(&missing, digits));
    }
    number(value, digits)
}

pub(super) fn number(value: &Fraction, digits: u32) -> String {
    let rounded = value.scientific(digits);
    if rounded.is_zero() {
        return "0".to_owned();
    }
    let (first, rest) = rounded.digits.split_at(1);
    let rest = rest.trim_end_matches('0');
    match rounded.exponent {
        0 if rest.is_empty() => first.to_owned(),
        0 => format!("{first}.{rest}"),
        exponent @ -4..0 => {
            let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
            format!("0.{zeros}{first}{rest}")
        }
        exponent => match (first, rest) {
            ("1", "") => power(exponent),
            (_, "") => format!("{first}·{}", power(exponent)),
            _ => format!("{first}.{rest}·{}", power(exponent)),
        },
    }
}

fn one_in(many: u32) -> Fraction {
    format!("1/{many}").parse().expect("a fraction")
}

/// A probability as a flag gives it.
pub(super) fn parse_probability(flag: &str, text: &str) -> anyhow::Result<Fraction> {
    let range = "expected a probability, 0 to 1, such as 0.25, 1e-4 or 1/14400";
    let value: Fraction =
        text.trim().parse().map_err(|_| anyhow::anyhow!("{flag} {text}: {range}"))?;
    anyhow::ensure!(value.complement().is_some(), "{flag} {text}: more than 1; {range}");
    Ok(value)
}

/// A whole number as a flag gives it.
pub(super) fn parse_count<T: FromStr>(flag: &str, text: &str, expected: &str) -> anyhow::Result<T> {
    text.trim().parse().map_err(|_| anyhow::anyhow!("{flag} {text}: expected {expected}"))
}

/// A finite number as a flag gives it.
pub(super) fn parse_real(flag: &str, text: &str, expected: &str) -> anyhow::Result<f64> {
    let value: Option<f64> = text.trim().parse().ok();
    let value = value.filter(|value| value.is_finite());
    value.ok_or_else(|| anyhow::anyhow!("{flag} {text}: expected {expected}"))
}

/// With thousands set apart.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
