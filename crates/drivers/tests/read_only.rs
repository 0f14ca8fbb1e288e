//! Sessions in which the server refuses to write.

use kurabe_core::driver::{Access, ConnectOptions, Driver, Session, Support};
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use kurabe_core::value::Reply;
use kurabe_core::{ErrorKind, Result};
use std::sync::Arc;

/// Prepares, executes and releases a statement of a user.
pub fn execute(session: &mut dyn Session, sql: &str) -> Result<Reply> {
    let texts = vec![RawText { engine: None, pieces: vec![RawPiece::Text(sql.to_owned())] }];
    let statement = RawStatement { place: "test".to_owned(), texts, parameters: 0, collection: None };
    perform(session, &Operation::Raw { statement: Arc::new(statement) })
}

/// Executes a statement of a user without preparing it.
pub fn literal(session: &mut dyn Session, sql: &str) -> Result<()> {
    let texts = vec![RawText { engine: None, pieces: vec![RawPiece::Text(sql.to_owned())] }];
    let statement = RawStatement { place: "test".to_owned(), texts, parameters: 0, collection: None };
    let prepared = session.prepare_literal(&Operation::Raw { statement: Arc::new(statement) })?;
    session.execute(&prepared, &[], &mut Reply::new())
}

fn perform(session: &mut dyn Session, operation: &Operation) -> Result<Reply> {
    let mut reply = Reply::new();
    let prepared = session.prepare(operation)?;
    let done = session.execute(&prepared, &[], &mut reply);
    session.release(prepared)?;
    done.map(|()| reply)
}

/// Opens a session of which the server refuses writes.
pub fn reader(driver: &dyn Driver) -> Box<dyn Session> {
    assert_eq!(driver.capabilities().read_only_sessions, Support::Native);
    let options = ConnectOptions { access: Access::ReadOnly, ..ConnectOptions::default() };
    driver.connect(&options).unwrap()
}

/// Checks that a read-only session executes the statements that read and refuses those that write, each alone and in a
/// transaction, and that the table `theirs` stays as it is, seen through another connection. `stopped` are statements
/// that fail for another reason too, such as that they cannot be prepared.
pub fn check(driver: &dyn Driver, what: &str, reads: &[&str], writes: &[&str], stopped: &[&str]) {
    let mut other = driver.connect(&ConnectOptions::default()).unwrap();
    let mut session = reader(driver);
    let mut state = || {
        let reply = execute(&mut *other, "SELECT count(*), min(n), max(n) FROM theirs").unwrap();
        let text = |column| reply.field(0, column).map(|value| format!("{value:?}"));
        [text(0), text(1), text(2)]
    };
    let before = state();
    for sql in reads {
        execute(&mut *session, sql).unwrap_or_else(|error| panic!("{what}: {sql}: {error}"));
    }
    for in_transaction in [false, true] {
        for sql in writes.iter().chain(stopped) {
            if in_transaction {
                perform(&mut *session, &Operation::Begin).unwrap();
            }
            let error =
                execute(&mut *session, sql).err().unwrap_or_else(|| panic!("{what}: executed: {sql}"));
            if writes.contains(sql) {
                assert_eq!(error.kind(), ErrorKind::ReadOnly, "{what}: {sql}: {error}");
            }
            if in_transaction {
                perform(&mut *session, &Operation::Rollback).unwrap();
            }
            assert_eq!(state(), before, "{what}: {sql}");
        }
    }
    // The session is still usable, and still only reads.
    execute(&mut *session, reads[0]).unwrap();
    execute(&mut *session, writes[0]).unwrap_err();
    session.close().unwrap();
    // Another session of the same driver writes.
    execute(&mut *other, writes[0]).unwrap_or_else(|error| panic!("{what}: {error}"));
}
