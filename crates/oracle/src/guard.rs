//! Containment of the crate's panics, and a time limit for connecting and closing, which the crate does not have.

use kurabe_core::Result;
use kurabe_driver_common::clients::ORACLEDB as CLIENT;
use kurabe_driver_common::{contain, watchdog};
use std::time::Duration;

/// Calls the crate and converts its panics, which unsupported replies cause, to errors that name the crate. The
/// connection is unusable afterwards.
pub(crate) fn contain<T>(doing: &str, call: impl FnOnce() -> T) -> Result<T> {
    contain::contain(CLIENT, doing, call)
}

/// Drops a value and contains panics: after a panic, the crate's destructors panic again at a poisoned lock.
pub(crate) fn discard<T>(value: T) {
    let _ = contain("dropping a value", || drop(value));
}

/// Runs `work`, which may block forever, in a separate thread and waits until `limit`. `None` on timeout; a later
/// result is dropped.
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
    fn panic_becomes_error_that_names_the_crate() {
        let error = contain("executing", || -> u8 { panic!("not yet implemented") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        let text = error.to_string();
        assert!(text.contains("oracledb") && text.contains("executing"), "{text}");
        let error = contain("executing", || -> u8 { panic!("{} of {}", 1, 2) }).unwrap_err();
        assert!(error.to_string().contains("1 of 2"), "{error}");
        assert_eq!(contain("executing", || 7), Ok(7));
    }

    #[test]
    fn panic_of_destructor_is_contained() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("lock poisoned");
            }
        }
        discard(Bad);
    }
}
