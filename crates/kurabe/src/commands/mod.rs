//! The commands, one module each.

mod app;
mod capture;
mod claims;
mod compare;
mod conformance;
mod copy;
mod doctor;
mod execute;
mod files;
mod gate;
mod join;
mod listen;
mod messages;
mod page;
mod pause;
mod planned;
mod report;
mod resume;
mod run;
mod runs;
mod scale;
mod selftest;
mod serve;
mod session;
mod stack;
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
use crate::output::Output;
use crate::{catalogue, cli};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind};
use std::path::PathBuf;

/// Executes a command.
pub(crate) fn dispatch(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    if let Some(("run" | "claims" | "doctor" | "up" | "copy" | "selftest" | "wire" | "capture", _)) =
        matches.subcommand()
    {
        // A killed earlier run may have left folders and servers behind.
        kurabe_drivers::embedded::sweep();
        kurabe_testbed::sweep(None);
    }
    match matches.subcommand() {
        Some(("run", matches)) => run::run(matches, output),
        Some(("list", matches)) => {
            let text = if matches.get_flag("all") {
                format!("{}\n{}", catalogue::experiments(), catalogue::targets())
            } else {
                catalogue::brief()
            };
            output.result(&format!("{text}{}", catalogue::left_out()))?;
            Ok(exit::DONE)
        }
        Some(("doctor", matches)) => doctor::doctor(matches, output),
        Some(("up", matches)) => match matches.subcommand() {
            Some(("app", matches)) => app::app(matches, output),
            Some(("stack", matches)) => stack::stack(matches, output),
            Some((_, matches)) => listen::listen(matches, output),
            None => up::up(matches, output),
        },
        Some(("copy", matches)) => copy::copy(matches, output),
        Some(("agent", matches)) => fleet::agent(matches, output),
        Some(("claims", matches)) => claims::claims(matches, output),
        Some(("wire", matches)) => wire::wire(matches, output),
        Some(("capture", matches)) => capture::capture(matches, output),
        Some(("selftest", matches)) => selftest::selftest(matches, output),
        Some(("serve", matches)) => serve::serve(matches, output),
        Some(("report", matches)) => report::report(matches, output),
        Some(("runs", matches)) => store::runs(matches, output),
        Some(("compare", matches)) => compare::compare(matches, output),
        // With files, it was given as a run.
        Some(("gate", _)) => Err(Error::usage("a gate needs a suite file or pgbench scripts")
            .hint("write 'kurabe gate browse.sql TARGET TARGET', or shop.toml; 'kurabe gate --help' has more")
            .into()),
        Some(("completions", matches)) => {
            if let Some(shell) = matches.get_one::<String>("shell") {
                output.result(&cli::script(shell)?)?;
            }
            Ok(exit::DONE)
        }
        Some(("man", matches)) => {
            if let Some(folder) = matches.get_one::<PathBuf>("folder") {
                std::fs::create_dir_all(folder)
                    .and_then(|()| clap_mangen::generate_to(cli::command(), folder))
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
