//! A connection to an SQL server, and the session on such a connection.

use crate::prelude::*;
use crate::slots::{Known, Slots, with_types};
use crate::sql::{self, Dialect, Read, RowsText, Template, read_rows};
use std::sync::Arc;
use std::time::Duration;

/// Result of an exchange. After an outer error the connection is unusable; after an inner error it is usable.
pub type Outcome<T> = Result<Result<T>>;

/// The value of a result. Its error is returned as the [`Outcome`](crate::wire::link::Outcome) of the exchange: the connection
/// stays usable.
#[macro_export]
macro_rules! usable {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

/// A connection that can execute SQL as text.
pub trait Query: Send {
    /// Executes a statement without parameters. The answer is in text format.
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()>;

    /// Closes the connection.
    fn quit(&mut self) -> Result<()>;

    /// Closes the connection, waits for its end, and checks that the server sent no unrequested data. Only closes it if
    /// the client cannot check this.
    fn quit_checked(&mut self) -> Result<()> {
        self.quit()
    }

    /// The transport to the server.
    fn transport(&self) -> String;

    /// Durations of the parts of connecting; `None` if this client does not report them.
    fn connect_times(&self) -> Option<ConnectTimes> {
        None
    }

    /// The optimizer's row estimate for a query. The query is not executed.
    fn estimate(&mut self, sql: &str) -> Result<RowEstimate> {
        let _ = sql;
        Err(Error::unsupported("this client does not read the optimizer's estimates"))
    }

    /// The statement that flushes this connection's statistics on the server; `None` if it needs none.
    fn settling(&self) -> Option<&'static str> {
        None
    }
}

/// A connection that can execute prepared statements too.
pub trait Link: Query {
    /// A prepared statement.
    type Statement: Send;

    /// Sends the smallest request that the server answers.
    fn ping(&mut self) -> Result<()>;

    /// Prepares a statement on the server, even if the same one was prepared before.
    fn prepare(&mut self, sql: &str) -> Result<Self::Statement>;

    /// Prepares a custom statement, whose parameters and columns may have any type.
    fn prepare_raw(&mut self, sql: &str) -> Result<Self::Statement> {
        self.prepare(sql)
    }

    /// Prepares the statement `sql` of an operation, for clients that need the operation's types.
    fn prepare_operation(&mut self, operation: &Operation, sql: &str) -> Result<Self::Statement> {
        match operation {
            Operation::Raw { .. } => self.prepare_raw(sql),
            _ => self.prepare(sql),
        }
    }

    /// Executes a prepared statement. `out` is empty.
    fn run(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()>;

    /// The types of a statement's parameters, if the server says them.
    fn parameter_types(&self, statement: &Self::Statement) -> Vec<&'static str> {
        let _ = statement;
        Vec::new()
    }

    /// Executes a prepared query whose answer is passed on in pages ([`Bulk::execute_in_pages`]).
    fn run_in_pages(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        let mut whole = Reply::new();
        self.run(statement, parameters, &mut whole)?;
        pages.end(&mut whole)
    }

    /// Executes a prepared statement once for each of `out`, which are empty. All requests are sent before the first
    /// answer is awaited.
    fn pipeline(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let _ = (statement, parameters, out);
        Err(Error::unsupported("this client awaits each answer before it sends the next request"))
    }

    /// Reads all rows of a table ([`Bulk::read_rows`]).
    fn read_rows(&mut self, text: &RowsText, fetch: Fetch, row: &mut RowSink<'_>) -> Result<Moved> {
        let _ = (text, fetch, row);
        Err(Error::unsupported("this client reads an answer whole"))
    }

    /// Loads rows into a table ([`Bulk::write_rows`]).
    fn write_rows(&mut self, text: &RowsText, rows: &mut dyn RowSource) -> Result<Moved> {
        let _ = (text, rows);
        Err(Error::unsupported("this client has no bulk load"))
    }

    /// Executes a statement that takes rows as text ([`Bulk::load_text`]).
    fn load_text(&mut self, sql: &str, rows: &[u8]) -> Result<u64> {
        let _ = (sql, rows);
        Err(Error::unsupported("this client sends no rows as text"))
    }

    /// What sends messages of the protocol as they are ([`Session::raw_messages`]).
    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Err(Error::unsupported("this client does not replay captures"))
    }

    /// Whether a transaction is open ([`Session::in_transaction`]).
    fn in_transaction(&self) -> Option<bool> {
        None
    }

    /// Closes a prepared statement on the server.
    fn forget(&mut self, statement: Self::Statement) -> Result<()>;
}

/// All rows of a text query, as text; null is empty text.
pub fn rows(link: &mut dyn Query, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut reply = Reply::new();
    link.query(sql, &mut reply)?;
    let field = |row, column| {
        let bytes = reply.field_bytes(row, column).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    Ok((0..reply.rows()).map(|row| (0..reply.width()).map(|column| field(row, column)).collect()).collect())
}

/// The first field of the first row of a text query.
pub fn value(link: &mut dyn Query, sql: &str) -> Result<Option<String>> {
    Ok(rows(link, sql)?.into_iter().next().and_then(|row| row.into_iter().next()))
}

/// Tries to take a lock for up to a second, since the server may not have noticed yet that the last holder has
/// disconnected. Returns whether it was taken.
pub fn try_lock(mut lock: impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..10 {
        if lock()? {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    lock()
}

enum Slot<S> {
    Ping,
    /// An unprepared statement: those of transactions.
    Text(Arc<str>),
    Statement(S),
    /// A template for literal values, and the parsers of the answer's fields in text format; empty if none are needed.
    Literal(Arc<Template>, Vec<Option<Read>>),
    /// The parts of a custom statement, between which values are put.
    Parts(Vec<String>),
}

/// Which operations a target supports, if not all.
pub type Supports = Arc<dyn Fn(&Operation) -> Support + Send + Sync>;

/// A [`Session`] on a [`Link`].
pub struct LinkSession<L: Link> {
    link: L,
    dialect: Arc<Dialect>,
    supports: Option<Supports>,
    texts: Known<str>,
    templates: Known<Template>,
    slots: Slots<Slot<L::Statement>>,
    /// Buffer of the last statement with literal values.
    sql: String,
    /// Buffer of the last answer in text format.
    raw: Reply,
}

impl<L: Link> LinkSession<L> {
    /// Creates a session on a connection. With `supports`, it refuses to prepare unsupported operations.
    pub fn new(link: L, dialect: Arc<Dialect>, supports: Option<Supports>) -> Self {
        Self {
            link,
            dialect,
            supports,
            texts: Known::default(),
            templates: Known::default(),
            slots: Slots::default(),
            sql: String::new(),
            raw: Reply::new(),
        }
    }

    fn check_support(&self, operation: &Operation) -> Result<()> {
        match self.supports.as_ref().map(|supports| supports(operation)) {
            Some(Support::No(reason)) => Err(Error::unsupported(reason)),
            Some(Support::Native) | None => Ok(()),
        }
    }
}

impl<L: Link> Session for LinkSession<L> {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        self.check_support(operation)?;
        if let Some(before) = self.dialect.before_linked(operation) {
            self.link.query(&before, &mut Reply::new())?;
        }
        let sql = self.texts.get(operation, || sql::text(&self.dialect, operation))?;
        Ok(self.slots.insert(match operation {
            Operation::Ping => Slot::Ping,
            Operation::Begin | Operation::Commit | Operation::Rollback => Slot::Text(sql),
            _ => Slot::Statement(self.link.prepare_operation(operation, &sql)?),
        }))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Operation::Raw { statement } = operation {
            self.check_support(operation)?;
            return Ok(self.slots.insert(Slot::Parts(sql::parts(&self.dialect, statement)?)));
        }
        if operation.collection().is_none() {
            // Without values there is no difference.
            return self.prepare(operation);
        }
        self.check_support(operation)?;
        let template = self.templates.get(operation, || Template::new(&self.dialect, operation))?;
        let readers = template.readers();
        Ok(self.slots.insert(Slot::Literal(template, readers)))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        match self.slots.get_mut(prepared)? {
            Slot::Statement(statement) => self
                .link
                .run(statement, parameters, out)
                .map_err(|error| with_types(error, &self.link.parameter_types(statement), parameters)),
            Slot::Ping => self.link.ping(),
            Slot::Text(sql) => self.link.query(sql, out),
            Slot::Parts(parts) => {
                sql::fill(parts, parameters, &mut self.sql).and_then(|()| self.link.query(&self.sql, out))
            }
            Slot::Literal(template, readers) => {
                let (link, sql, raw) = (&mut self.link, &mut self.sql, &mut self.raw);
                template.fill(parameters, sql).and_then(|()| {
                    if readers.is_empty() {
                        link.query(sql, out)?;
                    } else {
                        raw.clear();
                        link.query(sql, raw)?;
                        read_rows(raw, readers, out)?;
                    }
                    if !template.gives().is_empty() {
                        // Some clients report the number of returned rows, but none was changed.
                        out.set_affected(0);
                    }
                    Ok(())
                })
            }
        }
        .inspect_err(|_| out.clear())
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        out.iter_mut().for_each(Reply::clear);
        match self.slots.get_mut(prepared)? {
            Slot::Statement(statement) => self.link.pipeline(statement, parameters, out),
            Slot::Ping | Slot::Text(_) | Slot::Literal(..) | Slot::Parts(_) => {
                Err(Error::unsupported("only prepared statements can be pipelined"))
            }
        }
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    fn planner(&mut self) -> Result<&mut dyn Planner> {
        Ok(self)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        self.link.raw_messages()
    }

    fn in_transaction(&self) -> Option<bool> {
        self.link.in_transaction()
    }

    fn flush_stats(&mut self) -> Result<()> {
        let Some(sql) = self.link.settling() else { return Ok(()) };
        match self.link.query(sql, &mut Reply::new()) {
            // An older version without this statement flushes later.
            Err(error) if error.server_code().is_none() => Err(error),
            _ => Ok(()),
        }
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.link.connect_times()
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        match self.slots.remove(&prepared)? {
            Slot::Statement(statement) => self.link.forget(statement),
            Slot::Ping | Slot::Text(_) | Slot::Literal(..) | Slot::Parts(_) => Ok(()),
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.link.quit()
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.link.quit_checked()
    }

    without!(cache);
}

impl<L: Link> Planner for LinkSession<L> {
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        self.check_support(operation)?;
        let template = self.templates.get(operation, || Template::new(&self.dialect, operation))?;
        template.fill(parameters, &mut self.sql)?;
        self.link.estimate(&self.sql)
    }
}

impl<L: Link> Bulk for LinkSession<L> {
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        match self.slots.get_mut(prepared)? {
            Slot::Statement(statement) => self.link.run_in_pages(statement, parameters, pages),
            Slot::Ping | Slot::Text(_) | Slot::Literal(..) | Slot::Parts(_) => {
                Err(Error::unsupported("only prepared statements have pages"))
            }
        }
    }

    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        self.link.read_rows(&RowsText::new(&self.dialect, collection, fields)?, fetch, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.link.write_rows(&RowsText::of_all(&self.dialect, collection)?, rows)
    }

    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64> {
        self.link.load_text(statement, rows)
    }
}
