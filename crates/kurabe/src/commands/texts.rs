//! `kurabe completions` and `kurabe man`: texts about the command line itself.

use crate::cli;
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind};
use std::path::PathBuf;

options! {
    /// The options of `kurabe completions`.
    CompletionsOptions { shell: Option<String> }
}

pub(super) fn completions(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    if let Some(shell) = CompletionsOptions::of(matches).shell {
        output.result(&cli::script(&shell)?)?;
    }
    Ok(exit::DONE)
}

options! {
    /// The options of `kurabe man`.
    ManOptions { folder: Option<PathBuf> }
}

pub(super) fn man(matches: &ArgMatches, _: &Output) -> Result<Exit> {
    if let Some(folder) = ManOptions::of(matches).folder {
        let made = std::fs::create_dir_all(&folder);
        made.and_then(|()| clap_mangen::generate_to(cli::command(), &folder)).map_err(|error| {
            let what = format!("the man pages cannot be written to {}: {error}", folder.display());
            Error::new(ErrorKind::Environment, what)
        })?;
    }
    Ok(exit::DONE)
}
