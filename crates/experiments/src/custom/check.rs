//! Checks answers against what the workload expects.

use super::request::{Execute, Wanted};
use super::slot::{Slot, Values, operand};
use crate::prelude::*;

/// Checks the answer to a request.
///
/// # Errors
/// [`Mismatch`](kurabe_core::ErrorKind::Mismatch), naming the step and the unexpected value.
#[inline]
pub(super) fn answer(execute: &Execute, reply: &Reply, values: Values<'_>) -> Result<()> {
    let check = |wanted: Option<Wanted>, rows: u64, [before, after]: [&str; 2]| {
        let Some(wanted) = wanted else { return Ok(()) };
        let (least, most) = bounds(wanted, execute, values)?;
        if (least..=most).contains(&rows) {
            return Ok(());
        }
        Err(wrong(execute, &format!("{before}{rows} rows{after}, expected {}", range(least, most))))
    };
    check(execute.rows, reply.rows() as u64, ["the answer has ", ""])?;
    check(execute.affected, reply.affected(), ["", " were changed"])?;
    for (column, expected) in &execute.fields {
        let expected = operand(expected, values);
        for row in 0..reply.rows() {
            let found = reply.field(row, *column);
            if !found.is_some_and(|found| same(found, expected)) {
                let found = found.map_or_else(|| "no such column".to_owned(), shown);
                let what = format!(
                    "column {} of row {} is {found}, expected {}",
                    column + 1,
                    row + 1,
                    shown(expected)
                );
                return Err(wrong(execute, &what));
            }
        }
    }
    Ok(())
}

fn bounds(wanted: Wanted, execute: &Execute, values: Values<'_>) -> Result<(u64, u64)> {
    match wanted {
        Wanted::Range(least, most) => Ok((least, most)),
        Wanted::Variable(slot) => match values.get(slot).map(Slot::value) {
            Some(Value::Int(rows @ 0..)) => Ok((rows.unsigned_abs(), rows.unsigned_abs())),
            value => {
                let what = value.map_or_else(|| "nothing".to_owned(), shown);
                Err(wrong(execute, &format!("{what} is not a valid number of rows")))
            }
        },
    }
}

#[cold]
fn wrong(execute: &Execute, what: &str) -> Error {
    Error::mismatch(format!("{}: {what}", execute.place))
}

fn range(least: u64, most: u64) -> String {
    match (least, most) {
        (one, other) if one == other => one.to_string(),
        (one, u64::MAX) => format!("{one} or more"),
        (one, other) => format!("{one} to {other}"),
    }
}

/// Whether a field of a reply has the expected value. Some engines return a number (a sum, a decimal) as text, and
/// some return a text as a number.
pub(super) fn same(found: Value<'_>, expected: Value<'_>) -> bool {
    match (found, expected) {
        (Value::Bytes(found), Value::Text(expected)) => {
            found == expected.as_bytes() || numbers(found, expected.as_bytes())
        }
        (Value::Bytes(found), Value::Int(expected)) => {
            let text = std::str::from_utf8(found).unwrap_or_default();
            text.parse::<i64>() == Ok(expected) || text.parse::<f64>() == Ok(expected as f64)
        }
        (Value::Int(found), Value::Text(expected)) => {
            expected.parse::<i64>() == Ok(found) || expected.parse::<f64>() == Ok(found as f64)
        }
        // Engines return a boolean as a number or, as PostgreSQL does in text format, as a letter.
        (Value::Int(found), Value::Bool(expected)) => found == i64::from(expected),
        (Value::Bytes(found), Value::Bool(expected)) => {
            let words: [&[u8]; 3] = if expected { [b"t", b"true", b"1"] } else { [b"f", b"false", b"0"] };
            words.contains(&found)
        }
        (found, expected) => found == expected,
    }
}

/// Whether two texts are the same non-integer number, written in two ways.
fn numbers(one: &[u8], other: &[u8]) -> bool {
    let number =
        |text: &[u8]| std::str::from_utf8(text).ok().filter(|text| text.contains('.'))?.parse::<f64>().ok();
    matches!((number(one), number(other)), (Some(one), Some(other)) if (one - other).abs() <= f64::EPSILON * one.abs())
}

fn shown(value: Value<'_>) -> String {
    const MAX: usize = 40;
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let cut: String = text.chars().take(MAX).collect();
        if cut.len() < text.len() { format!("'{cut}…'") } else { format!("'{cut}'") }
    };
    match value {
        Value::Null => "no value".to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Time(micros) => format!("the timestamp {micros}"),
        Value::Bool(truth) => truth.to_string(),
        Value::Text(value) => text(value.as_bytes()),
        Value::Bytes(bytes) => text(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_equal_across_representations() {
        assert!(same(Value::Int(5), Value::Int(5)));
        assert!(same(Value::Bytes(b"5"), Value::Int(5)));
        assert!(same(Value::Bytes(b"5.00"), Value::Int(5)));
        assert!(same(Value::Bytes(b"2.50"), Value::Text("2.5")));
        assert!(same(Value::Bytes(b"x"), Value::Text("x")));
        assert!(same(Value::Null, Value::Null));
        assert!(!same(Value::Bytes(b"5"), Value::Int(6)));
        assert!(!same(Value::Bytes(b"10"), Value::Text("10.0x")));
        assert!(!same(Value::Null, Value::Int(0)));
    }
}
