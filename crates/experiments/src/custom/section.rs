//! A table of a TOML file. Each key is checked, and errors name the place of the table.

use super::declared::{Constant, Operand, Variables};
use super::place::{Fault, fault};
use crate::prelude::*;
use toml::{Table, Value};

/// A table with its place.
pub(super) struct Section<'a> {
    pub(super) table: &'a Table,
    pub(super) place: String,
}

impl<'a> Section<'a> {
    /// The section, in which only these keys are valid.
    pub(super) fn new(table: &'a Table, place: impl Into<String>, keys: &[&str]) -> Fault<Self> {
        let place = place.into();
        for key in table.keys() {
            known(key, keys, "key").map_err(|error| error.context(&place))?;
        }
        Ok(Self { table, place })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// An error about this section.
    pub(super) fn error(&self, what: impl Into<String>) -> kurabe_core::Error {
        fault(what).context(&self.place)
    }

    pub(super) fn text(&self, key: &str) -> Fault<Option<&'a str>> {
        self.get(key)
            .map(|value| value.as_str().ok_or_else(|| self.error(format!("'{key}' is not a text"))))
            .transpose()
    }

    pub(super) fn number(&self, key: &str) -> Fault<Option<i64>> {
        self.get(key)
            .map(|value| number(value).ok_or_else(|| self.error(format!("'{key}' is not a whole number"))))
            .transpose()
    }

    pub(super) fn truth(&self, key: &str) -> Fault<bool> {
        self.get(key).map_or(Ok(false), |value| {
            value.as_bool().ok_or_else(|| self.error(format!("'{key}' is neither true nor false")))
        })
    }

    pub(super) fn table(&self, key: &str) -> Fault<Option<&'a Table>> {
        self.get(key)
            .map(|value| value.as_table().ok_or_else(|| self.error(format!("'{key}' is not a table"))))
            .transpose()
    }

    /// Two numbers, the minimum and the maximum.
    pub(super) fn range(&self, key: &str) -> Fault<Option<(i64, i64)>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let bad = || self.error(format!("'{key}' is not a range: write {key} = [least, most]"));
        match value.as_array().map(Vec::as_slice) {
            Some([least, most]) => match (number(least), number(most)) {
                (Some(least), Some(most)) if least <= most => Ok(Some((least, most))),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        }
    }

    /// Counts from the minimum to the maximum: one number, or two.
    pub(super) fn counts(&self, key: &str) -> Fault<Option<(u64, u64)>> {
        let bad = || self.error(format!("'{key}' is neither a count nor [least, most]"));
        let range = match self.get(key) {
            None => return Ok(None),
            Some(Value::Array(_)) => self.range(key)?,
            Some(value) => number(value).map(|n| (n, n)),
        };
        let (least, most) = range.filter(|(least, _)| *least >= 0).ok_or_else(bad)?;
        Ok(Some((least as u64, most as u64)))
    }

    /// One name or several.
    pub(super) fn names(&self, key: &str) -> Fault<Option<Vec<&'a str>>> {
        let bad = || self.error(format!("'{key}' is neither a name nor a list of names"));
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(name)) => Ok(Some(vec![name])),
            Some(Value::Array(names)) => {
                names.iter().map(|name| name.as_str().ok_or_else(bad)).collect::<Fault<_>>().map(Some)
            }
            Some(_) => Err(bad()),
        }
    }

    pub(super) fn constants(&self, key: &str) -> Fault<Option<Vec<Constant>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| self.error(format!("'{key}' is not a list of values")))?;
        list.iter().map(|value| self.constant(key, value)).collect::<Fault<_>>().map(Some)
    }

    pub(super) fn constant(&self, key: &str, value: &Value) -> Fault<Constant> {
        match value {
            Value::String(text) => Ok(Constant::Text(text.clone())),
            Value::Integer(n) => Ok(Constant::Int(*n)),
            Value::Float(n) => Ok(Constant::Double(*n)),
            _ => Err(self.error(format!("'{key}' is neither a text nor a number"))),
        }
    }

    /// A value, or a colon and the name of a variable.
    pub(super) fn operand(&self, key: &str, value: &Value, variables: &Variables) -> Fault<Operand> {
        if let Some(name) = value.as_str().and_then(|text| text.strip_prefix(':')) {
            if let Some(literal) = name.strip_prefix(':') {
                return Ok(Operand::Constant(Constant::Text(format!(":{literal}"))));
            }
            return variable(name, variables)
                .map(Operand::Variable)
                .map_err(|error| error.context(&self.place));
        }
        Ok(Operand::Constant(match self.constant(key, value)? {
            Constant::Double(n) => Constant::Text(n.to_string()),
            other => other,
        }))
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(n) => Some(*n),
        // "100k", as in suites.
        Value::String(text) => units::parse_count(text).ok().and_then(|n| i64::try_from(n).ok()),
        _ => None,
    }
}

/// The slot of a variable.
pub(super) fn variable(name: &str, variables: &Variables) -> Fault<usize> {
    variables.find(name).ok_or_else(|| {
        let names: Vec<&str> = variables.names.iter().map(String::as_str).collect();
        unknown(name, &names, "variable")
    })
}

/// The position of a name.
pub(super) fn position(name: &str, names: &[&str], what: &str) -> Fault<usize> {
    names.iter().position(|known| *known == name).ok_or_else(|| unknown(name, names, what))
}

/// Rejects an unknown name and suggests the nearest.
pub(super) fn known(name: &str, names: &[&str], what: &str) -> Fault<()> {
    position(name, names, what).map(drop)
}

fn unknown(name: &str, names: &[&str], what: &str) -> kurabe_core::Error {
    let error = fault(format!("unknown {what} '{name}'"));
    match units::nearest(name, names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if names.is_empty() => error,
        None => error.hint(format!("known: {}", names.join(", "))),
    }
}
