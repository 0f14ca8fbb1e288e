//! What the crate does not give: an end to its panics, and a time limit while it connects and closes.

use crate::watchdog;
use kurabe_core::Result;
use std::time::Duration;

/// Calls into the crate. A panic of the crate, which it raises for answers that it does not support, becomes an error
/// that names the crate. The connection is of no use afterwards.
pub(crate) fn contain<T>(doing: &str, call: impl FnOnce() -> T) -> Result<T> {
    crate::contain::contain(super::link::CLIENT, doing, call)
}

/// As the crate's destructors lock what a panic has poisoned, and panic again: drops within a guard of its own.
pub(crate) fn discard<T>(value: T) {
    let _ = contain("letting go", || drop(value));
}

/// Does something that may block for ever in a thread of its own and waits for it so long. `None`: it did not end in
/// time, and whatever comes of it later is dropped.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>> {
    watchdog::within(limit, work, discard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::ErrorKind;

    #[test]
    fn a_panic_becomes_an_error_that_names_the_crate() {
        let error = contain("executing", || -> u8 { panic!("not yet implemented") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        let text = error.to_string();
        assert!(text.contains("oracledb") && text.contains("executing"), "{text}");
        let error = contain("executing", || -> u8 { panic!("{} of {}", 1, 2) }).unwrap_err();
        assert!(error.to_string().contains("1 of 2"), "{error}");
        assert_eq!(contain("executing", || 7), Ok(7));
    }

    #[test]
    fn a_destructor_that_panics_is_contained_too() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("lock poisoned");
            }
        }
        discard(Bad);
    }
}
