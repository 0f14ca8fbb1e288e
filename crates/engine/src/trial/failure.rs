//! Why a trial has no result: errors, wrong replies and panics.

use kurabe_core::text::of_panic;
use kurabe_core::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Why a trial has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The first error of the first client that failed, or of the verification.
    pub error: Error,
    /// Wrong replies.
    pub mismatches: u64,
    /// How long this process stood still while clients worked; `None` if none did. Errors of the server during that time are not
    /// its fault.
    pub stood_still: Option<Duration>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mismatches = u64::from(error.kind() == ErrorKind::Mismatch);
        Self { error, mismatches, stood_still: None }
    }
}

/// Does something, and converts a panic into an error.
pub(crate) fn caught<T, E: From<Error>>(who: &str, what: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|panic| Err(panicked(who, &*panic).into()))
}

/// Converts a panic into an error.
pub(crate) fn panicked(who: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let what = of_panic(panic);
    Error::new(ErrorKind::Internal, format!("{who} panicked: {what}"))
}
