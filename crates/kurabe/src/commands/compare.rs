//! `kurabe compare RUN RUN`: the second run against the first, cell by cell.

use super::{named_run, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_report::compare;

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (_, first) = named_run(matches, "a", output)?;
    let (_, second) = named_run(matches, "b", output)?;
    let compared = compare::compare(&report::summary(&first)?, &report::summary(&second)?);
    output.result(&compare::terminal(&compared, &report::terminal_options(output)));
    Ok(exit::DONE)
}
