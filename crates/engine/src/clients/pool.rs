//! A connection pool shared by all clients of a trial.

use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_reactor::{Condition, Lock};

/// A connection, or the error by which it was lost. The error stays in the slot, so that later clients fail with the
/// same reason instead of waiting forever.
type Slot = Result<Box<dyn Session>>;

/// A pool of connections. The most recently returned one is taken first, as in most pools, since its memory is warm.
pub(crate) struct Pool {
    free: Lock<Vec<Slot>>,
    given_back: Condition,
}

impl Pool {
    /// Opens `size` connections.
    pub(crate) fn open(driver: &dyn Driver, options: &ConnectOptions, size: usize) -> Result<Self> {
        let free = (0..size).map(|_| driver.connect(options).map(Ok)).collect::<Result<Vec<Slot>>>()?;
        Ok(Self { free: Lock::new(free), given_back: Condition::new() })
    }

    /// Takes a connection; waits if all are in use.
    pub(crate) fn take(&self) -> Result<Box<dyn Session>> {
        let mut free = self.free.lock();
        loop {
            match free.pop() {
                Some(Ok(session)) => return Ok(session),
                Some(Err(error)) => {
                    free.push(Err(error.clone()));
                    drop(free);
                    self.given_back.notify_one();
                    return Err(error);
                }
                None => free = self.given_back.wait(free),
            }
        }
    }

    /// Uses a connection and returns it to the pool, or marks it as lost if the work failed.
    pub(crate) fn lend(
        &self,
        mut session: Box<dyn Session>,
        work: impl FnOnce(&mut dyn Session) -> Result<()>,
    ) -> Result<()> {
        let mut slot = Return { pool: self, slot: None };
        let done = work(&mut *session);
        slot.slot = Some(done.clone().map(|()| session));
        done
    }

    fn give(&self, slot: Slot) {
        self.free.lock().push(slot);
        self.given_back.notify_one();
    }

    /// Closes all connections; fails if a server sent unexpected data.
    pub(crate) fn close(self) -> Result<()> {
        let free = self.free.into_inner();
        // All are closed, even if one fails.
        free.into_iter().flatten().map(close_and_check).fold(Ok(()), Result::and)
    }
}

/// Closes a kept connection. An error while closing is ignored, since the results are complete; an unexpected reply
/// is not: it was duplicated or late.
pub(crate) fn close_and_check(session: Box<dyn Session>) -> Result<()> {
    match session.close_checked() {
        Err(error) if matches!(error.kind(), ErrorKind::Protocol | ErrorKind::Timeout) => {
            Err(error.context("closing the connection"))
        }
        _ => Ok(()),
    }
}

/// Returns a slot to the pool even if the work panics.
struct Return<'a> {
    pool: &'a Pool,
    slot: Option<Slot>,
}

impl Drop for Return<'_> {
    fn drop(&mut self) {
        let panicked =
            || Err(Error::new(ErrorKind::Internal, "a client with a connection of the pool panicked"));
        self.pool.give(self.slot.take().unwrap_or_else(panicked));
    }
}
