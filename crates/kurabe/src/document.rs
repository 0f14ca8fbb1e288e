//! A TOML document whose entries know their lines.

use kurabe_core::sort;
use kurabe_core::{Error, Result};
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The line of the key, from 1.
    pub(crate) line: usize,
    pub(crate) node: Node,
}

/// A value whose parts know their lines.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// In the order of the file.
    Table(Vec<Entry>),
    /// Each element with its line.
    Array(Vec<(usize, Node)>),
    Value(Value),
}

pub(crate) fn at(line: usize, error: Error) -> Error {
    error.context(format!("line {line}"))
}

/// Reads a document.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the line if it is not TOML.
pub(crate) fn read(text: &str) -> Result<Vec<Entry>> {
    let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        at(error.span().map_or(1, &line), Error::usage(error.message().trim().to_owned()))
    })?;
    entries(table.get_ref(), &line)
}

/// Reads a document as a table without lines.
pub(crate) fn table(text: &str) -> Result<Table> {
    read(text).map(|entries| without_lines(&entries))
}

/// Entries as a table without lines.
pub(crate) fn without_lines(entries: &[Entry]) -> Table {
    entries.iter().map(|entry| (entry.key.clone(), entry.node.value())).collect()
}

/// The entry of a key.
pub(crate) fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.key == key)
}

/// The line of the key, or of the key within `axes`, that gives this error by itself, or without which alone a table does not
/// give it. `read` reads a table; keys of which `is_base` is true are in each.
pub(crate) fn line_of_error(
    entries: &[Entry],
    error: &Error,
    is_base: impl Fn(&str) -> bool,
    read: impl Fn(&Table) -> Result<()>,
) -> Option<usize> {
    let message = error.to_string();
    let whole = without_lines(entries);
    let axes = find(entries, "axes").and_then(|entry| entry.node.table()).unwrap_or_default();
    let gives = |table: &Table| read(table).is_err_and(|error| error.to_string() == message);
    let base: Vec<Entry> = entries.iter().filter(|entry| is_base(&entry.key)).cloned().collect();
    let base = without_lines(&base);
    if !gives(&base) {
        let with = |key: &str, value: Value| {
            let mut table = base.clone();
            table.insert(key.to_owned(), value);
            gives(&table)
        };
        let is_axis = |axis: &&Entry| with("axes", Value::Table(without_lines(std::slice::from_ref(*axis))));
        let is_key = |entry: &&Entry| !is_base(&entry.key) && with(&entry.key, entry.node.value());
        if let Some(entry) = axes.iter().find(is_axis).or_else(|| entries.iter().find(is_key)) {
            return Some(entry.line);
        }
    }
    let without_axis = |axis: &Entry| {
        let mut table = whole.clone();
        if let Some(Value::Table(axes)) = table.get_mut("axes") {
            axes.remove(&axis.key);
        }
        table
    };
    let without_key = |entry: &Entry| {
        let mut table = whole.clone();
        table.remove(&entry.key);
        table
    };
    let line = |counts: &dyn Fn(&Entry) -> bool, helps: &dyn Fn(Table) -> bool| {
        if let Some(axis) = axes.iter().find(|axis| counts(axis) && helps(without_axis(axis))) {
            return Some(axis.line);
        }
        let mut keys = entries.iter().filter(|entry| !is_base(&entry.key) && helps(without_key(entry)));
        keys.next().filter(|_| keys.next().is_none()).map(|entry| entry.line)
    };
    // Another error may have been hidden by this one, or have hidden it: what makes the table right is looked for first. A
    // message that lists axes changes with any of them.
    let is_named = |axis: &Entry| message.contains(&axis.key);
    line(&|_| true, &|table| read(&table).is_ok()).or_else(|| line(&is_named, &|table| !gives(&table)))
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
        DeValue::Datetime(time) => Value::Datetime(*time),
    }))
}

impl Node {
    /// The same without lines.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Table(entries) => Value::Table(without_lines(entries)),
            Self::Array(values) => Value::Array(values.iter().map(|(_, value)| value.value()).collect()),
            Self::Value(value) => value.clone(),
        }
    }

    /// The entries of a table.
    pub(crate) fn table(&self) -> Option<&[Entry]> {
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
        let of_elements = |node: &Node| match node {
            Node::Array(values) => values.iter().map(|(line, _)| *line).collect(),
            _ => Vec::new(),
        };
        assert_eq!(of_elements(&z[2].node), [8]);
        let runs = read("\n\n[[run]]\na = 1\n\n\n[[run]]\na = 2\n").unwrap();
        assert_eq!(of_elements(&runs[0].node), [3, 7]);
        let inline = read("run = [{ a = 1 },\n { a = 2 }]\n").unwrap();
        assert_eq!(of_elements(&inline[0].node), [1, 2]);
    }

    #[test]
    fn line_of_an_error_is_that_of_its_key_also_if_another_key_hides_another_error() {
        let read_table = |table: &Table| match (table.get("rounds"), table.contains_key("arrivals")) {
            (Some(Value::Integer(0)), _) if !table.contains_key("axes") => {
                Err(Error::usage("a rate is missing"))
            }
            (Some(Value::Integer(0)), _) => Err(Error::usage("rounds 0 is out of range")),
            (_, true) if !table.contains_key("margin") => Err(Error::usage("a margin is missing")),
            _ => Ok(()),
        };
        for (text, line) in
            [("axes = { rate = 5 }\nrounds = 0\n", Some(2)), ("a = 1\naxes = {}\n\nrounds = 0\n", Some(4))]
        {
            let entries = read(text).unwrap();
            let error = read_table(&without_lines(&entries)).unwrap_err();
            assert_eq!(line_of_error(&entries, &error, |_| false, read_table), line, "{text}");
        }
        // Two mistakes: no key alone makes it right, but one changes what is said first.
        let two = read("arrivals = 'poisson'\naxes = {}\nrounds = 0\n").unwrap();
        let error = read_table(&without_lines(&two)).unwrap_err();
        assert_eq!(line_of_error(&two, &error, |key| key == "axes", read_table), Some(3));
    }

    #[test]
    fn text_that_is_not_toml_is_an_error_with_its_line() {
        for (text, line) in [("a = 1\nb = = 2", "line 2"), ("[a]\n[a]\n", "line 2"), ("x", "line 1")] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{line}: ")), "{text}: {error}");
        }
    }
}
