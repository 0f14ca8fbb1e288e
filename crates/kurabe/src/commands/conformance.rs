//! `kurabe doctor --via URL`: what an application does not do as docs/app.openapi.yaml says.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::words::split_targets;
use anyhow::Result;
use kurabe_core::{Error, ErrorKind};
use kurabe_experiments::conformance::{self, Check, Outcome};
use kurabe_targets::{OpenOptions, SERVED_BY_STACKS, StackData};
use std::fmt::Write;

/// The number of records of a stack that is checked.
const RECORDS: u64 = 1_000;

/// Checks every application of `--via`. Returns the exit code of the worst.
pub(super) fn check(via: &[String], database: Option<&str>, output: &Output) -> Result<Option<Exit>> {
    let urls = via.iter().map(|text| split_targets(text)).collect::<kurabe_core::Result<Vec<_>>>()?.concat();
    let urls = urls.into_iter().map(|url| match database {
        Some(database) => kurabe_targets::with_database(&url, database),
        None => Ok(url),
    });
    let urls = urls.collect::<kurabe_core::Result<Vec<String>>>()?;
    if urls.is_empty() {
        return Ok(None);
    }
    if kurabe_targets::applications(&urls)?.contains(&false) {
        return Err(Error::usage("--via: this is not an application")
            .hint("write http://host:port or stack:php")
            .into());
    }
    let experiments = SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect();
    let stack_data = StackData { experiments, seed: 1, records: Some(RECORDS) };
    // All at once, so that stacks share their database.
    let open_options = OpenOptions { stack_data, tolerant: true, ..OpenOptions::default() };
    let mut opened = kurabe_targets::open(&urls, &open_options, output)?;
    let mut errors: Vec<Error> = Vec::new();
    let mut conforms = true;
    for target in &opened.targets {
        match conformance::check(&*target.driver) {
            Ok(checks) => {
                conforms &= !checks.iter().any(|check| matches!(check.outcome, Outcome::Wrong(_)));
                output.result(&shown(&target.name, &checks))?;
            }
            Err(error) => errors.push(error.context(&target.name)),
        }
    }
    errors.extend(opened.died().map(|why| kurabe_targets::start_error(ErrorKind::ConnectionLost, &why)));
    errors.extend(std::mem::take(&mut opened.unopened).into_iter().map(|(_, error)| error));
    opened.close(output);
    let mut worst = (!conforms).then_some(exit::TARGET);
    for error in errors {
        let error = error.into();
        output.error(&error);
        worst = Some(exit::of(&error));
    }
    Ok(worst)
}

/// The checks, a line each, and their number.
fn shown(name: &str, checks: &[Check]) -> String {
    let mut text = format!("{name}\n");
    let (mut right, mut wrong) = (0, 0);
    for Check { what, outcome } in checks {
        let (word, why) = match outcome {
            Outcome::Right => {
                right += 1;
                ("ok", "")
            }
            Outcome::Wrong(why) => {
                wrong += 1;
                ("WRONG", why.as_str())
            }
            Outcome::Absent(why) => ("absent", why.as_str()),
        };
        let colon = if why.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "  {word:<8}{what}{colon}{why}");
    }
    let _ = write!(text, "  {right} as docs/app.openapi.yaml says, {wrong} not");
    text
}
