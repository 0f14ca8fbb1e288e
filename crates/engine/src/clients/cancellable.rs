//! Ends the tool's own work on a session, such as loading data, when the user stops the run. On a slow server
//! that work may take longer than all trials.

use kurabe_core::driver::Session;
use kurabe_core::interceptor::{InterceptedSession, Interceptor};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// A session whose requests fail with [`Interrupted`](ErrorKind::Interrupted) once `cancel` is set.
pub fn cancellable<'a>(
    session: &'a mut (dyn Session + 'static),
    cancel: &'a AtomicBool,
) -> impl Session + 'a {
    InterceptedSession::new(session, Cancellable(cancel))
}

struct Cancellable<'a>(&'a AtomicBool);

impl Interceptor for Cancellable<'_> {
    fn before_request(&mut self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(())
    }
}
