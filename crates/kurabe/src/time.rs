//! The time since 1970; the time limit of connecting and of each reply (`--timeout`); the wait for a quiet machine before a run
//! starts (`--wait-quiet`).

use crate::output::Output;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::{Error, Result, units};
use kurabe_engine::plan::Plan;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the machine must be quiet.
const QUIET: Duration = Duration::from_secs(2);
/// A day.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// Waits until the machine is quiet, if that was asked for.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if the time is invalid.
pub(crate) fn wait_until_quiet(limit: Option<&str>, output: &Output) -> Result<()> {
    let Some(text) = limit else { return Ok(()) };
    let limit = units::parse_duration(text).map_err(|error| error.context("--wait-quiet"))?;
    if limit > LONGEST_WAIT {
        return Err(
            Error::usage(format!("--wait-quiet {text} is out of range")).hint("at most a day: 86400s")
        );
    }
    let began = Instant::now();
    let mut told = false;
    while kurabe_observe::is_busy(QUIET) {
        if began.elapsed() >= limit {
            output.warning(&format!(
                "the machine was not quiet within {}: the run starts anyway",
                units::time(limit)
            ));
            return Ok(());
        }
        if !told {
            output.note("waiting until other processes use less of the CPU; Ctrl-C ends the program");
            told = true;
        }
    }
    Ok(())
}

pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3_600);

/// Parses a time.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if it is not a time, or out of range.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration> {
    let time = units::parse_duration(text).map_err(|error| error.context("--timeout"))?;
    if TIMEOUTS.contains(&time) {
        return Ok(time);
    }
    Err(Error::usage(format!("--timeout {text} is out of range")).hint("from 10ms to 1h"))
}

/// Sets the limit for every connection of a command without a run.
pub(crate) fn set_timeout(given: Option<&str>) -> Result<()> {
    ConnectOptions::within(given.map(parse_timeout).transpose()?.unwrap_or(DEFAULT_TIMEOUT)).make_default();
    Ok(())
}

/// Sets the limit for every connection of a run. Replies may be as large as its cells require.
pub(crate) fn set_timeout_of_run(plan: &Plan) {
    let timeout = plan.spec.timeout_ns.map_or(DEFAULT_TIMEOUT, Duration::from_nanos);
    ConnectOptions { largest_answer: plan.largest_answer(), ..ConnectOptions::within(timeout) }
        .make_default();
}

pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
