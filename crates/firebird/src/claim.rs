//! The claim: a lock on a table, which all users of the server see, and which ends with its connection.
//!
//! The table `kurabe_claim` names the holder. A holder reads it in a transaction with the isolation level `SNAPSHOT TABLE
//! STABILITY`: until that ends, no one can write to the table (Firebird 3.0 Language Reference, "Isolation Level"). A run
//! that takes the claim writes its name in such a transaction, which succeeds only if no one else reads.
//!
//! While a snapshot is open, the server keeps the old versions of rows of all tables, which would change what is measured.
//! So a thread replaces the holder's transaction each second. The next one begins before the previous one ends.

use crate::connection::{Connection, Firebird, lock};
use crate::errors::CONFLICT;
use crate::statement::{Statement, text};
use kurabe_driver_common::lease::holder;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::wire::link::try_lock;
use rsfbclient_core::TrOp;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The table's name; no collection may have it.
pub(crate) const TABLE: &str = "kurabe_claim";

/// How long a transaction of the holder lasts.
const LASTS: Duration = Duration::from_secs(1);

/// Naming the columns makes a foreign table with this name an error.
const READ: &str = r#"SELECT c."holder" FROM "kurabe_claim" c WHERE c."number" = 1"#;
const CREATE: [&str; 2] = [
    r#"CREATE TABLE "kurabe_claim" ("number" INTEGER NOT NULL PRIMARY KEY, "holder" VARCHAR(200))"#,
    r#"GRANT ALL ON "kurabe_claim" TO PUBLIC"#,
];
const REMOVE: [&str; 2] = [r#"UPDATE "kurabe_claim" SET "holder" = ''"#, r#"DROP TABLE "kurabe_claim""#];

/// A claim that this process holds, over a connection of its own.
pub(crate) struct Claim {
    connection: Arc<Mutex<Connection>>,
    /// The statement that reads the holder. It stays prepared, so that no one can drop the table.
    read: Arc<Statement>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Claim {
    /// Takes the claim for a run, which may have it already through another target.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) if another run has it; the server's error.
    pub(crate) fn take(to: &Firebird, run: &str) -> Result<Self> {
        let connection = Arc::new(Mutex::new(Connection::alone(to, &ConnectOptions::default())?));
        let read = Arc::new(Statement { number: u64::MAX - 1, ..text(READ) });
        let (ours, mut by) = (name(run), String::new());
        let taken =
            try_lock(|| lock(&connection).exchange(|connection| take(connection, &read, &ours, &mut by)))?;
        if !taken {
            let message = format!("another run of Kurabe uses this database ({by})");
            return Err(Error::new(ErrorKind::InUse, message).hint("wait for it to end"));
        }
        let (stop, stopped) = channel();
        let (held, again) = (Arc::clone(&connection), Arc::clone(&read));
        let work = move || {
            while stopped.recv_timeout(LASTS) == Err(RecvTimeoutError::Timeout) {
                // After an error the previous transaction goes on. A lost connection ends the claim, as with other engines.
                let _ = lock(&held).exchange(|connection| read_holder(connection, &again));
            }
        };
        // Without the thread the claim holds too, and only the old versions of rows stay.
        let thread = std::thread::Builder::new().name("claim".to_owned()).spawn(work).ok();
        Ok(Self { connection, read, stop: Some(stop), thread })
    }

    fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Ends the claim and removes the table. Best effort: another run may use the table now, or through another target.
    pub(crate) fn remove(mut self) {
        self.stop();
        let _ = lock(&self.connection).exchange(|connection| {
            connection.end_transaction(TrOp::Commit)?;
            connection.forget(self.read.number)?;
            connection.exclusively(&REMOVE)
        });
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.stop();
        let _ = lock(&self.connection).exchange(Connection::quit);
    }
}

/// The name of this process and the run, in printable ASCII.
fn name(run: &str) -> String {
    let plain = |c: char| if (' '..='~').contains(&c) && c != '\'' { c } else { '_' };
    holder(run).chars().map(plain).take(200).collect()
}

/// Tries to take the claim once. If it is another's, `by` is set to its holder.
fn take(connection: &mut Connection, read: &Statement, ours: &str, by: &mut String) -> Result<bool> {
    match read_holder(connection, read) {
        Ok(Some(holder)) if holder == ours => return Ok(true),
        Ok(holder) => {
            *by = holder.unwrap_or_default();
            connection.end_transaction(TrOp::Commit)?;
        }
        Err(error) if is_conflict(&error) => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => match connection.exclusively(&CREATE) {
            Err(error) if !is_conflict(&error) => {
                return Err(error.context(format!("cannot create table {TABLE}")));
            }
            _ => {}
        },
        Err(error) => return Err(error.context(format!("table {TABLE}"))),
    }
    let write = format!(
        r#"UPDATE OR INSERT INTO "{TABLE}" ("number", "holder") VALUES (1, '{ours}') MATCHING ("number")"#
    );
    match connection.exclusively(&[&write]) {
        Err(error) if is_conflict(&error) || error.kind() == ErrorKind::NotFound => return Ok(false),
        done => done?,
    }
    // Another run may have written its name since. Nobody can after this.
    match read_holder(connection, read) {
        Ok(Some(holder)) if holder == ours => Ok(true),
        Ok(_) => connection.end_transaction(TrOp::Commit).map(|()| false),
        Err(error) if is_conflict(&error) || error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the holder, and prevents others from writing until the next call or the end of the transaction.
fn read_holder(connection: &mut Connection, read: &Statement) -> Result<Option<String>> {
    let mut reply = Reply::new();
    connection.hold(read, &mut reply)?;
    Ok(reply.field_bytes(0, 0).map(|name| String::from_utf8_lossy(name).into_owned()))
}

fn is_conflict(error: &Error) -> bool {
    error.server_code() == Some(CONFLICT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_is_a_literal_of_printable_ascii() {
        let name = name("it's\nµ");
        assert!(name.contains("it_s__") && name.is_ascii() && !name.contains('\''), "{name}");
        assert!(self::name(&"x".repeat(500)).len() <= 200);
    }
}
