//! A user's custom statements as an engine's SQL.

use super::dialect::Dialect;
use crate::prelude::*;
use kurabe_core::raw::{RawPiece, RawStatement};

/// The names by which custom statements may refer to an engine: the first ones of all dialects.
pub const ENGINES: &[&str] = &["sqlite", "postgres", "mysql", "mariadb", "oracle", "firebird"];

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

/// The text of a custom statement, with this engine's placeholders and identifier quotes.
pub(super) fn text(dialect: &Dialect, statement: &RawStatement) -> Result<String> {
    let Some(text) = statement.text(dialect.words) else {
        return Err(Error::unsupported(missing(dialect, statement)));
    };
    let mut sql = String::new();
    let mut number = 0;
    for piece in &text.pieces {
        match piece {
            RawPiece::Text(text) => sql += text,
            RawPiece::Table(name) => sql += &dialect.quoted(name),
            RawPiece::Parameter => {
                number += 1;
                sql += &(dialect.parameter)(number);
            }
        }
    }
    Ok(sql)
}
