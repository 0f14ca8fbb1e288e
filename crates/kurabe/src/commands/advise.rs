//! `kurabe advise`: what would make a captured application faster.

mod page;

use super::files::refuse_one_for_two;
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::{cli, places, signals};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_advise::{AdviceRequest, KINDS, Kind};
use kurabe_core::{Error, ErrorKind, units};
use kurabe_os::private;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

options! {
    /// The options of `kurabe advise`.
    AdviseOptions {
        capture: Option<PathBuf>,
        target: Option<String>,
        data: Option<String>,
        tried: Vec<String> = "try",
        budget: Option<String>,
        output: Option<PathBuf>,
        report: Option<String>,
        export_html: Option<PathBuf>,
    }
}

pub(super) fn advise(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = AdviseOptions::of(matches);
    let (Some(capture), Some(target)) = (&options.capture, &options.target) else { return Ok(exit::DONE) };
    let files = [&options.output, &options.export_html];
    let files: Vec<&Path> = files.into_iter().flatten().map(PathBuf::as_path).collect();
    if let Some(path) = files.iter().find(|path| path.exists()) {
        return Err(Error::usage(format!("{} exists already", path.display()))
            .hint("name another file")
            .into());
    }
    refuse_one_for_two(&files)?;
    places::warn_of_file(capture, output);
    let of = |word: &String| KINDS.iter().find(|(name, _)| name == word).map(|(_, kind)| *kind);
    let kinds: Vec<Kind> = options.tried.iter().filter_map(of).collect();
    let budget = budget(options.budget.as_deref().unwrap_or_default())?;
    let request = AdviceRequest { capture, target, data: options.data.as_deref(), kinds: &kinds, budget };
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    let advice = kurabe_advise::advise(&request, &cancel, output)?;
    if options.report.as_deref() == Some("json") {
        output.json_result(serde_json::to_string_pretty(&advice))?;
    } else {
        output.result(&advice.text(output.width.unwrap_or(cli::WIDTH).max(cli::WIDTH)))?;
    }
    if let Some(path) = &options.export_html {
        write(path, &page::page(&advice))?;
    }
    if let (Some(path), Some(script)) = (&options.output, advice.script()) {
        write(path, &script)?;
        output.hint(&format!("{}: read it, and try it where it matters least first", path.display()));
    }
    match advice.error {
        Some(error) if error.kind() == ErrorKind::Interrupted => Ok(exit::INTERRUPTED),
        Some(error) => Err(error.into()),
        None => Ok(exit::DONE),
    }
}

fn budget(text: &str) -> kurabe_core::Result<Duration> {
    let budget = units::parse_duration(text).map_err(|error| error.context("--budget"))?;
    if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&budget) {
        return Ok(budget);
    }
    Err(Error::usage(format!("--budget {text} is out of range")).hint("from 1s to 24h"))
}

fn write(path: &Path, text: &str) -> kurabe_core::Result<()> {
    let failed =
        |error| Error::new(ErrorKind::Environment, format!("cannot write {}: {error}", path.display()));
    let mut file = private::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
