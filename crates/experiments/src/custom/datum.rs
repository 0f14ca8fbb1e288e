//! The values of expressions, and their conversions.

use crate::prelude::*;

/// A value. The slot that holds a text stores the text itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Datum {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A timestamp, in microseconds since 1970.
    Time(i64),
    /// The slot's own text.
    Text,
}

impl Datum {
    /// The value of a variable that holds a text, such as one of `-D`: pgbench's words for null, true and false, or a
    /// number. Any other text cannot be used in an expression.
    pub(super) fn spelt(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        if lower == "null" {
            Self::Null
        } else if begins("true") || begins("yes") || lower == "on" {
            Self::Bool(true)
        } else if begins("false") || begins("no") || lower == "off" || lower == "of" {
            Self::Bool(false)
        } else if let Ok(number) = text.parse() {
            Self::Int(number)
        } else {
            text.parse().map_or(Self::Text, Self::Double)
        }
    }
}

/// Whether a value counts as true in a condition: `\if`, CASE.
pub(super) fn truth(value: Datum) -> bool {
    match value {
        Datum::Bool(b) => b,
        Datum::Int(n) => n != 0,
        Datum::Double(n) => n != 0.0,
        Datum::Null | Datum::Time(_) | Datum::Text => false,
    }
}

/// Converts a value to an integer, as pgbench does.
pub(super) fn whole(value: Datum) -> Result<i64> {
    match value {
        Datum::Int(n) => Ok(n),
        other => {
            // Rounds ties to even, as C's rint does. The bounds are exact doubles.
            let n = double(other)?.round_ties_even();
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) {
                Ok(n as i64)
            } else {
                Err(Error::usage(format!("{n} does not fit a 64-bit integer")))
            }
        }
    }
}

pub(super) fn double(value: Datum) -> Result<f64> {
    match value {
        Datum::Int(n) => Ok(n as f64),
        Datum::Double(n) => Ok(n),
        other => Err(Error::usage(format!("{} is not a number", kind(other)))),
    }
}

pub(super) fn condition(value: Datum) -> Result<Option<bool>> {
    match value {
        Datum::Bool(b) => Ok(Some(b)),
        Datum::Null => Ok(None),
        other => Err(Error::usage(format!("{} is neither true nor false", kind(other)))),
    }
}

fn kind(value: Datum) -> &'static str {
    match value {
        Datum::Null => "no value",
        Datum::Bool(_) => "a truth value",
        Datum::Int(_) => "a whole number",
        Datum::Double(_) => "a number",
        Datum::Time(_) => "a timestamp",
        Datum::Text => "a text",
    }
}

/// A divisor.
pub(super) fn nonzero(value: i64) -> Result<i64> {
    if value == 0 { Err(Error::usage("division by zero")) } else { Ok(value) }
}
