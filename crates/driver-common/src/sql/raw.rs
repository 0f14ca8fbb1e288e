//! A user's custom statements as an engine's SQL.

use super::dialect::Dialect;
use crate::prelude::*;
use kurabe_core::raw::{RawPiece, RawStatement};

/// The names by which custom statements may refer to an engine: the first ones of all dialects.
pub const ENGINES: &[&str] = &["sqlite", "postgres", "mysql", "mariadb", "oracle"];

/// Why an SQL engine does not support pages.
pub(super) const NO_PAGES: &str = "a database has no pages";

/// Whether an SQL engine supports an operation: all except pages, flows and custom statements without a text for this engine.
pub fn supports(dialect: &Dialect, operation: &Operation) -> Support {
    match operation {
        Operation::Raw { statement } if statement.text(dialect.words).is_none() => {
            Support::No(missing(dialect, statement))
        }
        Operation::Page { .. } => Support::no(NO_PAGES),
        Operation::Flow(_) => Support::no(NO_FLOW),
        _ => Support::Native,
    }
}

fn missing(dialect: &Dialect, statement: &RawStatement) -> String {
    format!("{} has no statement for {}", statement.place, dialect.engine)
}

/// The parts of a custom statement's text before, between and after its parameters, whose values are put into the text
/// as they are.
pub fn parts(dialect: &Dialect, statement: &RawStatement) -> Result<Vec<String>> {
    let Some(text) = statement.text(dialect.words) else {
        return Err(Error::unsupported(missing(dialect, statement)));
    };
    let mut parts = vec![String::new()];
    for piece in &text.pieces {
        let last = parts.len() - 1;
        match piece {
            RawPiece::Text(text) => parts[last] += text,
            RawPiece::Table(name) => parts[last] += &dialect.quoted(name),
            RawPiece::Parameter => parts.push(String::new()),
        }
    }
    Ok(parts)
}

/// Writes the text of one execution, as pgbench does: without quotes.
///
/// # Errors
/// If the number of values is wrong, or one is not text.
pub fn fill(parts: &[String], values: &[Value<'_>], sql: &mut String) -> Result<()> {
    use std::fmt::Write as _;
    check_parameters("the statement", parts.len().saturating_sub(1), values.len())?;
    sql.clear();
    for (n, part) in parts.iter().enumerate() {
        sql.push_str(part);
        match values.get(n) {
            None => {}
            Some(Value::Null) => sql.push_str("NULL"),
            Some(Value::Int(number) | Value::Time(number)) => {
                let _ = write!(sql, "{number}");
            }
            Some(Value::Bool(truth)) => sql.push_str(if *truth { "true" } else { "false" }),
            Some(Value::Text(text)) => sql.push_str(text),
            Some(Value::Bytes(bytes)) => {
                let text = std::str::from_utf8(bytes);
                sql.push_str(text.map_err(|_| Error::usage("a value for a statement's text is not UTF-8"))?);
            }
        }
    }
    Ok(())
}

/// The text of a custom statement, with this engine's placeholders and identifier quotes.
pub(super) fn text(dialect: &Dialect, statement: &RawStatement) -> Result<String> {
    let mut sql = String::new();
    for (number, part) in parts(dialect, statement)?.iter().enumerate() {
        if number > 0 {
            sql += &(dialect.parameter)(number);
        }
        sql += part;
    }
    Ok(sql)
}
