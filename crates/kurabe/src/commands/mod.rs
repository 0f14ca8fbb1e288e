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
mod list;
mod messages;
mod report;
mod run;
mod selftest;
mod serve;
mod session;
mod store;
mod suite;
mod terminate;
mod texts;
mod up;
mod warnings;
mod wire;

#[cfg(feature = "fleet")]
mod fleet;
#[cfg(not(feature = "fleet"))]
use crate::left_out::fleet;

use crate::exit::Exit;
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
pub(crate) use files::FileOptions;
use kurabe_core::Error;

/// Reads the options of a command, and executes it.
type Execute = fn(&ArgMatches, &Output) -> Result<Exit>;

/// The commands by their names, and whether each may make folders or servers, which an earlier one may have left behind.
const COMMANDS: [(&str, bool, Execute); 18] = [
    ("run", true, run::run),
    ("list", false, list::list),
    ("doctor", true, doctor::doctor),
    ("up", true, up::up),
    ("copy", true, copy::copy),
    ("agent", false, fleet::agent),
    ("claims", true, claims::claims),
    ("wire", true, wire::wire),
    ("capture", true, capture::capture),
    ("advise", true, advise::advise),
    ("selftest", true, selftest::selftest),
    ("serve", false, serve::serve),
    ("report", false, report::report),
    ("runs", false, store::runs),
    ("compare", false, compare::compare),
    ("gate", false, run::gate_of_nothing),
    ("completions", false, texts::completions),
    ("man", false, texts::man),
];

/// Executes a command: only its own function reads the command line.
pub(crate) fn dispatch(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (name, matches) = matches.subcommand().unwrap_or(("", matches));
    let Some((_, sweeps, execute)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        return Err(Error::usage("no such command").into());
    };
    if *sweeps {
        // A killed earlier run may have left folders and servers behind.
        kurabe_drivers::embedded::sweep();
        kurabe_testbed::sweep(None);
    }
    execute(matches, output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use crate::output::{GlobalOptions, LogOptions};
    use crate::run_options::{MainOptions, PgbenchOptions, Settings, TargetOptions, WorkloadOptions};
    use report::ViewOptions;

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
        check(&["claims"], claims::ClaimsOptions::names());
        check(&["list"], list::ListOptions::names());
        check(&["completions"], texts::CompletionsOptions::names());
        check(&["man"], texts::ManOptions::names());
        check(&["doctor"], doctor::DoctorOptions::names());
        check(&["up app"], app::ServedOptions::names());
        check(&["up stack"], up::StackOptions::names());
        check(&["up tcp"], up::ListenOptions::names());
        check(&["up"], up::UpOptions::names());
        check(&["copy"], copy::CopyOptions::names());
        check(&["wire", "capture"], wire::RelayOptions::names());
        check(&["wire"], wire::WireOptions::names());
        check(&["capture", "capture show", "capture model"], capture::CaptureOptions::names());
        check(&["advise"], advise::AdviseOptions::names());
        check(&["selftest"], selftest::SelftestOptions::names());
        check(&["serve"], serve::ServeOptions::names());
        check(&["report"], report::ReportOptions::names());
        check(&["report", "compare"], ViewOptions::names());
        check(&["compare"], compare::CompareOptions::names());
        let store = ["runs ls", "runs rm", "runs note", "runs export", "runs import"];
        check(&store, store::StoreOptions::names());
        #[cfg(feature = "fleet")]
        check(&["agent"], fleet::AgentOptions::names());
    }
}
