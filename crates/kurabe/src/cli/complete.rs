//! What a shell completes besides options and experiments: names of runs, and targets.
//!
//! The shell asks the program for candidates, with [`VARIABLE`] set. `kurabe completions SHELL` prints the script
//! that makes it do so.

use crate::places;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_drivers::registry::DRIVERS;
use kurabe_record::{Entry, Store};
use std::path::PathBuf;

/// The environment variable by which a shell asks for candidates; its value is the shell's name.
const VARIABLE: &str = "KURABE_COMPLETE";
const PROGRAM: &str = "kurabe";

pub(super) fn completions() -> Command {
    Command::new("completions")
        .about("Prints a script for a shell that completes commands, options, experiments, runs and targets")
        .arg(
            Arg::new("shell")
                .required(true)
                .value_name("SHELL")
                .value_parser(PossibleValuesParser::new(Shells::builtins().names())),
        )
}

pub(super) fn man() -> Command {
    Command::new("man").about("Writes the man pages of all commands to a folder").arg(
        Arg::new("folder")
            .required(true)
            .value_name("DIR")
            .value_hint(ValueHint::DirPath)
            .value_parser(clap::value_parser!(PathBuf)),
    )
}

/// Prints candidates and ends the program, if a shell asks for them.
pub(crate) fn answer_shell(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

pub(crate) fn script(shell: &str) -> Result<String> {
    let unknown = || Error::usage(format!("there are no completions for '{shell}'"));
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(unknown)?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the completions cannot be written: {error}"))
    })?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Names of recorded runs, newest first, and `last`.
pub(super) fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        // A shell shows no errors: without a folder there are no runs to complete.
        let entries = places::default_folder()
            .ok()
            .filter(|folder| folder.is_dir())
            .and_then(|folder| Store::open(folder).ok()?.list().ok())
            .unwrap_or_default();
        let last = CompletionCandidate::new("last").help(Some("the newest run".into()));
        let runs = entries.into_iter().map(|entry| {
            let candidate = CompletionCandidate::new(&entry.path().name);
            match &entry {
                Entry::Run(run) => candidate.help(Some(run.header.spec.experiment.clone().into())),
                Entry::Unreadable { .. } => candidate,
            }
        });
        [last].into_iter().chain(runs).collect()
    })
}

/// Engines of throwaway servers.
pub(super) fn engines() -> ArgValueCandidates {
    ArgValueCandidates::new(|| kurabe_testbed::engines().map(CompletionCandidate::new).collect())
}

/// Kinds of targets, and throwaway servers.
pub(super) fn targets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let urls = DRIVERS.iter().flat_map(|driver| {
            let start = |scheme: &&str| format!("{scheme}:");
            driver
                .schemes
                .iter()
                .map(start)
                .map(|url| CompletionCandidate::new(url).help(Some(driver.engine.into())))
        });
        let servers = kurabe_testbed::engines().map(|engine| {
            CompletionCandidate::new(format!("up:{engine}")).help(Some("a throwaway server".into()))
        });
        urls.chain(servers).collect()
    })
}
