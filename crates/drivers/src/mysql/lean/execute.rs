//! Request that executes a prepared statement (`COM_STMT_EXECUTE`, "Binary Protocol Value").

use crate::packed::bytes_of;
use crate::prelude::*;
use crate::wire::{Outbox, Peer};
use kurabe_protocol::mysql::message::{command, kind as kinds, length_width, push_length};

/// Command, statement (4), flags, iterations (4).
const HEAD: usize = 10;

/// A value's type number (`field_types.h`). NULL keeps the previous type.
fn kind(value: &Value<'_>, before: u8) -> u8 {
    match value {
        Value::Null => before,
        Value::Int(_) | Value::Bool(_) => kinds::LONGLONG,
        Value::Time(_) => kinds::DATETIME,
        // Bytes must not be converted from the connection's character set.
        Value::Bytes(_) => 252,
        Value::Text(_) => 253,
    }
}

/// Updates the parameter types; returns whether they must be sent again.
pub(super) fn retype(types: &mut [u8], parameters: &[Value<'_>]) -> bool {
    let mut changed = false;
    for (before, value) in types.iter_mut().zip(parameters) {
        let now = kind(value, *before);
        changed |= now != *before;
        *before = now;
    }
    changed
}

/// The length of the whole command.
pub(super) fn length(parameters: &[Value<'_>], with_types: bool) -> Result<usize> {
    if parameters.is_empty() {
        return Ok(HEAD);
    }
    let types = if with_types { 2 * parameters.len() } else { 0 };
    let fixed = HEAD + parameters.len().div_ceil(8) + 1 + types;
    parameters.iter().try_fold(fixed, |sum, value| {
        Ok(sum
            + match value {
                Value::Null => 0,
                Value::Int(_) | Value::Bool(_) => 8,
                // Validates the timestamp before anything is sent.
                Value::Time(micros) => DateTime::from_micros(*micros).map(|_| 12)?,
                Value::Text(_) | Value::Bytes(_) => {
                    let length = bytes_of(value).map_or(0, <[u8]>::len);
                    length_width(length) + length
                }
            })
    })
}

/// The command up to its values.
pub(super) fn head(
    out: &mut Vec<u8>,
    statement: u32,
    types: &[u8],
    parameters: &[Value<'_>],
    with_types: bool,
) {
    out.push(command::STMT_EXECUTE);
    out.extend_from_slice(&statement.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return;
    }
    for eight in parameters.chunks(8) {
        let nulls = eight.iter().rev().fold(0, |bits, value| bits << 1 | u8::from(*value == Value::Null));
        out.push(nulls);
    }
    out.push(u8::from(with_types));
    if with_types {
        out.extend(types.iter().flat_map(|kind| [*kind, 0]));
    }
}

pub(super) fn values<'v, S: Peer>(outbox: &mut Outbox<'_, 'v, S>, parameters: &[Value<'v>]) -> Result<()> {
    for value in parameters {
        match *value {
            Value::Null => {}
            Value::Int(n) => outbox.text.extend_from_slice(&n.to_le_bytes()),
            Value::Bool(truth) => outbox.text.extend_from_slice(&i64::from(truth).to_le_bytes()),
            Value::Time(micros) => {
                let t = DateTime::from_micros(micros)?;
                let [low, high] = t.year.to_le_bytes();
                outbox.text.extend_from_slice(&[11, low, high, t.month, t.day, t.hour, t.minute, t.second]);
                outbox.text.extend_from_slice(&t.micros.to_le_bytes());
            }
            Value::Text(_) | Value::Bytes(_) => {
                let bytes = bytes_of(value).unwrap_or_default();
                push_length(outbox.text, bytes.len());
                outbox.value(bytes)?;
            }
        }
    }
    Ok(())
}
