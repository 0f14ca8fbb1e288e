//! A session with SQL as text, on either side of a copy.

use crate::catalog::Table;
use crate::engines::engine::Engine;
pub use crate::engines::engine::{GAP, Side};
use crate::engines::queries::expression_of;
use crate::page::PageSize;
use crate::script::{push_bytes, quoted};
use kurabe_core::collection::Collection;
use kurabe_core::driver::Prepared;
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use kurabe_core::text::cut;
use kurabe_core::transfer::Pages;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// The name of the table in queries of its rows. A column of the result may have the name of one of the table.
pub const ROWS: &str = "kurabe_rows";

/// A field of a row of the catalogue.
pub type Row = Vec<Option<String>>;

/// The parts of a text whose parameters are [`GAP`]s.
pub fn pieces(sql: &str) -> Vec<RawPiece> {
    let mut pieces = Vec::new();
    for (number, text) in sql.split(GAP).enumerate() {
        if number > 0 {
            pieces.push(RawPiece::Parameter);
        }
        if !text.is_empty() {
            pieces.push(RawPiece::Text(text.to_owned()));
        }
    }
    pieces
}

/// The operation of a statement whose parameters are [`GAP`]s.
pub fn operation(sql: &str) -> Operation {
    raw(sql, "copy", None)
}

/// The operation of a text that the server does not prepare.
pub fn text_operation(sql: &str) -> Operation {
    // A statement of no collection has no literals, and would be prepared.
    raw(sql, "a copy", Some(Arc::new(Collection::new("kurabe_copy", Vec::new(), Vec::new()))))
}

fn raw(sql: &str, place: &str, collection: Option<Arc<Collection>>) -> Operation {
    let texts = vec![RawText { engine: None, pieces: pieces(sql) }];
    let parameters = sql.matches(GAP).count();
    let statement = RawStatement { place: place.to_owned(), texts, parameters, collection };
    Operation::Raw { statement: Arc::new(statement) }
}

impl Engine {
    /// A table in a query of its own rows.
    pub fn from(&self, table: &Table) -> String {
        format!("{}{}", if table.inherited { self.only } else { "" }, quoted(self, &table.name))
    }

    /// The rows of a table that are copied, and for which this condition holds.
    pub fn rows(&self, table: &Table, condition: Option<&str>) -> String {
        let conditions = condition.into_iter().chain(table.filter.as_deref());
        format!("{}{}", self.from(table), all_of(conditions.map(|condition| format!("({condition})"))))
    }
}

/// The clause of all of these conditions, with a leading space; empty without any.
pub fn all_of(conditions: impl IntoIterator<Item = String>) -> String {
    let all = conditions.into_iter().collect::<Vec<_>>().join(" AND ");
    if all.is_empty() { all } else { format!(" WHERE {all}") }
}

impl Side {
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.session.prepare(&operation(sql)).map_err(|error| self.explain(error, sql))
    }

    /// Executes a statement once.
    pub fn execute(&mut self, sql: &str, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let prepared = self.prepare(sql)?;
        let done = self.session.execute(&prepared, parameters, out);
        done.map_err(|error| self.explain(error, sql)).and(self.session.release(prepared))
    }

    /// Executes a statement without parameters, and discards any rows.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        self.execute(sql, &[], &mut Reply::new())
    }

    /// Executes a statement that the server does not prepare.
    pub fn run_text(&mut self, sql: &str) -> Result<()> {
        self.execute_text(sql, &mut Reply::new())
    }

    fn execute_text(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.try_text(sql, out).map_err(|error| self.explain(error, sql))
    }

    /// Executes a text as it is. An error has the server's words only.
    pub(crate) fn try_text(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        let prepared = self.session.prepare_literal(&text_operation(sql))?;
        let done = self.session.execute(&prepared, &[], out);
        done.and(self.session.release(prepared))
    }

    /// Executes a query, and passes its rows on in pages as they arrive.
    pub fn pages(
        &mut self,
        sql: &str,
        parameters: &[Value<'_>],
        size: PageSize,
        each: &mut dyn FnMut(&Reply) -> Result<()>,
    ) -> Result<()> {
        let prepared = self.prepare(sql)?;
        let mut pages = Pages::new(size.rows, size.bytes, each);
        let done = self.session.bulk()?.execute_in_pages(&prepared, parameters, &mut pages);
        done.map_err(|error| self.explain(error, sql))?;
        self.session.release(prepared)
    }

    /// The rows of a statement without parameters, as text.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        let mut reply = Reply::new();
        self.execute(sql, &[], &mut reply)?;
        Ok(rows_of(&reply))
    }

    /// The rows of a query of the catalogue.
    pub fn catalogue(&mut self, sql: &str) -> Result<Vec<Row>> {
        let Some(text) = self.engine.catalogue else { return self.rows(sql) };
        let mut reply = Reply::new();
        self.execute_text(&text(sql), &mut reply)?;
        Ok(rows_of(&reply))
    }

    /// The first field of the first row.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(first(self.rows(sql)?))
    }

    /// The tables that a transaction does not keep as they were when it began.
    pub fn without_transactions(&mut self) -> Result<Vec<String>> {
        let sql = expression_of(self.engine, "without_transactions", "");
        sql.map_or(Ok(Vec::new()), |sql| Ok(texts(&self.rows(&sql)?, 0)))
    }

    /// A whole number: the first field of the first row.
    pub fn number(&mut self, sql: &str) -> Result<u64> {
        Ok(self.value(sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// How many of a table's rows that are copied this condition holds for.
    pub fn count(&mut self, table: &Table, condition: &str) -> Result<u64> {
        self.number(&format!("SELECT COUNT(*) FROM {}", self.engine.rows(table, Some(condition))))
    }

    /// Executes an operation without parameters.
    pub fn control(&mut self, operation: &Operation) -> Result<()> {
        let prepared = self.session.prepare(operation)?;
        let done = self.session.execute(&prepared, &[], &mut Reply::new());
        done.and(self.session.release(prepared)).map_err(|error| error.context(&self.name))
    }

    /// Begins the transaction in which a side is read.
    pub fn begin_reading(&mut self) -> Result<()> {
        match self.engine.begin_reading {
            Some(statement) => self.run(statement),
            None => self.control(&Operation::Begin),
        }
    }

    pub fn quoted(&self, name: &str) -> String {
        quoted(self.engine, name)
    }

    fn explain(&self, error: Error, sql: &str) -> Error {
        let shown: String = sql.replace(GAP, "?").split_whitespace().collect::<Vec<_>>().join(" ");
        error.context(format!("{}: {}", self.name, cut(&shown, 160)))
    }
}

/// The rows of a reply, as text, with marks of bytes that are none.
fn rows_of(reply: &Reply) -> Vec<Row> {
    let field = |row, column| {
        let mut text = String::new();
        for part in text_of(reply.field(row, column)?)?.utf8_chunks() {
            text.push_str(part.valid());
            push_bytes(&mut text, part.invalid());
        }
        Some(text)
    };
    (0..reply.rows()).map(|row| (0..reply.width()).map(|at| field(row, at)).collect()).collect()
}

/// The text of a field; nothing of null.
pub(crate) fn text_of(value: Value<'_>) -> Option<Cow<'_, [u8]>> {
    match value {
        Value::Null => None,
        Value::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Value::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
        Value::Int(number) | Value::Time(number) => Some(Cow::Owned(number.to_string().into_bytes())),
        Value::Bool(truth) => Some(Cow::Borrowed(if truth { b"1" } else { b"0" })),
    }
}

/// The first field of the first row.
pub(crate) fn first(rows: Vec<Row>) -> Option<String> {
    rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten()
}

/// Does something in a transaction of a side, and rolls it back if it fails.
pub fn in_transaction<T>(side: &mut Side, work: impl FnOnce(&mut Side) -> Result<T>) -> Result<T> {
    side.control(&Operation::Begin)?;
    match work(side) {
        Ok(done) => side.control(&Operation::Commit).map(|()| done),
        Err(error) => {
            // The first error is the one to report.
            let _ = side.control(&Operation::Rollback);
            Err(error)
        }
    }
}

/// The error of a statement that the server refused; others end the copy.
pub(crate) fn only_refused(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::ConnectionLost | ErrorKind::Protocol | ErrorKind::Timeout | ErrorKind::Interrupted => {
            Err(error)
        }
        _ => Ok(error),
    }
}

/// The rows of each object of a table: those whose first two fields, its table and its name, are the same.
pub fn by_object(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a[..2] == b[..2])
}

/// One field of several rows.
pub fn texts(rows: &[Row], at: usize) -> Vec<String> {
    rows.iter().map(|row| text(row, at).to_owned()).collect()
}

/// A field of a row, or empty text.
pub fn text(row: &Row, at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}
