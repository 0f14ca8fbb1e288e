//! A connection with its prepared statements.
//!
//! A rusqlite statement borrows its connection, so a session cannot own both without unsafe code. rusqlite's cache owns
//! the statement instead: a look-up by text, in a fraction of a microsecond, finds the compiled statement. Preparing
//! per request still compiles each time, because releasing removes the statement from the cache and finalizes it.

use super::attach::{self, Remotes};
use super::dialect::DIALECT;
use super::error::explain;
use super::only_reads::only_reads;
use super::transfer;
use super::values::{bound, push_row};
use crate::prelude::*;
use crate::slots::{Known, Slots, check_parameters, with_types};
use crate::sql::{Template, fill, parts, shape, text};
use kurabe_core::driver::Access;
use kurabe_core::remote::RemoteServer;
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::sync::Arc;

/// Cache capacity beyond the statements in use, which rusqlite needs.
const SPARE: usize = 8;

pub(super) struct SqliteSession {
    connection: Connection,
    texts: Known<Statement>,
    templates: Known<Template>,
    slots: Slots<Slot>,
    /// Buffer of a statement with literals, reused.
    sql: String,
    live: usize,
    made: u64,
    capacity: usize,
    /// The files that it can attach, and those that are attached.
    remotes: Arc<Remotes>,
    attached: Vec<RemoteServer>,
    access: Access,
}

enum Slot {
    Statement(Arc<Statement>),
    Literal(Arc<Template>),
    /// The parts of a custom statement, between which values are put.
    Parts(Vec<String>),
}

#[derive(Clone)]
struct Statement {
    name: &'static str,
    sql: String,
    parameter_types: Vec<FieldType>,
    column_types: Vec<FieldType>,
    /// Whether the statement returns rows, even without `column_types`.
    reads: bool,
    /// Whether the statement is custom: only SQLite knows whether it returns rows, and their number of columns.
    raw: bool,
}

impl SqliteSession {
    pub(super) fn new(connection: Connection, remotes: Arc<Remotes>, access: Access) -> Result<Self> {
        connection.set_prepared_statement_cache_capacity(SPARE);
        if access == Access::ReadOnly {
            connection.pragma_update(None, "query_only", true).map_err(|e| explain(&e))?;
        }
        Ok(Self {
            connection,
            texts: Known::default(),
            templates: Known::default(),
            slots: Slots::default(),
            sql: String::new(),
            live: 0,
            made: 0,
            capacity: SPARE,
            remotes,
            attached: Vec::new(),
            access,
        })
    }

    /// Attaches the file that a linked collection is in, once.
    fn attach(&mut self, operation: &Operation) -> Result<()> {
        let remote = operation.collection().and_then(|of| of.remote.as_ref()).filter(|of| of.link.is_some());
        let Some(server) = remote.map(|remote| remote.server) else { return Ok(()) };
        if !self.attached.contains(&server) {
            attach::attach(&self.connection, &self.remotes, server)?;
            self.attached.push(server);
        }
        Ok(())
    }

    fn statement(&mut self, operation: &Operation) -> Result<Arc<Statement>> {
        let access = self.access;
        let known = self.texts.get(operation, || Statement::new(operation, access))?;
        // One reference is in `texts`, one is here; another means that the statement is prepared and not released.
        if Arc::strong_count(&known) == 2 {
            return Ok(known);
        }
        // A different text makes a separate cache entry.
        self.made += 1;
        let sql = format!("{} -- {}", known.sql, self.made);
        Ok(Arc::new(Statement { sql, ..Statement::clone(&known) }))
    }
}

impl Statement {
    fn new(operation: &Operation, access: Access) -> Result<Self> {
        let shape = shape(operation)?;
        let sql = match operation {
            // The usual statement takes the write lock.
            Operation::Begin if access == Access::ReadOnly => "BEGIN".to_owned(),
            _ => text(&DIALECT, operation)?,
        };
        Ok(Self {
            name: operation.name(),
            sql,
            reads: matches!(operation, Operation::Ping) || !shape.gives.is_empty(),
            raw: matches!(operation, Operation::Raw { .. }),
            parameter_types: shape.takes,
            column_types: shape.gives,
        })
    }
}

impl Session for SqliteSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        self.attach(operation)?;
        let statement = self.statement(operation)?;
        if self.live + SPARE > self.capacity {
            self.capacity *= 2;
            self.connection.set_prepared_statement_cache_capacity(self.capacity);
        }
        if self.access == Access::ReadOnly {
            check_words(&statement.sql)?;
        }
        // Compiles the statement; dropping it puts it into the cache.
        let compiled = self.connection.prepare_cached(&statement.sql).map_err(|e| explain(&e))?;
        if self.access == Access::ReadOnly {
            check_reads(&compiled)?;
        }
        drop(compiled);
        self.live += 1;
        Ok(self.slots.insert(Slot::Statement(statement)))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Operation::Raw { statement } = operation {
            return Ok(self.slots.insert(Slot::Parts(parts(&DIALECT, statement)?)));
        }
        if operation.collection().is_none() {
            // Without values, there is no difference.
            return self.prepare(operation);
        }
        let template = self.templates.get(operation, || Template::new(&DIALECT, operation))?;
        Ok(self.slots.insert(Slot::Literal(template)))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let done = match self.slots.get(prepared)? {
            Slot::Statement(statement) => {
                check_parameters(statement.name, statement.parameter_types.len(), parameters.len())?;
                run(&self.connection, statement, parameters, out)
            }
            Slot::Parts(parts) => {
                fill(parts, parameters, &mut self.sql)?;
                if self.access == Access::ReadOnly {
                    check_words(&self.sql)?;
                    let compiled = self.connection.prepare(&self.sql).map_err(|e| explain(&e))?;
                    check_reads(&compiled)?;
                }
                run_raw(&self.connection, &self.sql, out)
            }
            Slot::Literal(template) => {
                template.fill(parameters, &mut self.sql)?;
                run_text(&self.connection, &self.sql, template.gives(), out)
            }
        };
        done.map_err(|error| {
            out.clear();
            with_types(explain(&error), &[], parameters)
        })
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        let Slot::Statement(statement) = self.slots.remove(&prepared)? else { return Ok(()) };
        self.live -= 1;
        let cached = self.connection.prepare_cached(&statement.sql).map_err(|e| explain(&e))?;
        cached.discard();
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.connection.close().map_err(|(_, error)| {
            Error::new(ErrorKind::Server, format!("the connection did not close: {}", explain(&error)))
        })
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(!self.connection.is_autocommit())
    }

    without!(planner, cache, raw_messages);
}

impl Bulk for SqliteSession {
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        let Slot::Statement(statement) = self.slots.get(prepared)? else {
            return Err(Error::unsupported("only prepared statements have pages"));
        };
        check_parameters(statement.name, statement.parameter_types.len(), parameters.len())?;
        let mut prepared = self.connection.prepare_cached(&statement.sql).map_err(|error| explain(&error))?;
        bind(&mut prepared, statement, parameters).map_err(|error| explain(&error))?;
        let columns = prepared.column_count();
        let (mut rows, mut page) = (prepared.raw_query(), Reply::new());
        while let Some(row) = rows.next().map_err(|error| explain(&error))? {
            push_row(row, columns, None, &mut page).map_err(|error| explain(&error))?;
            pages.row(&mut page)?;
        }
        pages.end(&mut page)
    }

    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        if fetch != Fetch::Whole {
            return Err(Error::unsupported("SQLite has no round trips in which several rows arrive"));
        }
        transfer::read(&self.connection, collection, fields, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        transfer::write(&self.connection, collection, rows)
    }

    without!(text);
}

/// Refuses a statement that writes. `query_only` stops what writes to tables. This is known before, and of more: BEGIN IMMEDIATE,
/// say.
fn check_reads(compiled: &rusqlite::Statement<'_>) -> Result<()> {
    if compiled.readonly() || compiled.is_explain() != 0 { Ok(()) } else { Err(writes()) }
}

/// Refuses a statement before it is compiled, since SQLite executes some then.
fn check_words(sql: &str) -> Result<()> {
    if only_reads(sql) { Ok(()) } else { Err(writes()) }
}

fn writes() -> Error {
    Error::new(ErrorKind::ReadOnly, "sqlite: the statement would write in a read-only session")
}

/// Compiles a text, executes it and finalizes it.
fn run_text(
    connection: &Connection,
    sql: &str,
    column_types: &[FieldType],
    out: &mut Reply,
) -> rusqlite::Result<()> {
    let columns = (!column_types.is_empty()).then_some(column_types.len());
    execute(&mut connection.prepare(sql)?, columns, Some(column_types), out)
}

/// Compiles a custom statement, executes it and finalizes it.
fn run_raw(connection: &Connection, sql: &str, out: &mut Reply) -> rusqlite::Result<()> {
    let mut prepared = connection.prepare(sql)?;
    let columns = Some(prepared.column_count()).filter(|columns| *columns > 0);
    execute(&mut prepared, columns, None, out)
}

fn run(
    connection: &Connection,
    statement: &Statement,
    parameters: &[Value<'_>],
    out: &mut Reply,
) -> rusqlite::Result<()> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    bind(&mut prepared, statement, parameters)?;
    if statement.raw {
        let columns = Some(prepared.column_count()).filter(|columns| *columns > 0);
        return execute(&mut prepared, columns, None, out);
    }
    let columns = statement.reads.then_some(statement.column_types.len());
    execute(&mut prepared, columns, Some(&statement.column_types), out)
}

fn bind(
    prepared: &mut rusqlite::Statement<'_>,
    statement: &Statement,
    parameters: &[Value<'_>],
) -> rusqlite::Result<()> {
    for (i, (value, kind)) in parameters.iter().zip(&statement.parameter_types).enumerate() {
        let value = match value {
            // A custom statement's parameters have no types of their own.
            Value::Bytes(bytes) if statement.raw => ValueRef::Blob(bytes),
            value => bound(*value, *kind),
        };
        prepared.raw_bind_parameter(i + 1, ToSqlOutput::Borrowed(value))?;
    }
    Ok(())
}

/// Executes a statement whose parameters are bound, and reads this number of columns; `None` if it returns no rows.
fn execute(
    statement: &mut rusqlite::Statement<'_>,
    columns: Option<usize>,
    column_types: Option<&[FieldType]>,
    out: &mut Reply,
) -> rusqlite::Result<()> {
    let Some(columns) = columns else {
        out.set_affected(statement.raw_execute()? as u64);
        return Ok(());
    };
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        push_row(row, columns, column_types, out)?;
    }
    Ok(())
}
