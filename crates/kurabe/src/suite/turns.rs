//! `--turns`, and with what it makes no sense.

use super::Request;
use kurabe_core::{Error, Result};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a turn may be.
const TURNS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

impl Request {
    /// How long a turn is, where trials are made in turns. `open`: whether the loop is.
    pub(super) fn turn(&self, rounds: u64, open: bool) -> Result<Option<Duration>> {
        let Some(turn) = self.turns else { return Ok(None) };
        if !TURNS.contains(&turn) {
            return Err(
                Error::usage("--turns is out of range").hint("from 1ms to 10s; 10ms is a good choice")
            );
        }
        if open {
            return Err(Error::usage("--turns does not go with --rate").hint(
                "in an open loop transactions are due at all times, and not in a trial's turns alone",
            ));
        }
        if rounds < 3 {
            return Err(Error::usage(format!("--turns takes 3 rounds at least, not {rounds}"))
                .hint("in the first round trials are made one after the other and watched"));
        }
        Ok(Some(turn))
    }
}
