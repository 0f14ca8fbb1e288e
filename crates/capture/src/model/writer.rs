//! What a model is written from: the capture, and what was learnt of its tables so far.

use super::tables::Lengths;
use crate::forms::Value;
use crate::rows::Plain;
use crate::show::Analysis;
use crate::variables::{Statement, Use};
use std::collections::{BTreeMap, BTreeSet};

/// The key of a table that is made, and whose own is not known.
pub(super) const NUMBER: &str = "number";

#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(super) struct Writer<'a> {
    pub(super) analysis: &'a Analysis,
    /// Each form, if it is so simple.
    pub(super) simple: Vec<Option<Plain>>,
    /// Of commands on keys and documents, the mean lengths of texts.
    pub(super) lengths: Option<Lengths>,
    pub(super) made: bool,
    pub(super) family: &'static str,
    /// Whether values are put into the texts of statements, as they are.
    pub(super) is_literal: bool,
    pub(super) tables: BTreeMap<String, Table>,
    /// Why statements, by their places, are not in the model.
    pub(super) lost: BTreeMap<usize, &'static str>,
    pub(super) carried: BTreeSet<usize>,
    pub(super) writes: bool,
    /// Whether additions to a column became writes.
    pub(super) adds: bool,
    /// The most repetitions of a loop that is in the model, as recorded.
    pub(super) longest_loop: u64,
    pub(super) names: BTreeSet<String>,
    pub(super) codes: &'static [&'static str],
}

impl Writer<'_> {
    /// Whether it is of commands on keys or documents.
    pub(super) fn is_translated(&self) -> bool {
        self.lengths.is_some()
    }

    pub(super) fn simple(&self, statement: &Statement) -> Option<(Plain, Vec<Use>)> {
        let values = statement.values.clone()?;
        let simple = self.simple.get(statement.form)?.clone()?;
        Some((simple, values))
    }
}

/// A table, as far as statements say.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The columns by which rows are found that are one at most, and the calls that do it.
    pub(super) keys: BTreeMap<Vec<String>, u64>,
    pub(super) key: Vec<String>,
    pub(super) fields: BTreeMap<String, Field>,
    /// Columns by which rows are found, other than by the key.
    pub(super) indexed: BTreeSet<Vec<String>>,
    /// The largest key.
    pub(super) rows: i64,
    /// The fields of steps that name it.
    pub(super) used: BTreeSet<String>,
    /// Whether its key was added, since no statement names one.
    pub(super) is_numbered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Field {
    /// No value says what it is.
    #[default]
    Unknown,
    Int,
    /// Up to so many characters.
    Text(usize),
    Time,
    Other,
}

impl Field {
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, field) | (field, Self::Unknown) => field,
            (Self::Text(one), Self::Text(two)) => Self::Text(one.max(two)),
            (one, two) if one == two => one,
            _ => Self::Other,
        }
    }

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Int(_) => Self::Int,
            // A time may be a column of another type than text.
            Value::Text(text)
                if !text.get(4..5).is_some_and(|sign| sign == "-" && text[..4].parse::<u16>().is_ok()) =>
            {
                Self::Text(text.chars().count())
            }
            _ => Self::Other,
        }
    }
}

pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    match values.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", values.join(", ")),
    }
}

pub(super) fn toml(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) | Value::Verbatim(text) => quoted(text),
        Value::Null | Value::Unknown => quoted(""),
    }
}

/// A text of TOML: its escapes are those of JSON, and it has one character less.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
