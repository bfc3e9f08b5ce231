//! How numbers read on an axis and in a sentence.

/// With thousands set apart: `1,000`, `-12,345.5`.
fn grouped(plain: &str) -> String {
    let (sign, plain) = match plain.strip_prefix('-') {
        Some(rest) => ("−", rest),
        None => ("", plain),
    };
    let (whole, rest) = plain.find('.').map_or((plain, ""), |dot| plain.split_at(dot));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if 0 < index && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A power of ten: `10⁻⁵`.
pub fn power(exponent: i64) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' | '4'..='9' => {
            char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit)
        }
        other => other,
    };
    format!("10{}", exponent.to_string().chars().map(raised).collect::<String>())
}

/// A few digits times a power of ten, `2·10⁻⁵⁹`; plain where that is easier to read.
pub(super) fn scaled(digits: u32, exponent: i64, plainly: bool) -> String {
    if plainly {
        let decimals = usize::try_from(-exponent).unwrap_or(0);
        let value = f64::from(digits) * 10_f64.powi(i32::try_from(exponent).unwrap_or(i32::MAX));
        return grouped(&format!("{value:.decimals$}"));
    }
    match digits {
        _ if exponent == 0 => digits.to_string(),
        1 => power(exponent),
        _ => format!("{digits}·{}", power(exponent)),
    }
}

/// A multiple of a step, with as many decimals as the step has.
pub(super) fn stepped(value: f64, step: f64) -> String {
    let exponent = step.log10().floor();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(-6.0..9.0).contains(&exponent) || 1e12 <= value.abs() {
        return readable(value);
    }
    let decimals = usize::try_from(-(exponent as i64)).unwrap_or(0);
    grouped(&format!("{value:.decimals$}"))
}

/// To four digits, as people write it: `0.125`, `1,250`, `3.2·10⁻⁹`.
pub fn readable(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let exact = format!("{value:.3e}");
    let (digits, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(3 - exponent).unwrap_or(0);
        let plain = format!("{value:.decimals$}");
        return grouped(shortened(&plain));
    }
    match shortened(digits) {
        "1" => power(exponent),
        "-1" => format!("−{}", power(exponent)),
        digits => format!("{}·{}", digits.replace('-', "−"), power(exponent)),
    }
}

/// Without zeros that say nothing.
fn shortened(decimal: &str) -> &str {
    match decimal.contains('.') {
        true => decimal.trim_end_matches('0').trim_end_matches('.'),
        false => decimal,
    }
}

#[cfg(test)]
mod tests {
    use super::{power, readable, scaled, stepped};

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(power(-59), "10⁻⁵⁹");
        assert_eq!(power(1_234_567_890), "10¹²³⁴⁵⁶⁷⁸⁹⁰");
        assert_eq!(scaled(2, -59, false), "2·10⁻⁵⁹");
        assert_eq!(scaled(5, 3, true), "5,000");
        assert_eq!(scaled(2, -2, true), "0.02");
        assert_eq!(stepped(1_250_000.0, 250_000.0), "1,250,000");
        assert_eq!(stepped(-0.4, 0.2), "−0.4");
        assert_eq!(stepped(0.0, 1e-9), "0");
        assert_eq!(stepped(3e-9, 1e-9), "3·10⁻⁹");
        assert_eq!(readable(0.125), "0.125");
        assert_eq!(readable(1234.5), "1,234");
        assert_eq!(readable(999.96), "1,000");
        assert_eq!(readable(1e-9), "10⁻⁹");
        assert_eq!(readable(-2.5e12), "−2.5·10¹²");
        assert_eq!(readable(0.0), "0");
    }
}
