//! A table of a TOML file. Each key is checked, and errors name the place of the table.

use super::variables::{Constant, Operand, Variables};
use crate::prelude::*;
use toml::de::DeTable;
use toml::{Table, Value};

/// A table with its place.
pub(super) struct Section<'a> {
    pub(super) table: &'a Table,
    pub(super) place: String,
}

/// The place of a table in a file, with the line of its name: `shop.toml: line 7: collection users`.
pub(super) fn place(file: &str, text: &str, kind: &str, name: &str) -> String {
    let line = line(text, kind, name).map_or_else(String::new, |line| format!("line {line}: "));
    format!("{file}: {line}{kind} {name}")
}

/// The line of `[KIND.NAME]`.
fn line(text: &str, kind: &str, name: &str) -> Option<usize> {
    let top = DeTable::parse(text).ok()?;
    let inner =
        top.get_ref().iter().find(|(key, _)| key.get_ref().as_ref() == kind)?.1.get_ref().as_table()?;
    let (key, _) = inner.iter().find(|(key, _)| key.get_ref().as_ref() == name)?;
    Some(text.get(..key.span().start)?.matches('\n').count() + 1)
}

impl<'a> Section<'a> {
    /// The section, in which only these keys are valid.
    pub(super) fn new(table: &'a Table, place: impl Into<String>, keys: &[&str]) -> Result<Self> {
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

    pub(super) fn error(&self, what: impl Into<String>) -> kurabe_core::Error {
        Error::usage(what).context(&self.place)
    }

    /// Adds the place of this section to an error.
    pub(super) fn at<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.context(&self.place))
    }

    /// The value of a key, converted by `read`; `what` says what a value that it rejects is.
    pub(super) fn read<T>(
        &self,
        key: &str,
        what: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let wrong = || self.error(format!("'{key}' is {what}"));
        self.get(key).map(|value| read(value).ok_or_else(wrong)).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.read(key, "not a text", Value::as_str)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<i64>> {
        self.read(key, "not a whole number", number)
    }

    pub(super) fn truth(&self, key: &str) -> Result<bool> {
        Ok(self.read(key, "neither true nor false", Value::as_bool)?.unwrap_or(false))
    }

    pub(super) fn table(&self, key: &str) -> Result<Option<&'a Table>> {
        self.read(key, "not a table", Value::as_table)
    }

    pub(super) fn range(&self, key: &str) -> Result<Option<(i64, i64)>> {
        self.read(key, &format!("not a range: write {key} = [least, most]"), |value| {
            let [least, most] = value.as_array()?.as_slice() else { return None };
            let (least, most) = (number(least)?, number(most)?);
            (least <= most).then_some((least, most))
        })
    }

    /// Counts from the minimum to the maximum: one number, or two.
    pub(super) fn counts(&self, key: &str) -> Result<Option<(u64, u64)>> {
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
    pub(super) fn names(&self, key: &str) -> Result<Option<Vec<&'a str>>> {
        self.read(key, "neither a name nor a list of names", |value| match value {
            Value::String(name) => Some(vec![name.as_str()]),
            Value::Array(names) => names.iter().map(Value::as_str).collect(),
            _ => None,
        })
    }

    pub(super) fn constants(&self, key: &str) -> Result<Option<Vec<Constant>>> {
        let list = |value: &'a Value| value.as_array().filter(|list| !list.is_empty());
        let Some(list) = self.read(key, "not a list of values", list)? else { return Ok(None) };
        list.iter().map(|value| self.constant(key, value)).collect::<Result<_>>().map(Some)
    }

    pub(super) fn constant(&self, key: &str, value: &Value) -> Result<Constant> {
        match value {
            Value::String(text) => Ok(Constant::Text(text.clone())),
            Value::Integer(n) => Ok(Constant::Int(*n)),
            Value::Float(n) => Ok(Constant::Double(*n)),
            _ => Err(self.error(format!("'{key}' is neither a text nor a number"))),
        }
    }

    /// A value, or a colon and the name of a variable.
    pub(super) fn operand(&self, key: &str, value: &Value, variables: &Variables) -> Result<Operand> {
        if let Some(name) = value.as_str().and_then(|text| text.strip_prefix(':')) {
            if let Some(literal) = name.strip_prefix(':') {
                return Ok(Operand::Constant(Constant::Text(format!(":{literal}"))));
            }
            return self.at(variable(name, variables)).map(Operand::Variable);
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

pub(super) fn variable(name: &str, variables: &Variables) -> Result<usize> {
    variables.find(name).ok_or_else(|| {
        let names: Vec<&str> = variables.names.iter().map(String::as_str).collect();
        unknown(name, &names, "variable")
    })
}

pub(crate) fn position(name: &str, names: &[&str], what: &str) -> Result<usize> {
    names.iter().position(|known| *known == name).ok_or_else(|| unknown(name, names, what))
}

/// Rejects an unknown name and suggests the nearest.
pub(super) fn known(name: &str, names: &[&str], what: &str) -> Result<()> {
    position(name, names, what).map(drop)
}

fn unknown(name: &str, names: &[&str], what: &str) -> kurabe_core::Error {
    let error = Error::usage(format!("unknown {what} '{name}'"));
    match units::nearest(name, names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if names.is_empty() => error,
        None => error.hint(format!("known: {}", names.join(", "))),
    }
}
