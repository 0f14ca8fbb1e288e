//! `--wait-quiet`: waits for a quiet machine before a run starts.

use crate::output::Output;
use kurabe_core::{Error, Result, units};
use std::time::{Duration, Instant};

/// How long the machine must be quiet.
const QUIET: Duration = Duration::from_secs(2);
/// A day.
const MAX: Duration = Duration::from_secs(86_400);

/// Waits, if that was asked for.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if the time is invalid.
pub(crate) fn wait(limit: Option<&str>, output: &Output) -> Result<()> {
    let Some(text) = limit else { return Ok(()) };
    let limit = units::parse_duration(text).map_err(|error| error.context("--wait-quiet"))?;
    if limit > MAX {
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
