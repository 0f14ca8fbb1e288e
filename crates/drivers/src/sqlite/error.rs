//! SQLite's errors in Kurabe's words.

use kurabe_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// An error for people, with SQLite's extended result code.
pub(super) fn explain(error: &rusqlite::Error) -> Error {
    let (failure, message) = match error {
        rusqlite::Error::SqliteFailure(failure, Some(message)) => (failure, message.clone()),
        rusqlite::Error::SqliteFailure(failure, None) => (failure, failure.to_string()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg.clone()),
        other => return Error::new(ErrorKind::Internal, format!("sqlite: {other}")),
    };
    let (kind, hint) = match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (ErrorKind::Server, Some("another connection held the write lock for longer than busy_timeout"))
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => (ErrorKind::NotPermitted, None),
        ErrorCode::CannotOpen => (ErrorKind::Unreachable, None),
        ErrorCode::NotADatabase => {
            (ErrorKind::Usage, Some("name a SQLite file, or one that does not exist yet"))
        }
        ErrorCode::DiskFull => {
            (ErrorKind::Environment, Some("make room on the file system, or use another path"))
        }
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => (ErrorKind::Environment, None),
        ErrorCode::TooBig => (ErrorKind::Limit, None),
        _ => (ErrorKind::Server, None),
    };
    let error = Error::new(kind, format!("sqlite: {message}")).code(failure.extended_code);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
