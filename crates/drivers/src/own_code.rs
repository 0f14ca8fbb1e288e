//! What the code of a user's database may do in read-only sessions: asked of the server's catalogue once for each trial, so that code
//! which comes later counts too.

use crate::prelude::*;
use std::sync::{Mutex, PoisonError};

/// What is known of a server's own code.
#[derive(Default)]
pub(crate) struct OwnCode(Mutex<Option<(u64, bool)>>);

impl OwnCode {
    /// Whether the database has code of its own. `ask` says it, with what a read-only session does not hold back.
    ///
    /// # Errors
    /// If there is something of that kind, or the server cannot be asked.
    pub(crate) fn check(
        &self,
        trial: u64,
        ask: impl FnOnce() -> Result<(bool, Option<String>)>,
    ) -> Result<bool> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, has_code)) = known().filter(|(asked, _)| *asked == trial) {
            return Ok(has_code);
        }
        let (has_code, not_held) = ask()?;
        if let Some(what) = not_held {
            let what = format!("the database has what a read-only session does not hold back: {what}");
            return Err(Error::usage(what).hint(
                "run it on a throwaway server (up:, with --data or --setup), or allow it with --write; or take the right to \
                 execute that from the target's user",
            ));
        }
        *known() = Some((trial, has_code));
        Ok(has_code)
    }
}
