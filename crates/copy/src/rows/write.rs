//! Pages as many rows of an insert, or as text in the engine's own way to load it.

use crate::engines::engine::Engine;
use crate::page::{BINARY, Cell, Encoded, Page, hex};
use crate::plan::TablePlan;
use crate::script::quoted;
use crate::sql::Side;
use crate::types::Class;
use kurabe_core::driver::Prepared;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::io::Write as _;

/// A value as a parameter for a column that an engine stores as this class.
pub fn encode<'a>(engine: &Engine, stored: Class, cell: Cell<'a>) -> Result<Encoded<'a>> {
    if stored == Class::Native {
        return engine.dialect.as_read(cell);
    }
    Ok(Encoded::Value(match cell {
        Cell::Null => Value::Null,
        Cell::Int(number) if stored == Class::Bool => Value::Bool(number != 0),
        Cell::Int(number) => Value::Int(number),
        Cell::Bytes(bytes) if stored.is_bytes() && engine.bytes_as_hex => {
            return Ok(Encoded::Text(hex(bytes)));
        }
        Cell::Bytes(bytes) if stored.is_bytes() => Value::Bytes(bytes),
        // The shortest text of the largest number is more than an engine that reads it with 64 bits allows.
        Cell::Bytes(bytes) if stored == Class::Float32 => {
            let text = String::from_utf8_lossy(bytes);
            let number = text.parse::<f32>().ok().filter(|number| number.is_finite());
            return Ok(Encoded::Text(
                number.map_or_else(|| text.into_owned(), |number| format!("{:e}", f64::from(number))),
            ));
        }
        Cell::Bytes(bytes) => Value::Text(std::str::from_utf8(bytes).map_err(|_| {
            let what = format!("the text {} is not UTF-8", cell.shown());
            Error::new(ErrorKind::Mismatch, what)
                .hint("correct it on the source, --cast the column to a type of bytes, or --reject such rows")
        })?),
    }))
}

/// Inserts pages into a table of the target.
pub struct Writer<'a> {
    table: &'a TablePlan,
    /// The positions of the columns that are inserted: all that the server does not generate.
    written: Vec<usize>,
    /// Rows of a full statement.
    batch: usize,
    full: Option<Prepared>,
    /// The statement that takes rows as text, unless the client has none.
    load: Option<String>,
    text: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub fn new(engine: &Engine, table: &'a TablePlan) -> Self {
        let written: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].written).collect();
        let (rows, parameters) = engine.insert_limits;
        let batch = rows.min(parameters / written.len().max(1)).max(1);
        let load = engine.load_text.map(|load| load(&quoted(engine, &table.to), &names(engine, table)));
        Self { table, written, batch, full: None, load, text: Vec::new() }
    }

    /// Inserts all rows of a page. The caller's transaction makes that atomic.
    pub fn insert(&mut self, side: &mut Side, page: &Page) -> Result<()> {
        if self.load.is_some() && self.load(side, page)? {
            return Ok(());
        }
        let mut from = 0;
        while from < page.rows() {
            let last = page.rows().min(from + self.batch);
            let alone = (from..last).find_map(|row| Some((row, self.alone(side.engine, page, row)?)));
            let rows = alone.as_ref().map_or(last - from, |(row, _)| (row - from).max(1));
            let mut parameters = Vec::with_capacity(rows * self.written.len());
            for row in from..from + rows {
                for at in &self.written {
                    parameters.push(self.encode(side.engine, page, row, *at)?);
                }
            }
            let values: Vec<Value<'_>> = parameters.iter().map(Encoded::value).collect();
            let mut reply = Reply::new();
            match alone.filter(|(row, _)| *row == from) {
                Some((_, values_of_row)) => {
                    side.execute(&self.insert_of(side.engine, &values_of_row), &values, &mut reply)
                }
                None if rows == self.batch => {
                    let full = match self.full.take() {
                        Some(full) => full,
                        None => side.prepare(&self.statement(side.engine, rows))?,
                    };
                    let done = side.session.execute(&full, &values, &mut reply);
                    self.full = Some(full);
                    done
                }
                None => side.execute(&self.statement(side.engine, rows), &values, &mut reply),
            }
            .map_err(|error| error.context(&side.name))?;
            if rows > 1 {
                inserted(side, reply.affected(), rows)?;
            }
            from += rows;
        }
        Ok(())
    }

    /// The values of a row that no insert of several rows can have; `None` if it is as others.
    fn alone(&self, engine: &Engine, page: &Page, row: usize) -> Option<String> {
        let stored = |at: &usize| &self.table.columns[*at].mapped.stored;
        let alone = |at: &usize| engine.dialect.write_alone(stored(at), page.cell(row, *at));
        self.written.iter().find_map(alone)?;
        let written = |at: &usize| alone(at).unwrap_or_else(|| engine.dialect.write(stored(at)));
        let all: Vec<String> = self.written.iter().map(written).collect();
        Some(format!("({})", all.join(", ")))
    }

    /// Sends a page as text; `false` if the client cannot.
    fn load(&mut self, side: &mut Side, page: &Page) -> Result<bool> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let rows = if page.is_tuples { 0 } else { page.rows() };
        for row in 0..rows {
            for (number, at) in self.written.iter().enumerate() {
                if number > 0 {
                    text.push(b'\t');
                }
                push_text(&mut text, self.encode(side.engine, page, row, *at)?.value())?;
            }
            text.push(b'\n');
        }
        let mut statement = Cow::Borrowed(self.load.as_deref().unwrap_or_default());
        if let Some((_, load)) = side.engine.pass_through.filter(|_| page.is_tuples) {
            let [begin, end] = BINARY;
            for part in [begin, page.bytes(), end] {
                text.extend_from_slice(part);
            }
            statement = load(&quoted(side.engine, &self.table.to), &names(side.engine, self.table)).into();
        }
        let loaded = side.session.bulk().and_then(|bulk| bulk.load_text(&statement, &text));
        self.text = text;
        match loaded {
            Err(error) if error.kind() == ErrorKind::Unsupported && !page.is_tuples => {
                self.load = None;
                Ok(false)
            }
            Err(error) => Err(error.context(&side.name)),
            Ok(rows) => inserted(side, rows, page.rows()).map(|()| true),
        }
    }

    fn encode<'p>(&self, engine: &Engine, page: &'p Page, row: usize, column: usize) -> Result<Encoded<'p>> {
        let of = &self.table.columns[column];
        encode(engine, of.mapped.stored.class, page.cell(row, column)).or_else(|error| {
            match page.cell(row, column) {
                // The server knows what its own encoding is.
                Cell::Bytes(bytes) if of.exact => Ok(Encoded::Value(Value::Bytes(bytes))),
                _ => {
                    let row = named(self.table, page, row);
                    Err(error.context(format!("{}.{}{row}", self.table.name, of.name)))
                }
            }
        })
    }

    fn statement(&self, engine: &Engine, rows: usize) -> String {
        let stored = self.written.iter().map(|at| &self.table.columns[*at].mapped.stored);
        let row: Vec<String> = stored.map(|stored| engine.dialect.write(stored)).collect();
        let row = format!("({})", row.join(", "));
        self.insert_of(engine, &vec![row.as_str(); rows].join(", "))
    }

    fn insert_of(&self, engine: &Engine, all: &str) -> String {
        let table = quoted(engine, &self.table.to);
        format!("INSERT INTO {table} ({}){} VALUES {all}", names(engine, self.table), engine.overriding)
    }

    /// Frees the prepared statement.
    pub fn end(self, side: &mut Side) -> Result<()> {
        self.full.map_or(Ok(()), |prepared| side.session.release(prepared))
    }
}

/// The name of a row of a page, for messages: its key, after a comma; empty without one.
pub(super) fn named(table: &TablePlan, page: &Page, row: usize) -> String {
    let key = table.key.iter().map(|at| page.cell(row, *at).shown()).collect::<Vec<_>>().join(", ");
    if key.is_empty() { key } else { format!(", row {key}") }
}

/// The quoted names of the columns that are inserted.
fn names(engine: &Engine, table: &TablePlan) -> String {
    let written = table.columns.iter().filter(|column| column.written);
    let names: Vec<String> = written.map(|column| quoted(engine, &column.name)).collect();
    names.join(", ")
}

fn inserted(side: &Side, acknowledged: u64, rows: usize) -> Result<()> {
    if acknowledged == rows as u64 {
        return Ok(());
    }
    let what = format!("{}: {acknowledged} of {rows} rows were inserted", side.name);
    Err(Error::new(ErrorKind::Mismatch, what))
}

/// Appends a value in the text format of PostgreSQL's `COPY` (manual, "COPY", "Text Format"). Bytes are a text in the server's own
/// encoding.
pub fn push_text(out: &mut Vec<u8>, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"\\N"),
        Value::Int(number) => {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "{number}");
        }
        Value::Bool(truth) => out.push(if truth { b't' } else { b'f' }),
        Value::Text(text) => push_text(out, Value::Bytes(text.as_bytes()))?,
        Value::Time(_) => return Err(Error::new(ErrorKind::Internal, "a time was to be loaded as a number")),
        Value::Bytes(text) => {
            for byte in text {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    byte => out.push(*byte),
                }
            }
        }
    }
    Ok(())
}
