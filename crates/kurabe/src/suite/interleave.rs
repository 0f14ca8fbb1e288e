//! `--interleave`, and with what it makes no sense.

use super::Request;
use kurabe_core::{Error, Result};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a slice may be.
const SLICES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

impl Request {
    /// The length of a slice, where trials are interleaved. `open`: whether the loop is.
    pub(super) fn slice(&self, rounds: u64, open: bool) -> Result<Option<Duration>> {
        let Some(slice) = self.interleave else { return Ok(None) };
        if !SLICES.contains(&slice) {
            return Err(
                Error::usage("--interleave is out of range").hint("from 1ms to 10s; 10ms is a good choice")
            );
        }
        if open {
            return Err(Error::usage("--interleave does not go with --rate").hint(
                "in an open loop transactions are due at all times, and not only in a trial's slices",
            ));
        }
        if rounds < 3 {
            return Err(Error::usage(format!("--interleave takes 3 rounds at least, not {rounds}"))
                .hint("the first round is made of separate trials, which are observed"));
        }
        Ok(Some(slice))
    }
}
