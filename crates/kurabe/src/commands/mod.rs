//! The commands, one module each.

mod advise;
mod announcement;
mod app;
mod capture;
mod claims;
mod compare;
mod copy;
mod doctor;
mod execute;
mod files;
mod join;
mod messages;
mod report;
mod run;
mod selftest;
mod serve;
mod session;
mod store;
mod suite;
mod terminate;
mod up;
mod warnings;
mod wire;

#[cfg(feature = "fleet")]
mod fleet;
#[cfg(not(feature = "fleet"))]
use crate::left_out::fleet;

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::run_options::{RunOptions, WorkloadOptions};
use crate::{catalogue, cli};
use advise::AdviseOptions;
use anyhow::Result;
use app::ServedOptions;
use capture::CaptureOptions;
use claims::ClaimsOptions;
use clap::ArgMatches;
use compare::CompareOptions;
use copy::CopyOptions;
use doctor::DoctorOptions;
pub(crate) use files::FileOptions;
use kurabe_core::{Error, ErrorKind};
use report::{ReportOptions, ViewOptions};
use selftest::SelftestOptions;
use serve::ServeOptions;
use std::path::PathBuf;
use store::StoreOptions;
use up::{ListenOptions, StackOptions, UpOptions};
use wire::{RelayOptions, WireOptions};

options! {
    /// The options of `kurabe list`.
    ListOptions { all: bool }
}

options! {
    /// The options of `kurabe completions`.
    CompletionsOptions { shell: Option<String> }
}

options! {
    /// The options of `kurabe man`.
    ManOptions { folder: Option<PathBuf> }
}

/// Executes a command: nothing below reads the command line.
pub(crate) fn dispatch(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    if let Some((
        "run" | "advise" | "claims" | "doctor" | "up" | "copy" | "selftest" | "wire" | "capture",
        _,
    )) = matches.subcommand()
    {
        // A killed earlier run may have left folders and servers behind.
        kurabe_drivers::embedded::sweep();
        kurabe_testbed::sweep(None);
    }
    match matches.subcommand() {
        Some(("run", matches)) => {
            let (experiment, matches) =
                matches.subcommand().map_or((None, matches), |(name, below)| (Some(name), below));
            run::run(experiment, &RunOptions::of(matches), output)
        }
        Some(("list", matches)) => {
            let text = if ListOptions::of(matches).all {
                format!("{}\n{}", catalogue::experiments(), catalogue::targets())
            } else {
                catalogue::brief()
            };
            output.list(&format!("{text}{}", catalogue::left_out()))?;
            Ok(exit::DONE)
        }
        Some(("doctor", matches)) => doctor::doctor(DoctorOptions::of(matches), output),
        Some(("up", matches)) => match matches.subcommand() {
            Some(("app", matches)) => app::app(&ServedOptions::of(matches), output),
            Some(("stack", matches)) => up::stack(&StackOptions::of(matches), output),
            Some((_, matches)) => up::listen(&ListenOptions::of(matches), output),
            None => up::up(&UpOptions::of(matches), output),
        },
        Some(("copy", matches)) => copy::copy(&CopyOptions::of(matches), output),
        Some(("agent", matches)) => fleet::agent(&fleet::AgentOptions::of(matches), output),
        Some(("claims", matches)) => {
            claims::claims(&ClaimsOptions::of(matches), &WorkloadOptions::of(matches), output)
        }
        Some(("wire", matches)) => wire::wire(&RelayOptions::of(matches), WireOptions::of(matches), output),
        Some(("capture", matches)) => match matches.subcommand() {
            Some(("show", matches)) => capture::shown(&CaptureOptions::of(matches), output),
            Some((_, matches)) => capture::modelled(&CaptureOptions::of(matches), output),
            None => capture::capture(&RelayOptions::of(matches), &CaptureOptions::of(matches), output),
        },
        Some(("advise", matches)) => advise::advise(&AdviseOptions::of(matches), output),
        Some(("selftest", matches)) => selftest::selftest(&SelftestOptions::of(matches), output),
        Some(("serve", matches)) => serve::serve(ServeOptions::of(matches), output),
        Some(("report", matches)) => {
            report::report(&ReportOptions::of(matches), ViewOptions::of(matches), output)
        }
        Some(("runs", matches)) => {
            let (what, matches) = matches.subcommand().unwrap_or(("", matches));
            store::runs(what, &StoreOptions::of(matches), output)
        }
        Some(("compare", matches)) => {
            let (files, view) = (FileOptions::of(matches), ViewOptions::of(matches));
            compare::compare(&CompareOptions::of(matches), files, view, output)
        }
        // With files, it was given as a run.
        Some(("gate", _)) => Err(Error::usage("a gate needs a suite file or pgbench scripts")
            .hint("write 'kurabe gate browse.sql TARGET TARGET', or shop.toml; 'kurabe gate --help' has more")
            .into()),
        Some(("completions", matches)) => {
            if let Some(shell) = CompletionsOptions::of(matches).shell {
                output.result(&cli::script(&shell)?)?;
            }
            Ok(exit::DONE)
        }
        Some(("man", matches)) => {
            if let Some(folder) = ManOptions::of(matches).folder {
                std::fs::create_dir_all(&folder)
                    .and_then(|()| clap_mangen::generate_to(cli::command(), &folder))
                    .map_err(|error| {
                        let what =
                            format!("the man pages cannot be written to {}: {error}", folder.display());
                        Error::new(ErrorKind::Environment, what)
                    })?;
            }
            Ok(exit::DONE)
        }
        _ => Err(Error::usage("no such command").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{GlobalOptions, LogOptions};
    use crate::run_options::{MainOptions, PgbenchOptions, Settings, TargetOptions};

    /// Checks that each name is an option of one of these commands, or of all commands.
    fn check(paths: &[&str], names: Vec<String>) {
        let of = |path: &&str| {
            path.split(' ').fold(cli::command(), |command, name| {
                command.find_subcommand(name).unwrap_or_else(|| panic!("{path}")).clone()
            })
        };
        let commands: Vec<clap::Command> = paths.iter().map(of).chain([cli::command()]).collect();
        for name in names {
            let has =
                |command: &clap::Command| command.get_arguments().any(|arg| arg.get_id() == name.as_str());
            assert!(commands.iter().any(has), "{paths:?} has no option '{name}'");
        }
    }

    #[test]
    fn each_field_is_an_option_of_its_command() {
        let run =
            ["run", "run session", "run pgbench", "run query", "run replay", "run link", "run cache-aside"];
        check(&[], GlobalOptions::names());
        check(&run, LogOptions::names());
        check(&run, MainOptions::names());
        check(&run, TargetOptions::names());
        check(&run, PgbenchOptions::names());
        check(&run, FileOptions::names());
        check(&run, WorkloadOptions::names());
        let mut settings = Vec::new();
        let read = Settings::read(|name| {
            settings.push(name.to_owned());
            Ok(None)
        });
        assert!(read.is_ok());
        check(&run, settings);
        check(&["claims"], ClaimsOptions::names());
        check(&["list"], ListOptions::names());
        check(&["completions"], CompletionsOptions::names());
        check(&["man"], ManOptions::names());
        check(&["doctor"], DoctorOptions::names());
        check(&["up app"], ServedOptions::names());
        check(&["up stack"], StackOptions::names());
        check(&["up tcp"], ListenOptions::names());
        check(&["up"], UpOptions::names());
        check(&["copy"], CopyOptions::names());
        check(&["wire", "capture"], RelayOptions::names());
        check(&["wire"], WireOptions::names());
        check(&["capture", "capture show", "capture model"], CaptureOptions::names());
        check(&["advise"], AdviseOptions::names());
        check(&["selftest"], SelftestOptions::names());
        check(&["serve"], ServeOptions::names());
        check(&["report"], ReportOptions::names());
        check(&["report", "compare"], ViewOptions::names());
        check(&["compare"], CompareOptions::names());
        let store = ["runs ls", "runs rm", "runs note", "runs export", "runs import"];
        check(&store, StoreOptions::names());
        #[cfg(feature = "fleet")]
        check(&["agent"], fleet::AgentOptions::names());
    }
}
