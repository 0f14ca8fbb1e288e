//! Conversion of SQLite's errors.

use crate::embedded::advice_on_file_size;
use kurabe_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Converts an error, with a hint; errors of statements also have SQLite's extended result code.
pub(super) fn explain(thrown: &rusqlite::Error) -> Error {
    let (failure, message) = match thrown {
        rusqlite::Error::SqliteFailure(failure, Some(message)) => (failure, message.clone()),
        rusqlite::Error::SqliteFailure(failure, None) => (failure, failure.to_string()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg.clone()),
        other => return Error::new(ErrorKind::Internal, format!("sqlite: {other}")),
    };
    let full;
    let (kind, hint) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (ErrorKind::Server, "another connection held the write lock for longer than busy_timeout")
        }
        ErrorCode::ReadOnly => (ErrorKind::ReadOnly, ""),
        ErrorCode::PermissionDenied => (ErrorKind::NotPermitted, ""),
        ErrorCode::CannotOpen => (ErrorKind::Unreachable, ""),
        ErrorCode::NotADatabase => (ErrorKind::Usage, "use a SQLite file, or a new one"),
        ErrorCode::DiskFull => (ErrorKind::Environment, "free space on the file system, or use another path"),
        // A file that may not grow is no full disk for SQLite.
        ErrorCode::SystemIoFailure => {
            full = advice_on_file_size();
            (ErrorKind::Environment, &*full)
        }
        ErrorCode::OutOfMemory => (ErrorKind::Environment, ""),
        ErrorCode::TooBig => (ErrorKind::Limit, ""),
        _ => (ErrorKind::Server, ""),
    };
    let error = Error::new(kind, format!("sqlite: {message}")).hint(hint);
    // The number of any other error says nothing that its text does not.
    let error = if kind == ErrorKind::Server {
        error.code(failure.extended_code).code_name(name(failure.extended_code))
    } else {
        error
    };
    match thrown {
        rusqlite::Error::SqlInputError { sql, offset, .. } => {
            let before = usize::try_from(*offset).ok().and_then(|offset| sql.get(..offset));
            before
                .map_or(error.clone(), |before| error.position(before.chars().count() + 1).in_statement(sql))
        }
        _ => error,
    }
}

/// The names of the result codes that statements have most often (SQLite, "Result and Error Codes").
fn name(code: i32) -> &'static str {
    match code {
        1 => "SQLITE_ERROR",
        5 => "SQLITE_BUSY",
        6 => "SQLITE_LOCKED",
        20 => "SQLITE_MISMATCH",
        275 => "SQLITE_CONSTRAINT_CHECK",
        517 => "SQLITE_BUSY_SNAPSHOT",
        787 => "SQLITE_CONSTRAINT_FOREIGNKEY",
        1299 => "SQLITE_CONSTRAINT_NOTNULL",
        1555 => "SQLITE_CONSTRAINT_PRIMARYKEY",
        2067 => "SQLITE_CONSTRAINT_UNIQUE",
        3091 => "SQLITE_CONSTRAINT_DATATYPE",
        _ => "",
    }
}
