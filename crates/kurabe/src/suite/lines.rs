//! The lines of a suite file, for messages.

use kurabe_core::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Table;
use toml::de::{DeTable, DeValue};

/// The table of a suite file.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the line if it is not TOML.
pub(super) fn table(text: &str) -> Result<Table> {
    text.parse().map_err(|error| of_toml(text, &error))
}

fn of_toml(text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map_or(0, |span| line(text, &span));
    Error::usage(error.message()).context(format!("line {line}"))
}

/// The line, from 1, where a part of a text begins.
fn line(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
}

/// The lines of a suite of several runs.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Of the keys that hold for all runs.
    pub(super) common: BTreeMap<String, usize>,
    /// Of the runs, in their order.
    pub(super) runs: Vec<RunLines>,
}

#[derive(Debug, Default)]
pub(super) struct RunLines {
    /// Where it begins.
    pub(super) first: usize,
    pub(super) keys: BTreeMap<String, usize>,
    pub(super) axes: BTreeMap<String, usize>,
}

impl Lines {
    /// The lines of a suite whose runs are the values of `key`.
    ///
    /// # Errors
    /// As for [`table`].
    pub(super) fn of(text: &str, key: &str) -> Result<Self> {
        let document = DeTable::parse(text).map_err(|error| of_toml(text, &error))?;
        let document = document.get_ref();
        let runs = value(document, key).and_then(DeValue::as_array).into_iter().flat_map(|runs| runs.iter());
        let runs = runs.map(|run| {
            let table = run.get_ref().as_table();
            let axes = table.and_then(|table| value(table, "axes")).and_then(DeValue::as_table);
            let keys = |table: Option<&DeTable<'_>>| table.map(|table| keys(text, table)).unwrap_or_default();
            RunLines { first: line(text, &run.span()), keys: keys(table), axes: keys(axes) }
        });
        Ok(Self { common: keys(text, document), runs: runs.collect() })
    }
}

fn value<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<&'a DeValue<'t>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value.get_ref())
}

fn keys(text: &str, table: &DeTable<'_>) -> BTreeMap<String, usize> {
    table.iter().map(|(key, _)| (key.get_ref().to_string(), line(text, &key.span()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_headers_and_keys() {
        let text = "rounds = 1\n\n[[run]]\nexperiment = 'kv'\naxes = { clients = 1 }\n# é\n[[run]]\nname = 'x'\n\
                    [run.axes]\n\nrows = 3\n";
        let lines = Lines::of(text, "run").unwrap();
        assert_eq!(lines.common["rounds"], 1);
        assert_eq!(lines.runs.iter().map(|run| run.first).collect::<Vec<_>>(), [3, 7]);
        assert_eq!((lines.runs[0].keys["experiment"], lines.runs[0].axes["clients"]), (4, 5));
        assert_eq!((lines.runs[1].keys["name"], lines.runs[1].axes["rows"]), (8, 11));
        assert_eq!(Lines::of("run = [{ name = 'a' }]", "run").unwrap().runs[0].first, 1);
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        let error = table("a = 1\nb = = 2").unwrap_err().to_string();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
