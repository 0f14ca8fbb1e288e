//! The command line, made from the registries: an experiment's axes are its options.

mod agent;
mod app;
mod complete;
mod report;
mod run;
mod selftest;

pub(crate) use complete::{answer_shell, script};
pub(crate) use run::PGBENCH;

use crate::exit;
use clap::{Arg, ArgAction, Command, ValueHint, builder::PossibleValuesParser};
use std::path::PathBuf;

/// The command line of the program.
pub(crate) fn command() -> Command {
    Command::new("kurabe")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compares how an application's way of using a database performs, on which database, and why")
        .after_help(exit::HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .args(everywhere())
        .subcommand(run::command())
        .subcommand(Command::new("list").about("Lists experiments with their axes, and kinds of targets"))
        .subcommand(
            Command::new("doctor")
                .about("Checks targets: version, durability, limits and available experiments")
                .arg(targets(true).required(false).required_unless_present("runs"))
                .arg(Arg::new("runs").long("runs").action(ArgAction::SetTrue).help(
                    "Checks every line of every recorded run, and reports truncated and damaged files and \
                     other versions",
                ))
                .arg(
                    Arg::new("clients")
                        .long("clients")
                        .value_name("N")
                        .default_value("1")
                        .help("Number of clients to check against the server's limits"),
                )
                .arg(crate::timeout::option())
                .arg(Arg::new("wire").long("wire").action(ArgAction::SetTrue).help(
                    "Counts the messages of connecting and of the first request, with a relay on this \
                     machine",
                )),
        )
        .subcommand(
            Command::new("up")
                .about("Starts a throwaway server and prints its URL; Ctrl-C removes the server")
                .arg(
                    Arg::new("engine")
                        .required(true)
                        .value_name("ENGINE")
                        .value_parser(PossibleValuesParser::new(kurabe_testbed::engines()))
                        .help("The database engine"),
                )
                .arg(
                    Arg::new("setting")
                        .value_name("NAME=VALUE")
                        .num_args(0..)
                        .help("Settings of the server, as in its documentation"),
                ),
        )
        .subcommand(app::command())
        .subcommand(agent::command())
        .subcommand(selftest::command())
        .subcommand(
            Command::new("show").about("Shows a run in the terminal; lists all runs if none is named").arg(
                Arg::new("run")
                    .value_name("RUN")
                    .add(complete::runs())
                    .help("Name of the run or a prefix of it, a path, or 'last'"),
            ),
        )
        .subcommand(report::command())
        .subcommand(
            Command::new("compare")
                .about("Compares two runs cell by cell")
                .arg(Arg::new("a").required(true).value_name("RUN").add(complete::runs()))
                .arg(Arg::new("b").required(true).value_name("RUN").add(complete::runs()))
                .args(view()),
        )
        .subcommand(
            Command::new("rerun")
                .about("Repeats a run with the same settings, as a new run")
                .arg(one_run("The run to repeat"))
                .args(again()),
        )
        .subcommand(
            Command::new("resume")
                .about("Continues an interrupted run at its next trial")
                .arg(one_run("The run to continue"))
                .arg(
                    Arg::new("max-rounds")
                        .long("max-rounds")
                        .value_name("N")
                        .help("New maximum number of rounds, for a run started with --until conclusive"),
                )
                .args(again()),
        )
        .subcommand(complete::completions())
        .subcommand(complete::man())
}

fn everywhere() -> [Arg; 3] {
    [
        Arg::new("runs-dir")
            .long("runs-dir")
            .global(true)
            .value_name("DIR")
            .value_hint(ValueHint::DirPath)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Folder of the runs [default: $KURABE_RUNS, or kurabe/runs in the user's data folder]"),
        Arg::new("color")
            .long("color")
            .global(true)
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(false)
            .help("Whether to colour the output"),
        Arg::new("quiet")
            .long("quiet")
            .short('q')
            .global(true)
            .action(ArgAction::SetTrue)
            .help("Do not show progress"),
    ]
}

pub(super) fn targets(required: bool) -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .num_args(if required { 1.. } else { 0.. })
        .required(required)
        .add(complete::targets())
        .help("Database URLs, or up:ENGINE for a throwaway server; see 'kurabe list' [default: sqlite:]")
}

/// Options for the contents of a report.
fn view() -> [Arg; 2] {
    let heading = "Contents of the report";
    [
        Arg::new("anonymise")
            .long("anonymise")
            .alias("anonymize")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help(
                "Names engines 'database A', 'database B' and removes versions, URLs, settings, error texts \
                 and the command line; results and verdicts stay",
            ),
        Arg::new("leave-out")
            .long("leave-out")
            .value_name("TARGET")
            .action(ArgAction::Append)
            .help_heading(heading)
            .help(
                "Leaves out a target, by its name in the run, or all targets of an engine, by the engine's \
                 name; may be given several times",
            ),
    ]
}

fn one_run(help: &'static str) -> Arg {
    Arg::new("run").required(true).value_name("RUN").add(complete::runs()).help(help)
}

fn again() -> [Arg; 2] {
    [
        Arg::new("target")
            .value_name("TARGET")
            .num_args(0..)
            .add(complete::targets())
            .help("The same targets in the same order, with passwords, which the run file does not contain"),
        Arg::new("no-html").long("no-html").action(ArgAction::SetTrue).help("Do not write the HTML report"),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_valid() {
        super::command().debug_assert();
    }
}
