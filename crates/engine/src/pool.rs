//! Connections that all clients of a trial share: each transaction takes one and gives it back.

use crate::client::goodbye;
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A connection, or why there is none any more. The error of one that was lost stays in its place, so that whoever comes
/// to it fails for the same reason instead of waiting for ever.
type Slot = Result<Box<dyn Session>>;

/// A pool of connections. The one that was given back last is the first to be taken, as in most pools: it is the one
/// whose memory is warm.
pub(crate) struct Pool {
    free: Mutex<Vec<Slot>>,
    given_back: Condvar,
}

impl Pool {
    /// Opens `size` connections.
    pub(crate) fn open(driver: &dyn Driver, options: &ConnectOptions, size: usize) -> Result<Self> {
        let free = (0..size).map(|_| driver.connect(options).map(Ok)).collect::<Result<Vec<Slot>>>()?;
        Ok(Self { free: Mutex::new(free), given_back: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        // Nothing that could panic happens under the lock.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection, waiting for one where all are taken.
    pub(crate) fn take(&self) -> Result<Box<dyn Session>> {
        let mut free = self.lock();
        loop {
            match free.pop() {
                Some(Ok(session)) => return Ok(session),
                Some(Err(error)) => {
                    free.push(Err(error.clone()));
                    drop(free);
                    self.given_back.notify_one();
                    return Err(error);
                }
                None => free = self.given_back.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Uses a connection that was taken and gives it back: in good order, or, where that failed, as lost.
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
        self.lock().push(slot);
        self.given_back.notify_one();
    }

    /// Closes all connections; fails where a server sent what nobody asked for.
    pub(crate) fn close(self) -> Result<()> {
        let free = self.free.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Each is closed, whatever became of those before it.
        free.into_iter().flatten().map(goodbye).fold(Ok(()), Result::and)
    }
}

/// Gives a place back whatever happens: work may panic.
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
