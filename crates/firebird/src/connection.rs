//! One connection of the client's. Firebird executes nothing outside of a transaction: what reads uses one that is kept
//! (read only and read committed: it holds nothing back), what changes something begins and commits one of its own.

use crate::errors::explain;
use crate::{CLIENT, Config};
use kurabe_driver_common::contain::contain;
use kurabe_driver_common::datetime::DateTime;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::watchdog::{Watched, within};
use kurabe_driver_common::wire::{MOST, lost, too_much};
use rsfbclient_core::charset::ISO_8859_1;
use rsfbclient_core::{
    Charset, Column, Dialect, FbError, FirebirdClientDbOps as _, FirebirdClientSqlOps, FreeStmtOp, SqlType,
    StmtType, TrDataAccessMode, TrIsolationLevel, TrLockResolution, TrOp, TrRecordVersion,
    TransactionConfiguration,
};
use rsfbclient_rust::{DbHandle, RustFbClient, RustFbClientAttachmentConfig, TrHandle};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

type Handle = <RustFbClient as FirebirdClientSqlOps>::StmtHandle;

/// All connections of this process, and the databases that they lead to.
static OPEN: Mutex<Vec<(Config, Weak<Mutex<Connection>>)>> = Mutex::new(Vec::new());

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A statement: its text, and what is known of its values.
#[derive(Clone)]
pub(crate) struct Statement {
    /// Its place among the handles.
    pub(crate) number: u64,
    pub(crate) sql: String,
    pub(crate) parameters: usize,
    /// The types of the fields that come back; none where they are not known.
    pub(crate) gives: Vec<FieldType>,
    /// Whether it is one of the user's own, on columns of any type.
    pub(crate) raw: bool,
    /// Whether numbers come back as text.
    pub(crate) as_text: bool,
}

pub(crate) struct Connection {
    client: RustFbClient,
    database: DbHandle,
    /// Whether it waits for locks.
    waits: bool,
    reading: Option<TrHandle>,
    transaction: Option<TrHandle>,
    /// What the server has prepared.
    handles: HashMap<u64, (StmtType, Handle)>,
    watched: Option<Watched>,
    most: u64,
    broken: bool,
}

impl Connection {
    pub(crate) fn open(config: &Config, options: &ConnectOptions, waits: bool) -> Result<Arc<Mutex<Self>>> {
        let timeout = options.timeout.max(Duration::from_millis(1));
        let most = MOST.saturating_add(options.largest_answer);
        let attach = config.clone();
        // The client has no time limit of its own.
        let made = within(
            timeout,
            move || -> Result<(Self, Option<TcpStream>)> {
                let Config { host, port, database: db_name, user, password } = attach;
                let pass = password.expose().to_owned();
                let config =
                    RustFbClientAttachmentConfig { host, port, db_name, user, pass, role_name: None };
                // Text goes to the server and comes back as it is, byte by byte: bytes need no BLOB then.
                let mut client = RustFbClient::new(Charset { on_firebird: "UTF8", ..ISO_8859_1 });
                let database = client.attach_database(&config, Dialect::D3, false).map_err(unreached)?;
                let (reading, transaction, handles, watched) = (None, None, HashMap::new(), None);
                let mut new = Self {
                    client,
                    database,
                    waits,
                    reading,
                    transaction,
                    handles,
                    watched,
                    most,
                    broken: false,
                };
                // By what the client told of itself, its socket is found.
                let mut local = Reply::new();
                new.execute(
                    &text("SELECT RDB$GET_CONTEXT('SYSTEM', 'CLIENT_HOST') FROM RDB$DATABASE"),
                    &[],
                    &mut local,
                )?;
                let socket =
                    own_socket(&String::from_utf8_lossy(local.field_bytes(0, 0).unwrap_or_default()));
                Ok((new, socket))
            },
            drop,
        )?;
        let made =
            made.unwrap_or_else(|| Err(config.place().unreachable(&std::io::ErrorKind::TimedOut.into())));
        let (mut new, socket) = made.map_err(|error| error.context(config.place()))?;
        new.watched = Some(Watched::new(timeout, move || {
            if let Some(socket) = &socket {
                let _ = socket.shutdown(Shutdown::Both);
            }
        })?);
        let new = Arc::new(Mutex::new(new));
        let mut open = lock(&OPEN);
        open.retain(|(_, connection)| connection.strong_count() > 0);
        open.push((config.clone(), Arc::downgrade(&new)));
        Ok(new)
    }

    /// Does one exchange within its time. After a lost connection or a panic of the client there is no other.
    pub(crate) fn exchange<T>(
        &mut self,
        doing: &str,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.broken {
            return Err(lost(&std::io::ErrorKind::ConnectionReset.into()));
        }
        let watched = self.watched.take();
        let work = || contain(CLIENT, doing, || work(self)).unwrap_or_else(Err);
        let done = match &watched {
            Some(watched) => watched.exchange(work),
            None => work(),
        };
        self.watched = watched;
        if let Err(error) = &done {
            use ErrorKind::{ConnectionLost, Interrupted, Protocol, Timeout};
            self.broken |= matches!(error.kind(), ConnectionLost | Interrupted | Protocol | Timeout);
        }
        done
    }

    fn begin(&mut self, data_access: TrDataAccessMode) -> Result<TrHandle> {
        let isolation = TrIsolationLevel::ReadCommited(TrRecordVersion::RecordVersion);
        let lock_resolution =
            if self.waits { TrLockResolution::Wait(None) } else { TrLockResolution::NoWait };
        let wanted = TransactionConfiguration { data_access, isolation, lock_resolution };
        self.client.begin_transaction(&mut self.database, wanted).map_err(explain)
    }

    /// The transaction of what changes nothing.
    fn reader(&mut self) -> Result<TrHandle> {
        if let Some(open) = self.transaction.or(self.reading) {
            return Ok(open);
        }
        let new = self.begin(TrDataAccessMode::ReadOnly)?;
        Ok(*self.reading.insert(new))
    }

    fn end(&mut self, mut transaction: TrHandle, how: TrOp) -> Result<()> {
        self.client.transaction_operation(&mut transaction, how).map_err(explain)
    }

    pub(crate) fn begin_transaction(&mut self) -> Result<()> {
        let new = self.begin(TrDataAccessMode::ReadWrite)?;
        // One that is open already is left, as other engines do.
        self.transaction.replace(new).map_or(Ok(()), |left| self.end(left, TrOp::Commit))
    }

    /// Ends the transaction; where there is none, the one that reads, so that the next sees the monitoring tables anew.
    pub(crate) fn end_transaction(&mut self, how: TrOp) -> Result<()> {
        self.transaction.take().or_else(|| self.reading.take()).map_or(Ok(()), |open| self.end(open, how))
    }

    /// The least request that the client has: it keeps the transaction that reads.
    pub(crate) fn ping(&mut self) -> Result<()> {
        let open = self.reader()?;
        if self.transaction.is_some() {
            return self.execute(&text("SELECT 1 FROM RDB$DATABASE"), &[], &mut Reply::new());
        }
        self.end(open, TrOp::CommitRetaining)
    }

    pub(crate) fn prepare(&mut self, statement: &Statement) -> Result<()> {
        let mut transaction = self.reader()?;
        let SqlType::Text(sql) = latin(statement.sql.as_bytes()) else { return Ok(()) };
        let prepared = self.client.prepare_statement(&mut self.database, &mut transaction, Dialect::D3, &sql);
        self.handles.insert(statement.number, prepared.map_err(explain)?);
        Ok(())
    }

    pub(crate) fn forget(&mut self, number: u64) -> Result<()> {
        let handle = self.handles.remove(&number);
        handle.map_or(Ok(()), |(_, mut handle)| {
            self.client.free_statement(&mut handle, FreeStmtOp::Drop).map_err(explain)
        })
    }

    /// Executes a statement, which is prepared where it is not, and kept where it has a number.
    pub(crate) fn execute(
        &mut self,
        statement: &Statement,
        values: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let values = values.iter().map(|value| bind(value, statement.raw)).collect::<Result<Vec<_>>>()?;
        if !self.handles.contains_key(&statement.number) {
            self.prepare(statement)?;
        }
        let Some((kind, mut handle)) = self.handles.remove(&statement.number) else { return Ok(()) };
        let block = statement.sql.starts_with("EXECUTE BLOCK");
        let reads = matches!(kind, StmtType::Select | StmtType::SelectForUpd) && !block;
        let own = self.transaction.is_none() && !reads;
        let transaction = if own { self.begin(TrDataAccessMode::ReadWrite) } else { self.reader() };
        let done = transaction.and_then(|transaction| {
            let done = self.run(statement, kind, &mut handle, transaction, values, out);
            match done {
                Ok(()) if own => self.end(transaction, TrOp::Commit).inspect_err(|_| {
                    let _ = self.end(transaction, TrOp::Rollback);
                }),
                Err(_) if own => {
                    // The first error is the one to report.
                    let _ = self.end(transaction, TrOp::Rollback);
                    done
                }
                done => done,
            }
        });
        self.handles.insert(statement.number, (kind, handle));
        if block && let Some(changed) = out.field_int(0, 0) {
            out.clear();
            out.set_affected(changed.unsigned_abs());
        }
        if statement.number > 0 { done } else { done.and(self.forget(0)) }
    }

    fn run(
        &mut self,
        statement: &Statement,
        kind: StmtType,
        handle: &mut Handle,
        mut transaction: TrHandle,
        values: Vec<SqlType>,
        out: &mut Reply,
    ) -> Result<()> {
        let Self { client, database, most, .. } = self;
        if kind == StmtType::ExecProcedure {
            let row = client.execute2(database, &mut transaction, handle, values).map_err(explain)?;
            return if row.is_empty() { Ok(()) } else { push_row(&row, statement, out) };
        }
        let changed = client.execute(database, &mut transaction, handle, values).map_err(explain)?;
        if !matches!(kind, StmtType::Select | StmtType::SelectForUpd) {
            out.set_affected(changed as u64);
            return Ok(());
        }
        let mut fetch = || {
            while let Some(row) = client.fetch(database, &mut transaction, handle).map_err(explain)? {
                push_row(&row, statement, out)?;
                if out.held() as u64 > *most {
                    return Err(too_much(*most));
                }
            }
            Ok(())
        };
        let fetched = fetch();
        let closed = client.free_statement(handle, FreeStmtOp::Close).map_err(explain);
        fetched.and(closed)
    }

    /// Gives up what would stand in the way of a table's end: prepared statements, which are prepared again when they
    /// are executed, and the transaction that reads.
    fn let_go(&mut self) -> Result<()> {
        for (_, (_, mut handle)) in std::mem::take(&mut self.handles) {
            self.client.free_statement(&mut handle, FreeStmtOp::Drop).map_err(explain)?;
        }
        let open = self.reader()?;
        self.reading = None;
        if self.transaction.is_some() { Ok(()) } else { self.end(open, TrOp::Commit) }
    }

    pub(crate) fn quit(&mut self) -> Result<()> {
        self.broken = true;
        for open in [self.transaction.take(), self.reading.take()].into_iter().flatten() {
            self.end(open, TrOp::Rollback)?;
        }
        self.client.detach_database(&mut self.database).map_err(explain)
    }
}

/// Has all connections of this process to a database give up what stands in the way of a table's end.
pub(crate) fn let_go(config: &Config) {
    let all: Vec<_> = lock(&OPEN)
        .iter()
        .filter(|(other, _)| other == config)
        .filter_map(|(_, one)| one.upgrade())
        .collect();
    for connection in all {
        // One that is at work is not waited for.
        if let Ok(mut connection) = connection.try_lock() {
            let _ = connection.exchange("closing statements", Connection::let_go);
        }
    }
}

/// A statement that is executed once, whose answer comes as text.
pub(crate) fn text(sql: &str) -> Statement {
    Statement { number: 0, sql: sql.to_owned(), parameters: 0, gives: Vec::new(), raw: false, as_text: true }
}

fn unreached(error: FbError) -> Error {
    match error {
        FbError::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Error::new(ErrorKind::Unreachable, "nothing listens there")
                .hint("is the server running, and are host and port right?")
        }
        FbError::Io(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            Error::new(ErrorKind::Unreachable, error.to_string()).hint("are host and port right?")
        }
        error => explain(error),
    }
}

/// A copy of the socket of this process that has this address, by which it can be shut down; the client shows it nowhere.
fn own_socket(local: &str) -> Option<TcpStream> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    std::fs::read_dir("/proc/self/fd").ok()?.flatten().find_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let socket = TcpStream::from(pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?);
        (socket.local_addr().ok()?.to_string() == local).then_some(socket)
    })
}

/// Bytes as the text by which the client sends exactly these.
fn latin(bytes: &[u8]) -> SqlType {
    SqlType::Text(bytes.iter().copied().map(char::from).collect())
}

fn bind(value: &Value<'_>, raw: bool) -> Result<SqlType> {
    Ok(match *value {
        Value::Null => SqlType::Null,
        Value::Int(number) => SqlType::Integer(number),
        Value::Bool(truth) => SqlType::Boolean(truth),
        Value::Text(text) => latin(text.as_bytes()),
        Value::Bytes(bytes) => latin(bytes),
        // A column of the user's own is a TIMESTAMP, of which a text has at most four digits behind the seconds.
        Value::Time(micros) if raw => {
            latin(DateTime::from_micros(micros)?.to_string().get(..24).unwrap_or_default().as_bytes())
        }
        Value::Time(micros) => SqlType::Integer(micros),
    })
}

fn push_row(row: &[Column], statement: &Statement, out: &mut Reply) -> Result<()> {
    if !statement.gives.is_empty() && statement.gives.len() != row.len() {
        let message =
            format!("the server sent {} columns where {} were due", row.len(), statement.gives.len());
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    for (at, column) in row.iter().enumerate() {
        match &column.value {
            SqlType::Null => out.push_null(),
            // The client made a character of each byte.
            SqlType::Text(text) => out.push_bytes_with(|bytes| {
                bytes.extend(text.chars().map(|character| character as u8));
                Ok::<_, Error>(())
            })?,
            SqlType::Binary(bytes) => out.push_bytes(bytes),
            SqlType::Integer(number) if statement.as_text => out.push_bytes(number.to_string().as_bytes()),
            SqlType::Integer(micros) if statement.gives.get(at) == Some(&FieldType::Timestamp) => {
                out.push_time(*micros)
            }
            SqlType::Integer(number) => out.push_int(*number),
            SqlType::Boolean(truth) => out.push_int(i64::from(*truth)),
            SqlType::Timestamp(at) => out.push_time(at.and_utc().timestamp_micros()),
            SqlType::Floating(number) => out.push_bytes(number.to_string().as_bytes()),
            SqlType::Int128(number) => out.push_bytes(number.to_string().as_bytes()),
        }
    }
    out.end_row();
    Ok(())
}
