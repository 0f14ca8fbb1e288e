//! Statements with gaps, into which values are written as literals.

use super::dialect::Dialect;
use super::literal::{Literals, Read, unfit};
use super::shape::{Shape, shape};
use super::statement;
use crate::prelude::*;

/// The placeholder of a gap, into which a literal is written. No statement contains it otherwise.
const GAP: char = '\0';

/// A statement with gaps for its values.
#[derive(Debug)]
pub struct Template {
    name: &'static str,
    /// The text around the gaps: one part more than gaps.
    parts: Vec<String>,
    shape: Shape,
    literals: Literals,
}

impl Template {
    /// The template of an operation.
    pub fn new(dialect: &Dialect, operation: &Operation) -> Result<Self> {
        let text = statement::text(&with_gaps(dialect), operation)?;
        Self::of(&text, shape(operation)?, operation.name(), dialect.literals)
    }

    /// The template of a statement from a dialect [`with_gaps`], with values in the order of its gaps.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if the numbers of gaps and values differ.
    pub fn of(text: &str, shape: Shape, name: &'static str, literals: Literals) -> Result<Self> {
        let parts: Vec<String> = text.split(GAP).map(ToOwned::to_owned).collect();
        if parts.len() != shape.takes.len() + 1 {
            let message = format!("{name} has {} gaps for {} values", parts.len() - 1, shape.takes.len());
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(Self { name, parts, shape, literals })
    }

    /// The types of the result fields; empty if there are no rows.
    pub fn gives(&self) -> &[FieldType] {
        &self.shape.gives
    }

    /// Replaces `out` by the statement with these values.
    ///
    /// # Errors
    /// If the numbers of values and gaps differ, a value is not of its field's type, or the engine has no literal for
    /// it.
    pub fn fill(&self, values: &[Value<'_>], out: &mut String) -> Result<()> {
        crate::slots::check_parameters(self.name, self.shape.takes.len(), values.len())?;
        out.clear();
        out.push_str(self.parts.first().map_or("", String::as_str));
        for ((value, kind), part) in values.iter().zip(&self.shape.takes).zip(self.parts.iter().skip(1)) {
            self.literal(out, *value, *kind)?;
            out.push_str(part);
        }
        Ok(())
    }

    fn literal(&self, out: &mut String, value: Value<'_>, kind: FieldType) -> Result<()> {
        let is_text = matches!(kind, FieldType::Text { .. } | FieldType::LongText);
        let is_bytes = matches!(kind, FieldType::Bytes { .. } | FieldType::LongBytes);
        let fitting = match value {
            Value::Bytes(bytes) if is_text => Value::Text(
                std::str::from_utf8(bytes)
                    .map_err(|_| Error::usage("a field of text is given bytes that are not UTF-8"))?,
            ),
            Value::Text(text) if is_bytes => Value::Bytes(text.as_bytes()),
            Value::Int(_) if kind != FieldType::Int => return Err(unfit(kind, "a number")),
            Value::Time(_) if kind != FieldType::Timestamp => return Err(unfit(kind, "a timestamp")),
            Value::Bool(_) => return Err(unfit(kind, "a truth value")),
            Value::Text(_) | Value::Bytes(_) if !is_text && !is_bytes => {
                return Err(unfit(kind, "text or bytes"));
            }
            fitting => fitting,
        };
        (self.literals.write)(out, fitting)
    }

    /// The parser of each field of an answer; empty if no field needs one.
    pub fn readers(&self) -> Vec<Option<Read>> {
        let readers: Vec<_> = self.shape.gives.iter().map(|kind| (self.literals.read)(*kind)).collect();
        if readers.iter().all(Option::is_none) { Vec::new() } else { readers }
    }
}

/// The dialect with a gap for each value.
pub fn with_gaps(dialect: &Dialect) -> Dialect {
    Dialect { parameter: |_| GAP.to_string(), ..dialect.clone() }
}
