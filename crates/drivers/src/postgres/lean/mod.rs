//! The lean PostgreSQL client: one write and one read per operation, without allocation.
//!
//! Message layouts: PostgreSQL manual, "Frontend/Backend Protocol", "Message Formats"; their order: "Message Flow".

mod answer;
mod authentication;
mod binding;
mod guard;
mod request;
mod startup;
#[cfg(test)]
mod tests;
mod transfer;

use super::read_only::{self, CHECK};
use super::values::{self, Form};
use crate::prelude::*;
use crate::sql::RowsText;
use crate::wire::link::{Link, Outcome, Query};
use crate::wire::{Exchanges, Outbox, Peer, Wire};
use answer::{Described, Rows, SessionState};
use guard::Guard;
use kurabe_core::driver::Access;
use kurabe_driver_common::usable;
use std::time::Duration;

pub(crate) const CLIENT: &str = "Kurabe's lean client";

/// How long a cancelled statement may take to end.
const ENDS: Duration = Duration::from_secs(5);

/// A connection that is ready for queries.
pub(crate) struct Lean<S> {
    wire: Wire<S>,
    /// Buffer of the request, reused.
    out: Vec<u8>,
    /// Number of prepared statements, used in their names.
    prepared: u64,
    /// Messages that close statements, sent with the next request to save a round trip.
    closes: Vec<u8>,
    /// Syncs that were sent before a transfer of rows and are not answered yet.
    syncs: usize,
    exchanges: Exchanges,
    /// What the session's statements may do, and what the server says of it.
    state: SessionState,
    /// Whether the check of a read-only session is prepared, and follows its own statements too.
    has_check: bool,
    checks_all: bool,
    guard: Guard,
    times: Option<ConnectTimes>,
    /// The server process that was named at the start, and the key that allows to cancel what it executes.
    key: Option<Vec<u8>>,
}

pub(crate) struct Statement {
    name: String,
    /// Bind up to the parameter count.
    head: Vec<u8>,
    /// The bytes after the parameters, including Execute and Sync.
    tail: request::Tail,
    /// Whether the tail has the check of a read-only session.
    is_checked: bool,
    parameter_types: Vec<u32>,
    parameter_forms: Vec<Form>,
    column_forms: Vec<Form>,
}

impl Statement {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn new(
        name: String,
        parameter_types: Vec<u32>,
        parameter_forms: Vec<Form>,
        column_forms: Vec<Form>,
        is_checked: bool,
    ) -> Self {
        let head = request::bind_head(&name, &parameter_forms);
        let tail = request::bind_tail(&column_forms, is_checked);
        Self { name, head, tail, is_checked, parameter_types, parameter_forms, column_forms }
    }
}

impl<S: Peer> Lean<S> {
    fn over(wire: Wire<S>) -> Self {
        let (out, closes) = (Vec::new(), Vec::new());
        Self {
            wire,
            out,
            prepared: 0,
            closes,
            syncs: 0,
            exchanges: Exchanges::default(),
            state: SessionState::default(),
            has_check: false,
            checks_all: false,
            guard: Guard::default(),
            times: None,
            key: None,
        }
    }

    /// Has the check of `read_only` follow the statements of a session that only reads.
    pub(crate) fn check_all(&mut self) -> Result<()>
    where
        S: Send,
    {
        self.prepare_check()?;
        self.checks_all = true;
        Ok(())
    }

    /// Prepares the check.
    fn prepare_check(&mut self) -> Result<()> {
        if self.has_check {
            return Ok(());
        }
        let described = match self.describe_as(CHECK, &read_only::check_text(true)) {
            // No such function.
            Err(error) if error.server_code() == Some("42883") => {
                self.describe_as(CHECK, &read_only::check_text(false))
            }
            described => described,
        };
        described.map(|_| self.has_check = true)
    }

    /// Whether the check follows a text.
    fn is_checked(&self, sql: &str) -> bool {
        self.checks_all && read_only::is_checked(sql)
    }

    /// Prepares a statement whose name no other session has.
    pub(crate) fn prepare_unique(&mut self, sql: &str) -> Result<Statement>
    where
        S: Send,
    {
        let before = std::mem::replace(&mut self.prepared, u64::from(std::process::id()) << 32);
        let prepared = self.prepare(sql);
        self.prepared = before;
        prepared
    }

    /// The server process that was named at the start; a pooler names one of its own.
    pub(crate) fn process(&self) -> Option<i32> {
        self.key.as_ref()?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
    }

    fn exchange<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Result<T> {
        self.exchanges.begin()?;
        match work(self) {
            Ok(result) => self.exchanges.end(result),
            Err(error) => Err(self.leave(error)),
        }
    }

    /// Ends the statement on the server if its answer was not awaited, and waits until it has ended.
    #[cold]
    fn leave(&mut self, error: Error) -> Error {
        let (is_ending, error) = self.exchanges.leave(error);
        if is_ending {
            // The server closes the connection when it reads this, after the statement.
            self.out.clear();
            request::terminate(&mut self.out);
            self.wire.drain(&self.out, ENDS);
        }
        error
    }

    /// Starts a request with the queued closes, which stay queued until the request is sent.
    fn begin(&mut self) {
        self.out.clear();
        self.out.extend_from_slice(&self.closes);
    }

    /// Sends the request.
    fn send(&mut self) -> Result<()> {
        self.closes.clear();
        self.wire.send(&self.out)
    }

    /// Prepares and describes a statement.
    fn describe(&mut self, sql: &str) -> Result<(String, Described)> {
        self.prepared += 1;
        let name = format!("k{}", self.prepared);
        self.describe_as(&name, sql).map(|described| (name, described))
    }

    /// Prepares and describes a statement of this name.
    fn describe_as(&mut self, name: &str, sql: &str) -> Result<Described> {
        self.exchange(|this| {
            this.begin();
            usable!(request::prepare(&mut this.out, name, sql));
            this.send()?;
            let mut described = Described::default();
            let ended = this.read(&mut Rows::Described(&mut described), 1, false)?;
            Ok(ended.map(|()| described))
        })
        .map_err(|error| error.in_statement(sql))
    }

    /// Reads the answers to a request; `is_checked`: whether the check follows it.
    fn read(&mut self, rows: &mut Rows<'_>, syncs: usize, is_checked: bool) -> Outcome<()> {
        self.state.is_checked = is_checked;
        answer::read(&mut self.wire, rows, syncs, &mut self.state)
    }

    /// Sends the execution of a prepared statement.
    fn send_execute(&mut self, statement: &Statement, parameters: &[Value<'_>]) -> Outcome<()> {
        // Encodes all values once before anything is sent: an invalid value must not leave a partial message.
        let length = usable!(request::parameters_length(&statement.parameter_forms, parameters));
        self.begin();
        usable!(request::bind(&mut self.out, &statement.head, length, &statement.tail));
        self.closes.clear();
        let mut outbox = Outbox::new(&mut self.wire, &mut self.out);
        request::parameters(&mut outbox, &statement.parameter_forms, parameters)?;
        outbox.text.extend_from_slice(&statement.tail.bytes);
        outbox.flush().map(Ok)
    }

    fn simple(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        // Values that were put into a text may be SQL: a read-only session sends one statement at a time, and checks it.
        let reads = self.state.access == Access::ReadOnly;
        let is_checked = reads && read_only::is_checked(sql);
        if is_checked {
            self.prepare_check()?;
        }
        self.exchange(|this| {
            this.begin();
            if reads {
                usable!(request::whole(&mut this.out, sql));
                if is_checked {
                    request::check(&mut this.out);
                }
                request::sync(&mut this.out);
                this.send()?;
                return this.read(&mut Rows::Text(out), 1, is_checked);
            }
            // Unlike Sync, a simple query does not end a sequence of extended-query messages.
            let syncs = if this.out.is_empty() { 1 } else { 2 };
            if syncs == 2 {
                request::sync(&mut this.out);
            }
            usable!(request::query(&mut this.out, sql));
            this.send()?;
            this.read(&mut Rows::Text(out), syncs, false)
        })
        .map_err(|error| error.in_statement(sql))
    }
}

impl<S: Peer + Send> Query for Lean<S> {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.simple(sql, out)
    }

    fn quit(&mut self) -> Result<()> {
        if !self.exchanges.close() {
            return Ok(());
        }
        self.out.clear();
        request::terminate(&mut self.out);
        self.wire.send(&self.out)
    }

    fn quit_checked(&mut self) -> Result<()> {
        if self.exchanges.is_broken() {
            return Ok(());
        }
        let _ = self.quit();
        answer::until_end(&mut self.wire)
    }

    fn estimate(&mut self, sql: &str) -> Result<RowEstimate> {
        super::estimate::read(self, sql)
    }

    fn transport(&self) -> String {
        self.wire.stream().transport()
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.times
    }

    /// A session flushes its counters at most once a second, and an idle one after ten seconds.
    fn settling(&self) -> Option<&'static str> {
        Some("SELECT pg_catalog.pg_stat_force_next_flush()")
    }
}

impl<S: Peer + Send> Link for Lean<S> {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.simple("", &mut Reply::new())
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let (name, Described { parameter_types, column_forms }) = self.describe(sql)?;
        let forms = parameter_types.iter().map(|number| Form::of(*number)).collect();
        Ok(Statement::new(name, parameter_types, forms, column_forms, self.is_checked(sql)))
    }

    fn prepare_raw(&mut self, sql: &str) -> Result<Statement> {
        // A custom statement's parameters and columns use the text format, because their types are arbitrary.
        let (name, Described { parameter_types, column_forms }) = self.describe(sql)?;
        let (forms, columns) = (vec![Form::Text; parameter_types.len()], column_forms.into_iter());
        let columns = columns.map(Form::as_text).collect();
        Ok(Statement::new(name, parameter_types, forms, columns, self.is_checked(sql)))
    }

    fn parameter_types(&self, statement: &Statement) -> Vec<&'static str> {
        statement.parameter_types.iter().map(|number| values::type_name(*number)).collect()
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.parameter_forms.len(), parameters.len())?;
        self.exchange(|this| {
            usable!(this.send_execute(statement, parameters)?);
            this.read(&mut Rows::Typed(&statement.column_forms, out), 1, statement.is_checked)
        })
    }

    fn run_in_pages(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        check_parameters("the statement", statement.parameter_forms.len(), parameters.len())?;
        self.exchange(|this| {
            this.wire.widen();
            usable!(this.send_execute(statement, parameters)?);
            let mut page = Reply::new();
            let mut rows = Rows::Paged(&statement.column_forms, &mut page, pages.by_ref());
            let ended = this.read(&mut rows, 1, statement.is_checked)?;
            Ok(ended.and(pages.end(&mut page)))
        })
    }

    /// Each request ends with a Sync, so each is a separate transaction and an error rolls back no other ("Pipelining"
    /// in the manual's "Message Flow").
    fn pipeline(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let forms = &statement.parameter_forms;
        let (each, count) = (forms.len(), out.len());
        check_parameters("the statement", each * count, parameters.len())?;
        let requests = (0..count).map(|n| &parameters[n * each..(n + 1) * each]);
        self.exchange(|this| {
            this.begin();
            for values in requests {
                let length = usable!(request::parameters_length(forms, values));
                usable!(request::bind(&mut this.out, &statement.head, length, &statement.tail));
                request::parameters(&mut Outbox::<S>::copying(&mut this.out), forms, values)?;
                this.out.extend_from_slice(&statement.tail.bytes);
            }
            this.closes.clear();
            this.wire.send_pipeline(&mut this.out)?;
            let mut ended = Ok(());
            for reply in out {
                this.wire.next_answer();
                let mut rows = Rows::Typed(&statement.column_forms, reply);
                let result = this.read(&mut rows, 1, statement.is_checked)?;
                if result.is_err() {
                    reply.clear();
                }
                ended = ended.and(result);
            }
            Ok(ended)
        })
    }

    fn read_rows(&mut self, text: &RowsText, fetch: Fetch, row: &mut RowSink<'_>) -> Result<Moved> {
        match fetch {
            Fetch::Rows(rows) => self.read_portal(text, rows, row),
            Fetch::Whole => self.copy_out(text, row),
        }
    }

    fn write_rows(&mut self, text: &RowsText, rows: &mut dyn RowSource) -> Result<Moved> {
        self.copy_in(text, rows)
    }

    fn load_text(&mut self, sql: &str, rows: &[u8]) -> Result<u64> {
        self.copy_text_in(sql, rows)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(self)
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(self.state.in_transaction)
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        request::close(&mut self.closes, &statement.name);
        Ok(())
    }
}

impl<S: Peer> RawMessages for Lean<S> {
    /// A read-only session has each query checked, and ends what has written before the next request.
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        if self.state.access == Access::ReadWrite {
            return self.exchange(|this| {
                this.wire.send(messages)?;
                this.wire.pass_on(receive).map(Ok)
            });
        }
        self.prepare_check()?;
        let (guarded, mut answers) = self.guard.wrap(messages)?;
        let mut passed = Vec::new();
        self.exchange(|this| {
            this.wire.send(&guarded)?;
            this.wire.pass_on(&mut |piece, more| {
                passed.clear();
                answers.take(piece, &mut passed)?;
                let is_complete = receive(&passed, more)?;
                Ok(answers.is_complete() && (is_complete || answers.has_written))
            })?;
            Ok(if answers.has_written { Err(read_only::switched_off()) } else { Ok(()) })
        })
    }

    fn flags(&mut self) -> u32 {
        0
    }

    fn database(&mut self) -> Option<&str> {
        None
    }
}
