//! Formats doubles as pgbench does: with 15 digits, as C's `%.15g`.

/// The number of digits of a double that always survive conversion to text and back.
const DIGITS: i32 = 15;

/// Appends the number to the text.
pub(super) fn write(number: f64, out: &mut String) {
    use std::fmt::Write as _;
    if !number.is_finite() {
        *out += if number.is_nan() { "NaN" } else { ["Infinity", "-Infinity"][usize::from(number < 0.0)] };
        return;
    }
    let begin = out.len();
    // Writing to a String cannot fail.
    let _ = write!(out, "{number:.*e}", DIGITS as usize - 1);
    let Some((mantissa, exponent)) = out[begin..].split_once('e') else { return };
    let Ok(exponent) = exponent.parse::<i32>() else { return };
    if (-4..DIGITS).contains(&exponent) {
        out.truncate(begin);
        let _ = write!(out, "{number:.*}", (DIGITS - 1 - exponent) as usize);
        if exponent < DIGITS - 1 {
            out.truncate(begin + plain(&out[begin..]));
        }
        return;
    }
    let length = plain(mantissa);
    out.truncate(begin + length);
    let _ = write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
}

/// The length of a decimal fraction without trailing zeros.
fn plain(text: &str) -> usize {
    text.trim_end_matches('0').trim_end_matches('.').len()
}

#[cfg(test)]
mod tests {
    #[test]
    fn number_is_written_as_c_writes_it_with_15_digits() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0_f64.sqrt(), "1.4142135623731"),
            (100.0, "100"),
            (123_456_789_012_345.0, "123456789012345"),
            (1_234_567_890_123_456.0, "1.23456789012346e+15"),
            (999_999_999_999_999.9, "1e+15"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (1e300, "1e+300"),
            (-9.3e18, "-9.3e+18"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            let mut written = "x".to_owned();
            super::write(number, &mut written);
            assert_eq!(written, format!("x{text}"));
        }
    }
}
