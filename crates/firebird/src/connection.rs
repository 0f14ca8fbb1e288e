//! A connection. Firebird executes each statement in a transaction. Queries use one read-only, read-committed transaction,
//! which stays open and blocks nothing. A statement that changes data begins and commits its own.

use crate::errors::{explain, located};
use crate::statement::{Statement, bind, latin, push_row, text};
use ErrorKind::{ConnectionLost, Interrupted, Protocol, Timeout};
use kurabe_core::driver::Access;
use kurabe_core::statements::Running;
use kurabe_driver_common::cancel;
use kurabe_driver_common::clients::RSFBCLIENT_RUST as CLIENT;
use kurabe_driver_common::contain::contain;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::watchdog::{Watched, own_socket, within};
use kurabe_driver_common::wire::{MAX, Place, lost, too_much};
use rsfbclient_core as fb;
use rsfbclient_core::{
    FbError, FirebirdClientDbOps as _, FirebirdClientSqlOps, FreeStmtOp, SqlType, StmtType,
};
use rsfbclient_core::{TrDataAccessMode, TrOp};
use rsfbclient_rust::{DbHandle, RustFbClient, RustFbClientAttachmentConfig, TrHandle};
use std::collections::HashMap;
use std::io::ErrorKind::{ConnectionReset, TimedOut};
use std::net::{Shutdown, TcpStream};
use std::ops::Not as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How long a request to end a statement may take.
const REACHES: Duration = Duration::from_secs(2);

/// How often it is checked whether a statement has ended, and the pause in between.
const CHECKS: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// A database, and how its server is reached.
#[derive(Clone)]
pub struct Firebird {
    pub place: Place,
    pub target: RustFbClientAttachmentConfig,
}

/// Ends a connection of this user with its statement, and waits for that.
fn end_attachment(to: &Firebird, options: &ConnectOptions, number: &str) -> Result<()> {
    let mut link = Connection::alone(to, options)?;
    let delete = format!("DELETE FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID = {number}");
    let count = format!("SELECT COUNT(*) FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID = {number}");
    link.exchange(|link| link.execute(&text(&delete), &[], &mut Reply::new()))?;
    for _ in 0..CHECKS {
        let mut reply = Reply::new();
        // A transaction sees the connections of its beginning.
        link.exchange(|link| {
            link.end_transaction(TrOp::Commit)?;
            link.execute(&text(&count), &[], &mut reply)
        })?;
        if reply.field_bytes(0, 0) == Some(b"0") {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// All connections of this process, but for those of claims.
static OPEN: Mutex<Vec<Weak<Mutex<Connection>>>> = Mutex::new(Vec::new());

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Connection {
    client: RustFbClient,
    database: DbHandle,
    /// The lock timeout in seconds; `None`: the timeout of an answer.
    waits: Option<u32>,
    /// The transaction of queries.
    reading: Option<TrHandle>,
    transaction: Option<TrHandle>,
    /// What its transactions may do.
    access: Access,
    prepared: HashMap<u64, (StmtType, <RustFbClient as FirebirdClientSqlOps>::StmtHandle)>,
    /// `None`: the connection is not used again.
    watched: Option<Watched>,
    /// The server's number of this connection.
    number: String,
    running: Option<Arc<Running>>,
    most: u64,
}

impl Connection {
    pub fn open(to: &Firebird, options: &ConnectOptions, waits: Option<u32>) -> Result<Arc<Mutex<Self>>> {
        let (new, mut open) = (Arc::new(Mutex::new(Self::new(to, options, waits)?)), lock(&OPEN));
        open.retain(|connection| connection.strong_count() > 0);
        open.push(Arc::downgrade(&new));
        Ok(new)
    }

    /// Whether a transaction was begun and is not ended.
    pub fn has_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Has the statements of this session ended on the server when nobody waits for them any more.
    pub fn watch(&mut self, to: &Firebird, options: &ConnectOptions) {
        let (target, number, timeout) = (to.clone(), self.number.clone(), options.timeout.min(REACHES));
        self.running = Some(Running::new(options.trial, move || {
            // A server that cannot be reached any more executes nothing for this client that could be ended.
            let _ = end_attachment(&target, &ConnectOptions::within(timeout), &number);
        }));
    }

    /// A connection whose statements [`release_all`] does not release.
    pub fn alone(to: &Firebird, options: &ConnectOptions) -> Result<Self> {
        Self::new(to, options, None)
    }

    fn new(to: &Firebird, options: &ConnectOptions, waits: Option<u32>) -> Result<Self> {
        let (most, target) = (MAX.saturating_add(options.largest_answer), to.clone());
        // The client has no timeout.
        let made = within(options.timeout, move || Self::attach(&target, waits, most), drop)?;
        let made = made.unwrap_or_else(|| Err(to.place.unreachable(&TimedOut.into())));
        let (mut new, socket) = made.map_err(|error| error.context(&to.place))?;
        new.access = options.access;
        new.watched = Some(Watched::new(options.reply_timeout(), move || {
            let _ = socket.as_ref().map(|socket| socket.shutdown(Shutdown::Both));
        })?);
        Ok(new)
    }

    fn attach(to: &Firebird, waits: Option<u32>, most: u64) -> Result<(Self, Option<TcpStream>)> {
        // Values are sent and received byte by byte, so that bytes need no BLOB.
        let mut client = RustFbClient::new(fb::Charset { on_firebird: "UTF8", ..fb::charset::ISO_8859_1 });
        let database =
            client.attach_database(&to.target, fb::Dialect::D3, false).map_err(|error| match error {
                FbError::Io(error) => to.place.unreachable(&error),
                error => explain(error),
            })?;
        let (reading, transaction, prepared, watched) = (None, None, HashMap::new(), None);
        let (number, running) = (String::new(), None);
        let access = Access::ReadWrite;
        let mut new = Self {
            client,
            database,
            waits,
            reading,
            transaction,
            access,
            prepared,
            watched,
            number,
            running,
            most,
        };
        // The client hides its socket. The server knows the socket's address.
        let mut reply = Reply::new();
        let sql = "SELECT RDB$GET_CONTEXT('SYSTEM', 'CLIENT_HOST'), CAST(CURRENT_CONNECTION AS VARCHAR(20)) \
                   FROM RDB$DATABASE";
        new.execute(&text(sql), &[], &mut reply)?;
        let field = |at| String::from_utf8_lossy(reply.field_bytes(0, at).unwrap_or_default()).into_owned();
        new.number = field(1);
        let socket = own_socket(&field(0));
        Ok((new, socket))
    }

    /// Performs one exchange within the timeout. After a lost connection or a panic of the client, the connection is not used
    /// again.
    pub fn exchange<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(watched) = self.watched.take() else { return Err(lost(&ConnectionReset.into())) };
        let running = self.running.clone();
        if let Some(running) = &running {
            running.turn();
        }
        let mut done = watched.exchange(|| contain(CLIENT, "executing", || work(self)).unwrap_or_else(Err));
        if let Some(running) = running {
            running.turn();
            match &done {
                Err(error) if error.kind() == Timeout => running.end(),
                Err(_) if running.was_ended() => done = Err(cancel::error()),
                _ => {}
            }
        }
        let over = |error: &Error| matches!(error.kind(), ConnectionLost | Interrupted | Protocol | Timeout);
        self.watched = done.as_ref().is_err_and(over).not().then_some(watched);
        done
    }

    fn begin(&mut self, data_access: TrDataAccessMode) -> Result<TrHandle> {
        let isolation = fb::TrIsolationLevel::ReadCommited(fb::TrRecordVersion::RecordVersion);
        let lock_resolution = fb::TrLockResolution::Wait(self.waits);
        let wanted = fb::TransactionConfiguration { data_access, isolation, lock_resolution };
        self.client.begin_transaction(&mut self.database, wanted).map_err(explain)
    }

    /// Begins a transaction that locks the tables it uses, and does not wait for locks.
    fn begin_locking(&mut self, data_access: TrDataAccessMode) -> Result<TrHandle> {
        let (isolation, lock_resolution) = (fb::TrIsolationLevel::Consistency, fb::TrLockResolution::NoWait);
        let wanted = fb::TransactionConfiguration { data_access, isolation, lock_resolution };
        self.client.begin_transaction(&mut self.database, wanted).map_err(explain)
    }

    /// Executes a query in a new transaction, which prevents others from writing to its tables, and which replaces the
    /// current one. After an error, the current one goes on.
    pub fn hold(&mut self, query: &Statement, out: &mut Reply) -> Result<()> {
        // Prepared in that transaction, it would lock the tables of the catalogue, too.
        if !self.prepared.contains_key(&query.number) {
            self.prepare(query)?;
        }
        let new = self.begin_locking(TrDataAccessMode::ReadOnly)?;
        let old = self.transaction.replace(new);
        let done = self.execute(query, &[], out);
        let over = if done.is_ok() { old } else { std::mem::replace(&mut self.transaction, old) };
        let ended = over.map_or(Ok(()), |over| self.end(over, TrOp::Commit));
        done.and(ended)
    }

    /// Executes statements in a transaction of their own, while nobody else uses the tables that they change.
    pub fn exclusively(&mut self, statements: &[&str]) -> Result<()> {
        let new = self.begin_locking(TrDataAccessMode::ReadWrite)?;
        let old = self.transaction.replace(new);
        let done = statements.iter().try_for_each(|sql| self.execute(&text(sql), &[], &mut Reply::new()));
        self.transaction = old;
        self.settle(new, done)
    }

    /// Commits a transaction whose statements are `done`, or undoes it. The first error is the one to report.
    fn settle(&mut self, transaction: TrHandle, done: Result<()>) -> Result<()> {
        let done = done.and_then(|()| self.end(transaction, TrOp::Commit));
        if done.is_err() {
            let _ = self.end(transaction, TrOp::Rollback);
        }
        done
    }

    fn end(&mut self, mut transaction: TrHandle, how: TrOp) -> Result<()> {
        self.client.transaction_operation(&mut transaction, how).map_err(explain)
    }

    fn reader(&mut self) -> Result<TrHandle> {
        match self.transaction.or(self.reading) {
            Some(open) => Ok(open),
            None => self.begin(TrDataAccessMode::ReadOnly).map(|new| *self.reading.insert(new)),
        }
    }

    /// How transactions begin that are not only of queries.
    fn writing(&self) -> TrDataAccessMode {
        match self.access {
            Access::ReadWrite => TrDataAccessMode::ReadWrite,
            Access::ReadOnly => TrDataAccessMode::ReadOnly,
        }
    }

    pub fn begin_transaction(&mut self) -> Result<()> {
        if self.transaction.is_none() {
            self.transaction = Some(self.begin(self.writing())?);
        }
        Ok(())
    }

    /// Ends the transaction, or that of queries if there is no other.
    pub fn end_transaction(&mut self, how: TrOp) -> Result<()> {
        let open = self.transaction.take().or_else(|| self.reading.take());
        open.map_or(Ok(()), |open| self.end(open, how))
    }

    pub fn prepare(&mut self, statement: &Statement) -> Result<()> {
        let (mut transaction, sql) = (self.reader()?, latin(statement.sql.as_bytes()));
        let Self { client, database, .. } = self;
        let prepared = client.prepare_statement(database, &mut transaction, fb::Dialect::D3, &sql);
        self.prepared
            .insert(statement.number, prepared.map_err(|error| located(explain(error), &statement.sql))?);
        Ok(())
    }

    pub fn forget(&mut self, number: u64) -> Result<()> {
        let Some((_, mut handle)) = self.prepared.remove(&number) else { return Ok(()) };
        self.client.free_statement(&mut handle, FreeStmtOp::Drop).map_err(explain)
    }

    /// Executes a statement, and prepares it before if necessary.
    pub fn execute(&mut self, statement: &Statement, values: &[Value<'_>], out: &mut Reply) -> Result<()> {
        self.execute_in_pages(statement, values, out, None)
    }

    /// Executes a statement. Its rows are passed on in pages, or left in `out`.
    pub fn execute_in_pages(
        &mut self,
        statement: &Statement,
        values: &[Value<'_>],
        out: &mut Reply,
        pages: Option<&mut Pages<'_>>,
    ) -> Result<()> {
        let values = values.iter().map(|value| bind(value, statement.raw)).collect::<Result<_>>()?;
        if !self.prepared.contains_key(&statement.number) {
            self.prepare(statement)?;
        }
        let reads = self.prepared.get(&statement.number).is_some_and(|(kind, _)| *kind == StmtType::Select);
        let own = self.transaction.is_none() && !reads;
        let transaction = if own { self.begin(self.writing())? } else { self.reader()? };
        let mut done = self.run(statement, transaction, values, out, pages);
        if own {
            done = self.settle(transaction, done);
        }
        if statement.number > 0 { done } else { done.and(self.forget(0)) }
    }

    fn run(
        &mut self,
        statement: &Statement,
        mut tr: TrHandle,
        values: Vec<SqlType>,
        out: &mut Reply,
        mut pages: Option<&mut Pages<'_>>,
    ) -> Result<()> {
        let Self { client, database, prepared, most, .. } = self;
        let Some((kind, handle)) = prepared.get_mut(&statement.number) else { return Ok(()) };
        // UPDATE OR INSERT is such a statement, too. The client takes an answer without a row, which precedes an error, for a
        // fault of its own, and leaves the error unread: a statement that gives none is executed as one that has no answer.
        if *kind == StmtType::ExecProcedure && statement.gives_row() {
            let row = client.execute2(database, &mut tr, handle, values);
            return row.map(|row| push_row(&row, statement, out)).map_err(explain);
        }
        let changed = client.execute(database, &mut tr, handle, values).map_err(explain)?;
        if !matches!(*kind, StmtType::Select | StmtType::SelectForUpd) {
            out.set_affected(changed as u64);
            return Ok(());
        }
        let done = loop {
            match client.fetch(database, &mut tr, handle) {
                Ok(Some(_)) if out.held() as u64 > *most => break Err(too_much(*most)),
                Ok(Some(row)) => {
                    push_row(&row, statement, out);
                    if let Some(Err(error)) = pages.as_mut().map(|pages| pages.row(out)) {
                        break Err(error);
                    }
                }
                Ok(None) => break pages.map_or(Ok(()), |pages| pages.end(out)),
                Err(error) => break Err(explain(error)),
            }
        };
        done.and(client.free_statement(handle, FreeStmtOp::Close).map_err(explain))
    }

    /// Releases what prevents dropping a table: prepared statements, which are prepared again when they are executed, and
    /// the transaction of queries.
    fn release(&mut self) -> Result<()> {
        let numbers: Vec<u64> = self.prepared.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.forget(number))?;
        if self.transaction.is_some() { Ok(()) } else { self.end_transaction(TrOp::Commit) }
    }

    pub fn quit(&mut self) -> Result<()> {
        self.end_transaction(TrOp::Rollback)?;
        self.end_transaction(TrOp::Rollback)?;
        self.client.detach_database(&mut self.database).map_err(explain)
    }
}

/// Makes all idle connections of this process release what prevents dropping a table.
pub fn release_all() {
    let open: Vec<_> = lock(&OPEN).iter().filter_map(Weak::upgrade).collect();
    for connection in open {
        let _ = connection.try_lock().map(|mut connection| connection.exchange(Connection::release));
    }
}
