//! Errors that only a defect of the caller can cause.

use crate::prelude::*;

/// An operation that the experiment does not have.
pub(crate) fn no_operation(experiment: &str, operation: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{experiment} has no operation '{operation}'"))
}
