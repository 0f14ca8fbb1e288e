//! Conversion of SQLite's errors.

use kurabe_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Converts an error, with a hint; errors of statements also have SQLite's extended result code.
pub(super) fn explain(error: &rusqlite::Error) -> Error {
    let (failure, message) = match error {
        rusqlite::Error::SqliteFailure(failure, Some(message)) => (failure, message.clone()),
        rusqlite::Error::SqliteFailure(failure, None) => (failure, failure.to_string()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg.clone()),
        other => return Error::new(ErrorKind::Internal, format!("sqlite: {other}")),
    };
    let (kind, hint) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (ErrorKind::Server, "another connection held the write lock for longer than busy_timeout")
        }
        ErrorCode::ReadOnly => (ErrorKind::ReadOnly, ""),
        ErrorCode::PermissionDenied => (ErrorKind::NotPermitted, ""),
        ErrorCode::CannotOpen => (ErrorKind::Unreachable, ""),
        ErrorCode::NotADatabase => (ErrorKind::Usage, "use a SQLite file, or a new one"),
        ErrorCode::DiskFull => (ErrorKind::Environment, "free space on the file system, or use another path"),
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => (ErrorKind::Environment, ""),
        ErrorCode::TooBig => (ErrorKind::Limit, ""),
        _ => (ErrorKind::Server, ""),
    };
    let error = Error::new(kind, format!("sqlite: {message}")).hint(hint);
    // The number of any other error says nothing that its text does not.
    if kind == ErrorKind::Server { error.code(failure.extended_code) } else { error }
}
