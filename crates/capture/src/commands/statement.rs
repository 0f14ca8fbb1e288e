//! A statement on the rows of a table, as that of a key or a document is told.

use crate::forms::Value;

/// The field of a row that is its key, and the one that has the value of a key.
pub(crate) const KEY: &str = "id";
pub(super) const VALUE: &str = "value";

/// A request as a statement, with a value for each of its parameters; or why it is none.
pub(crate) type Translated = Result<(String, Vec<Value>), &'static str>;

/// What is done to a row.
pub(super) enum Change {
    Get(Vec<String>),
    Insert,
    Put,
    Update,
    Delete,
}

/// The fields that are written, each with its value, and whether that is added.
pub(super) type Fields = Vec<(String, Value, bool)>;

/// Writes a statement on the rows of a table. Its values are in the order of their places in the text.
pub(super) fn statement(
    change: &Change,
    table: &str,
    by: Vec<(String, Value)>,
    fields: Fields,
) -> (String, Vec<Value>) {
    let place = |number: usize| format!("${number}");
    // The fields of an UPDATE are before those by which it finds its row.
    let first = if matches!(change, Change::Update) { fields.len() } else { 0 };
    let compare =
        |(at, (column, _)): (usize, &(String, Value))| format!("{column} = {}", place(first + at + 1));
    let compared: Vec<String> = by.iter().enumerate().map(compare).collect();
    let compared = compared.join(" AND ");
    let set = |(at, (column, _, is_added)): (usize, &(String, Value, bool))| {
        let before = if *is_added { format!("{column} + ") } else { String::new() };
        format!("{column} = {before}{}", place(at + 1))
    };
    let sets: Vec<String> = fields.iter().enumerate().map(set).collect();
    let columns = by.iter().map(|(column, _)| column).chain(fields.iter().map(|(column, ..)| column));
    let columns: Vec<&str> = columns.map(String::as_str).collect();
    let columns = columns.join(", ");
    let all: Vec<String> = (1..=by.len() + fields.len()).map(place).collect();
    let text = match change {
        Change::Get(wanted) if wanted.is_empty() => format!("GET * FROM {table} WHERE {compared}"),
        Change::Get(wanted) => format!("GET {} FROM {table} WHERE {compared}", wanted.join(", ")),
        Change::Insert => format!("INSERT INTO {table} ({columns}) VALUES ({})", all.join(", ")),
        Change::Put => format!("PUT INTO {table} ({columns}) VALUES ({})", all.join(", ")),
        Change::Update => format!("UPDATE {table} SET {} WHERE {compared}", sets.join(", ")),
        Change::Delete => format!("DELETE FROM {table} WHERE {compared}"),
    };
    let by = by.into_iter().map(|(_, value)| value);
    let fields = fields.into_iter().map(|(_, value, _)| value);
    let values = if first > 0 { fields.chain(by).collect() } else { by.chain(fields).collect() };
    (text, values)
}

/// A name that a collection and a field may have: in lower case, and with underscores for other characters.
pub(super) fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = text.chars().map(plain).take(38).collect();
    let name = name.trim_matches('_');
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase()) && name != KEY;
    if begins_well { name.to_owned() } else { format!("x_{name}") }
}
