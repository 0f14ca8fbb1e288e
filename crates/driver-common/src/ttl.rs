//! Expiry of rows, which the option `ttl` of a URL or a field of theirs sets.

use crate::info::OptionInfo;
use crate::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// The option `ttl` of a URL.
pub const OPTION: OptionInfo =
    OptionInfo::new("ttl", "seconds after which a written row expires; default: never");

/// Reads the option; `None` if rows never expire.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if it is not a number of seconds from 1 to `longest`.
pub fn from_url(url: &TargetUrl, longest: u32) -> Result<Option<u32>> {
    let Some(text) = url.option(OPTION.name) else { return Ok(None) };
    let seconds = text.parse().ok().filter(|seconds| (1..=longest).contains(seconds));
    let wrong = || url.wrong(format!("ttl={text} is not a number of seconds from 1 to {longest}"));
    seconds.ok_or_else(wrong).map(Some)
}

/// The note on rows that expire.
pub fn note(seconds: u32) -> String {
    format!(
        "every row expires {seconds} s after it was written (ttl): a read that misses one fails its trial"
    )
}

/// Milliseconds from now until this time, in microseconds since 1970; at least one.
pub fn remaining_ms(time: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    (time / 1_000 - now).max(1).unsigned_abs()
}
