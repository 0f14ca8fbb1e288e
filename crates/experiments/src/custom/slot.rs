//! The variables of a client, and the values that requests are given.

use super::declared::{Constant, Operand, Parameter};
use super::evaluate::Datum;
use kurabe_core::collection::FieldType;
use kurabe_core::value::Value;
use kurabe_core::{Error, Result};

/// A variable of a client.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) datum: Datum,
    /// The text of [`Datum::Text`], and how a number that is not whole is written; kept for its memory.
    pub(super) text: String,
}

impl Slot {
    pub(super) fn of(constant: &Constant) -> Self {
        let mut slot = Self { datum: Datum::Null, text: String::new() };
        slot.set_constant(constant);
        slot
    }

    /// Becomes the same as another, and keeps its memory.
    pub(super) fn copy(&mut self, other: &Self) {
        self.datum = other.datum;
        if matches!(other.datum, Datum::Text | Datum::Double(_)) {
            self.text.clone_from(&other.text);
        }
    }

    pub(super) fn set(&mut self, datum: Datum) {
        if let Datum::Double(n) = datum {
            self.text.clear();
            super::number::write(n, &mut self.text);
        }
        self.datum = datum;
    }

    pub(super) fn set_constant(&mut self, constant: &Constant) {
        match constant {
            Constant::Null => self.set(Datum::Null),
            Constant::Int(n) => self.set(Datum::Int(*n)),
            Constant::Double(n) => self.set(Datum::Double(*n)),
            Constant::Text(text) => {
                self.text.clone_from(text);
                self.datum = Datum::Text;
            }
        }
    }

    pub(super) fn set_value(&mut self, value: Value<'_>) -> Result<()> {
        match value {
            Value::Null => self.set(Datum::Null),
            Value::Int(n) => self.set(Datum::Int(n)),
            Value::Time(micros) => self.set(Datum::Time(micros)),
            Value::Bool(truth) => self.set(Datum::Bool(truth)),
            Value::Text(_) | Value::Bytes(_) => {
                let bytes = if let Value::Text(text) = value { text.as_bytes() } else { bytes_of(value) };
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| Error::mismatch("a value that is to be kept is no text"))?;
                self.text.clear();
                self.text.push_str(text);
                self.datum = Datum::Text;
            }
        }
        Ok(())
    }

    /// What an expression sees: of a text the value that it spells, where it spells one.
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

fn bytes_of(value: Value<'_>) -> &[u8] {
    match value {
        Value::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// The variables as a request saw them: those that were changed since, as they were.
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

/// The value of an operand.
pub(super) fn operand<'a>(operand: &'a Operand, values: Values<'a>) -> Value<'a> {
    match operand {
        Operand::Variable(slot) => values.get(*slot).map_or(Value::Null, Slot::value),
        Operand::Constant(constant) => match constant {
            Constant::Int(n) => Value::Int(*n),
            // A double was written as text when the file was read.
            Constant::Null | Constant::Double(_) => Value::Null,
            Constant::Text(text) => Value::Text(text),
        },
    }
}

/// A parameter as its field takes it.
pub(super) fn parameter<'a>(parameter: &'a Parameter, values: Values<'a>) -> Value<'a> {
    match operand(&parameter.operand, values) {
        Value::Int(seconds) if parameter.kind == Some(FieldType::Timestamp) => {
            Value::Time(seconds.saturating_mul(1_000_000))
        }
        // No field holds truth values.
        Value::Bool(truth) if parameter.kind.is_some() => Value::Int(i64::from(truth)),
        value => value,
    }
}
