//! What the tool itself does on a session, filling a store above all, ends when the user stops the run: on a slow server it
//! may take longer than all trials.

use kurabe_core::around::{Hook, Hooked};
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// A session whose next request fails with [`Interrupted`](ErrorKind::Interrupted) once `cancel` is set.
pub(crate) fn stopping<'a>(
    session: &'a mut (dyn Session + 'static),
    cancel: &'a AtomicBool,
) -> impl Session + 'a {
    Hooked::new(session, Stopping(cancel))
}

struct Stopping<'a>(&'a AtomicBool);

impl Stopping<'_> {
    fn look(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(())
    }
}

impl Hook for Stopping<'_> {
    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        self.look()?;
        inner.execute(prepared, parameters, out)
    }

    fn pipeline(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        self.look()?;
        inner.pipeline(prepared, parameters, out)
    }

    fn ask(&mut self, inner: &mut dyn Session, page: &str, last: bool, out: &mut Vec<u8>) -> Result<()> {
        self.look()?;
        inner.ask(page, last, out)
    }
}
