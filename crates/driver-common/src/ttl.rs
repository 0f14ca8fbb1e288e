//! Expiry of rows, which the option `ttl` of a URL sets.

use crate::info::OptionInfo;
use crate::prelude::*;

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
