//! `kurabe compare RUN RUN`: compares the second run with the first, cell by cell.

use super::{named_run, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_report::compare;

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (_, first) = named_run(matches, "a", output)?;
    let (_, second) = named_run(matches, "b", output)?;
    let view = report::view(matches);
    let infos = [report::info(&first, output), report::info(&second, output)];
    let (a, b) = view.analyse_both([&first, &second], infos)?;
    report::warn_of_licences(&view, &[&first, &second], output);
    output.result(&compare::terminal(&compare::compare(&a, &b), &report::terminal_options(output)))?;
    Ok(exit::DONE)
}
