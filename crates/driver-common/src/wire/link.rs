//! One connection to an SQL server, lean or wrapped, and the session that any such connection makes.

use crate::prelude::*;
use crate::slots::{Known, Slots};
use crate::sql::{self, Dialect, Read, Template, read_rows};
use std::sync::Arc;
use std::time::Duration;

/// A connection that can execute SQL as text.
pub trait Query: Send {
    /// Executes a text without parameters. Whatever comes back comes as text.
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()>;

    /// Says goodbye. The connection is of no use afterwards.
    fn quit(&mut self) -> Result<()>;

    /// Says goodbye, waits for the end of the connection, and checks that nothing came that was not asked for; only
    /// says goodbye where the client cannot tell.
    fn quit_checked(&mut self) -> Result<()> {
        self.quit()
    }

    /// How the server is reached.
    fn transport(&self) -> String;

    /// How long the parts of connecting took; `None` where this client does not say.
    fn connect_times(&self) -> Option<ConnectTimes> {
        None
    }

    /// What makes the server take into its statistics at once what this connection did; none where it does anyway.
    fn settling(&self) -> Option<&'static str> {
        None
    }
}

/// A connection that can execute prepared statements too.
pub trait Link: Query {
    /// What is remembered of a prepared statement.
    type Statement: Send;

    /// The least request that the server answers.
    fn ping(&mut self) -> Result<()>;

    /// Has the server prepare a statement, once more even where it prepared the same before.
    fn prepare(&mut self, sql: &str) -> Result<Self::Statement>;

    /// Has the server prepare a statement of the user's own, whose parameters and columns may be of any type.
    fn prepare_raw(&mut self, sql: &str) -> Result<Self::Statement> {
        self.prepare(sql)
    }

    /// Has the server prepare the statement `sql` of an operation, for clients that need its types too.
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

    /// Executes a prepared statement once for each of `out`, which are empty, all requests sent before the first answer
    /// is awaited.
    fn pipeline(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let _ = (statement, parameters, out);
        Err(Error::unsupported("this client awaits each answer before it sends the next request"))
    }

    /// Has the server forget a prepared statement.
    fn forget(&mut self, statement: Self::Statement) -> Result<()>;
}

/// All rows of a text query, as text; nothing where a field holds no value.
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

/// Whether a lock was taken, tried again for a second: the server may not have noticed yet that its last holder is
/// gone.
pub fn try_lock(mut lock: impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..10 {
        if lock()? {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    lock()
}

/// What an operation was prepared into.
enum Slot<S> {
    Ping,
    /// What is not worth preparing, or cannot be: the statements of transactions.
    Text(Arc<str>),
    Statement(S),
    /// A text into which values are written as literals, and how the fields of an answer are read where that comes as
    /// text; empty where all come as they are.
    Literal(Arc<Template>, Vec<Option<Read>>),
}

/// Which operations a target has, where that is not all of them.
pub type Supports = Arc<dyn Fn(&Operation) -> Support + Send + Sync>;

/// The [`Session`] that a link makes.
pub struct LinkSession<L: Link> {
    link: L,
    dialect: Arc<Dialect>,
    supports: Option<Supports>,
    texts: Known<str>,
    templates: Known<Template>,
    slots: Slots<Slot<L::Statement>>,
    /// The last text with values in it; kept for its memory, …
    sql: String,
    /// … as is the last answer that came as text.
    raw: Reply,
}

impl<L: Link> LinkSession<L> {
    /// A session on a connection.
    pub fn new(link: L, dialect: Arc<Dialect>) -> Self {
        Self {
            link,
            dialect,
            supports: None,
            texts: Known::default(),
            templates: Known::default(),
            slots: Slots::default(),
            sql: String::new(),
            raw: Reply::new(),
        }
    }

    /// The session, which refuses to prepare what the target has not.
    #[must_use]
    pub fn with_support(mut self, supports: Option<Supports>) -> Self {
        self.supports = supports;
        self
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
        let sql = self.texts.get(operation, || sql::text(&self.dialect, operation))?;
        Ok(self.slots.insert(match operation {
            Operation::Ping => Slot::Ping,
            Operation::Begin | Operation::Commit | Operation::Rollback => Slot::Text(sql),
            _ => Slot::Statement(self.link.prepare_operation(operation, &sql)?),
        }))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
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
            Slot::Statement(statement) => self.link.run(statement, parameters, out),
            Slot::Ping => self.link.ping(),
            Slot::Text(sql) => self.link.query(sql, out),
            Slot::Literal(template, readers) => {
                let (sql, raw) = (&mut self.sql, &mut self.raw);
                template
                    .fill(parameters, sql)
                    .and_then(|()| literal(&mut self.link, sql, template, readers, raw, out))
            }
        }
        .inspect_err(|_| out.clear())
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        out.iter_mut().for_each(Reply::clear);
        match self.slots.get_mut(prepared)? {
            Slot::Statement(statement) => self.link.pipeline(statement, parameters, out),
            Slot::Ping | Slot::Text(_) | Slot::Literal(..) => {
                Err(Error::unsupported("only prepared statements are sent before earlier ones are answered"))
            }
        }
    }

    fn flush_stats(&mut self) -> Result<()> {
        let Some(sql) = self.link.settling() else { return Ok(()) };
        match self.link.query(sql, &mut Reply::new()) {
            // A version that has no such word takes its time.
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
            Slot::Ping | Slot::Text(_) | Slot::Literal(..) => Ok(()),
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.link.quit()
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.link.quit_checked()
    }
}

/// Executes a text with its values in it.
fn literal(
    link: &mut impl Query,
    sql: &str,
    template: &Template,
    readers: &[Option<Read>],
    raw: &mut Reply,
    out: &mut Reply,
) -> Result<()> {
    if readers.is_empty() {
        link.query(sql, out)?;
    } else {
        raw.clear();
        link.query(sql, raw)?;
        read_rows(raw, readers, out)?;
    }
    if !template.gives().is_empty() {
        // Some clients count the rows that came; none was changed.
        out.set_affected(0);
    }
    Ok(())
}
