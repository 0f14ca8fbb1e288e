//! The variables of a client, and the parameters of its requests.

use super::datum::Datum;
use super::request::Parameter;
use super::variables::{Constant, Operand};
use crate::prelude::*;
use std::fmt::Write as _;

#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) datum: Datum,
    /// The text of [`Datum::Text`], or the text of a double. The buffer is reused.
    pub(super) text: String,
}

impl Slot {
    pub(super) fn of(constant: &Constant) -> Self {
        let mut slot = Self::default();
        slot.set_constant(constant);
        slot
    }

    /// Copies another slot and reuses the buffer.
    pub(super) fn copy(&mut self, other: &Self) {
        self.datum = other.datum;
        if matches!(other.datum, Datum::Text | Datum::Double(_)) {
            self.text.clone_from(&other.text);
        }
    }

    pub(super) fn set(&mut self, datum: Datum) {
        if let Datum::Double(n) = datum {
            self.text.clear();
            write_double(n, &mut self.text);
        }
        self.datum = datum;
    }

    fn set_text(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.datum = Datum::Text;
    }

    pub(super) fn set_constant(&mut self, constant: &Constant) {
        match constant {
            Constant::Null => self.set(Datum::Null),
            Constant::Int(n) => self.set(Datum::Int(*n)),
            Constant::Double(n) => self.set(Datum::Double(*n)),
            Constant::Text(text) => self.set_text(text),
        }
    }

    pub(super) fn set_value(&mut self, value: Value<'_>) -> Result<()> {
        match value {
            Value::Null => self.set(Datum::Null),
            Value::Int(n) => self.set(Datum::Int(n)),
            Value::Time(micros) => self.set(Datum::Time(micros)),
            Value::Bool(truth) => self.set(Datum::Bool(truth)),
            Value::Text(text) => self.set_text(text),
            Value::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes);
                self.set_text(text.map_err(|_| Error::mismatch("a value to keep is not text"))?);
            }
        }
        Ok(())
    }

    /// The value that an expression sees: of a text, the value that it spells, if any.
    pub(super) fn datum(&self) -> Datum {
        match self.datum {
            Datum::Text => Datum::spelt(&self.text),
            datum => datum,
        }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self.datum {
            Datum::Null => Value::Null,
            Datum::Bool(truth) => Value::Bool(truth),
            Datum::Int(n) => Value::Int(n),
            Datum::Time(micros) => Value::Time(micros),
            Datum::Double(_) | Datum::Text => Value::Text(&self.text),
        }
    }
}

/// The variables at the time of a request: for those that changed since, the earlier value.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) now: &'a [Slot],
    pub(super) seen: &'a [(usize, Slot)],
}

impl<'a> Values<'a> {
    pub(super) fn get(self, slot: usize) -> Option<&'a Slot> {
        let seen = self.seen.iter().find(|(known, _)| *known == slot).map(|(_, value)| value);
        seen.or_else(|| self.now.get(slot))
    }
}

pub(super) fn operand<'a>(operand: &'a Operand, values: Values<'a>) -> Value<'a> {
    match operand {
        Operand::Variable(slot) => values.get(*slot).map_or(Value::Null, Slot::value),
        Operand::Constant(constant) => match constant {
            Constant::Int(n) => Value::Int(*n),
            // The parser has converted doubles to text.
            Constant::Null | Constant::Double(_) => Value::Null,
            Constant::Text(text) => Value::Text(text),
        },
    }
}

/// A parameter, converted to the type of its field.
pub(super) fn parameter<'a>(parameter: &'a Parameter, values: Values<'a>) -> Value<'a> {
    match operand(&parameter.operand, values) {
        Value::Int(seconds) if parameter.kind == Some(FieldType::Timestamp) => {
            Value::Time(seconds.saturating_mul(1_000_000))
        }
        // No field has a boolean type.
        Value::Bool(truth) if parameter.kind.is_some() => Value::Int(i64::from(truth)),
        value => value,
    }
}

/// The number of digits of a double that always survive conversion to text and back.
const DIGITS: i32 = 15;

/// Appends a number to a text as pgbench does: with 15 digits, as C's `%.15g`.
fn write_double(number: f64, out: &mut String) {
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
            super::write_double(number, &mut written);
            assert_eq!(written, format!("x{text}"));
        }
    }
}
