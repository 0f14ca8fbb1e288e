//! `kurabe compare RUN RUN`: compares the second run with the first, cell by cell.

use super::{named_run, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::Error;
use kurabe_report::compare;

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (one, first) = named_run(matches, "a", output)?;
    let (other, second) = named_run(matches, "b", output)?;
    if one.folder == other.folder {
        let error = Error::usage(format!("both names are those of the same run, {}", one.name));
        return Err(error.hint("name two runs; 'kurabe show' lists them").into());
    }
    let view = report::view(matches);
    let infos = [report::info(&first, output), report::info(&second, output)];
    let (a, b) = view.analyse_both([&first, &second], infos)?;
    report::warn_of_licences(&view, &[&first, &second], output);
    output.result(&compare::terminal(&compare::compare(&a, &b), &report::terminal_options(output)))?;
    Ok(exit::DONE)
}
