//! Whether the exchanges of a connection are complete, and the end of a statement whose answer nobody awaits any more.

use crate::cancel;
use kurabe_core::statements::Running;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The exchanges of a connection.
#[derive(Default)]
pub struct Exchanges {
    /// Whether an answer was lost or malformed: later bytes cannot be matched to requests.
    is_broken: bool,
    running: Option<Arc<Running>>,
}

impl Exchanges {
    /// Has `running` end the statements of this connection.
    pub fn watch(&mut self, running: Arc<Running>) {
        self.running = Some(running);
    }

    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Allows no further exchange. Returns whether there could have been one.
    pub fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.is_broken, true)
    }

    /// Starts an exchange.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        // Until the answer has been read completely, even on unwinding.
        if !self.close() {
            return Err(Error::new(ErrorKind::ConnectionLost, "the connection failed before"));
        }
        if let Some(running) = &self.running {
            running.turn();
        }
        Ok(())
    }

    /// Ends an exchange whose answer has been read completely, with this result.
    #[inline]
    pub fn end<T>(&mut self, result: Result<T>) -> Result<T> {
        self.is_broken = false;
        let Some(running) = &self.running else { return result };
        running.turn();
        result.map_err(|error| if running.was_ended() { cancel::error() } else { error })
    }

    /// Whether the statement of the last exchange was ended.
    pub fn was_ended(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.was_ended())
    }

    /// Ends an exchange whose answer was not read completely: if it was not awaited, ends the statement on the server. Returns
    /// whether it did, and the error of the exchange.
    #[cold]
    pub fn leave(&mut self, error: Error) -> (bool, Error) {
        match self.running.take() {
            Some(running) if error.kind() == ErrorKind::Timeout && !cancel::is_cut() => {
                running.end();
                (true, error)
            }
            Some(running) if running.was_ended() => (false, cancel::error()),
            _ => (false, error),
        }
    }
}
