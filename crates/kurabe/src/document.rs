//! A TOML document whose entries know their lines.

use kurabe_core::sort;
use kurabe_core::{Error, Result};
use std::ops::Range;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The line of the key, from 1.
    pub(super) line: usize,
    pub(super) node: Node,
}

/// A value whose parts know their lines.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// In the order of the file.
    Table(Vec<Entry>),
    /// Each element with its line.
    Array(Vec<(usize, Node)>),
    Value(Value),
}

pub(super) fn at(line: usize, error: Error) -> Error {
    error.context(format!("line {line}"))
}

/// Reads a document.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the line if it is not TOML.
pub(super) fn read(text: &str) -> Result<Vec<Entry>> {
    let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        at(error.span().map_or(1, &line), Error::usage(error.message().trim().to_owned()))
    })?;
    entries(table.get_ref(), &line)
}

type Line<'a> = &'a dyn Fn(Range<usize>) -> usize;

fn entries(table: &DeTable<'_>, line: Line<'_>) -> Result<Vec<Entry>> {
    let mut found: Vec<(usize, Entry)> = Vec::new();
    for (key, value) in table {
        let start = key.span().start;
        let node = node(value.get_ref(), value.span(), line)?;
        found.push((start, Entry { key: key.get_ref().to_string(), line: line(key.span()), node }));
    }
    sort::by_key(&mut found, |(start, _)| *start);
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

fn node(value: &DeValue<'_>, span: Range<usize>, line: Line<'_>) -> Result<Node> {
    let wrong = |what: &str| at(line(span.clone()), Error::usage(format!("{what} is not a valid number")));
    Ok(Node::Value(match value {
        DeValue::Table(table) => return Ok(Node::Table(entries(table, line)?)),
        DeValue::Array(values) => {
            let values = values.iter();
            let one =
                values.map(|value| Ok((line(value.span()), node(value.get_ref(), value.span(), line)?)));
            return Ok(Node::Array(one.collect::<Result<_>>()?));
        }
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(parsed.map_err(|_| wrong(number.as_str()))?)
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().map_err(|_| wrong(number.as_str()))?),
        DeValue::Boolean(on) => Value::Boolean(*on),
        DeValue::Datetime(time) => Value::String(time.to_string()),
    }))
}

impl Node {
    /// The same without lines.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Table(entries) => {
                Value::Table(entries.iter().map(|entry| (entry.key.clone(), entry.node.value())).collect())
            }
            Self::Array(values) => Value::Array(values.iter().map(|(_, value)| value.value()).collect()),
            Self::Value(value) => value.clone(),
        }
    }

    /// The entries of a table.
    pub(super) fn table(&self) -> Option<&[Entry]> {
        match self {
            Self::Table(entries) => Some(entries),
            Self::Array(_) | Self::Value(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_line_and_entries_keep_their_order() {
        let text = "\n[z]\nb = 1\na = { x = 2,\n  y = [3,\n 4] }\n\n[[z.test]]\nk = 'v'\n[c]\n";
        let found = read(text).unwrap();
        let lines = |entries: &[Entry]| -> Vec<(String, usize)> {
            entries.iter().map(|entry| (entry.key.clone(), entry.line)).collect()
        };
        let of = |pairs: &[(&str, usize)]| -> Vec<(String, usize)> {
            pairs.iter().map(|(key, line)| ((*key).to_owned(), *line)).collect()
        };
        assert_eq!(lines(&found), of(&[("z", 2), ("c", 10)]));
        let z = found[0].node.table().unwrap();
        assert_eq!(lines(z), of(&[("b", 3), ("a", 4), ("test", 8)]));
        assert_eq!(lines(z[1].node.table().unwrap()), of(&[("x", 4), ("y", 5)]));
        assert_eq!(z[1].node.value().get("y").unwrap().as_array().unwrap().len(), 2);
    }

    #[test]
    fn text_that_is_not_toml_is_an_error_with_its_line() {
        for (text, line) in [("a = 1\nb = = 2", "line 2"), ("[a]\n[a]\n", "line 2"), ("x", "line 1")] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(line), "{text}: {error}");
        }
    }
}
