//! `--timeout`: time limit of connecting, and of each reply.

use kurabe_core::driver::ConnectOptions;
use kurabe_core::{Error, Result, units};
use kurabe_engine::plan::Plan;
use std::time::Duration;

pub(crate) const DEFAULT: Duration = Duration::from_secs(30);
const RANGE: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3_600);

/// Parses a time.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if it is not a time, or out of range.
pub(crate) fn parse(text: &str) -> Result<Duration> {
    let time = units::parse_duration(text).map_err(|error| error.context("--timeout"))?;
    if RANGE.contains(&time) {
        return Ok(time);
    }
    Err(Error::usage(format!("--timeout {text} is out of range")).hint("from 10ms to 1h"))
}

/// Sets the limit for every connection of a command without a run.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn set(given: Option<&str>) -> Result<()> {
    ConnectOptions::within(given.map(parse).transpose()?.unwrap_or(DEFAULT)).make_default();
    Ok(())
}

/// Sets the limit for every connection of a run. Replies may be as large as its cells require.
pub(crate) fn of_run(plan: &Plan) {
    let timeout = plan.spec.timeout_ns.map_or(DEFAULT, Duration::from_nanos);
    ConnectOptions { largest_answer: plan.largest_answer(), ..ConnectOptions::within(timeout) }
        .make_default();
}
