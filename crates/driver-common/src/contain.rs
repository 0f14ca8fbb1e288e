//! Conversion of panics of other crates into errors: a server's answer must not end the program or print a stack trace.

use kurabe_core::text::of_panic;
use kurabe_core::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread becomes an error and is not printed.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Calls into a crate. A panic becomes an error that names `client`, the crate. The connection is unusable afterwards.
pub fn contain<T>(client: &str, doing: &str, call: impl FnOnce() -> T) -> Result<T> {
    silence();
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CONTAINED.set(before);
    result.map_err(|panic| {
        let text = of_panic(&*panic);
        // Dropping the payload is harmless: it is a string.
        Error::new(ErrorKind::Protocol, format!("{client} failed while it was {doing}: {text}"))
            .hint("this crate does not support the server's answer; report it with the server's version")
    })
}

/// Installs a panic hook that does not print contained panics; others go to the previous hook, and all that end the program.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() || cfg!(panic = "abort") {
                before(info);
            }
        }));
    });
}
