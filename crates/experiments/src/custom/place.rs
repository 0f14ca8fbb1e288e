//! Where something stands that is wrong: an error's message begins with file, transaction or line.

use kurabe_core::{Error, Result};

/// The result of reading a part of a workload; the caller adds where the part stands.
pub(super) type Fault<T> = Result<T>;

/// Something is wrong with what the user wrote.
pub(super) fn fault(what: impl Into<String>) -> Error {
    Error::usage(what)
}
