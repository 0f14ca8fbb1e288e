//! Errors that only a defect of the caller can cause.

use crate::prelude::*;

/// A transaction that was not attached.
#[cold]
pub(crate) fn no_session() -> Error {
    Error::new(ErrorKind::Internal, "the transaction has no session")
}

/// An operation that the experiment does not have.
pub(crate) fn no_operation(experiment: &str, operation: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{experiment} has no operation '{operation}'"))
}
