//! Places of errors: a message begins with file, transaction or line.

use crate::prelude::*;

/// The result of parsing a part of a workload; the caller adds the place.
pub(super) type Fault<T> = Result<T>;

/// An error in the user's text.
pub(super) fn fault(what: impl Into<String>) -> Error {
    Error::usage(what)
}
