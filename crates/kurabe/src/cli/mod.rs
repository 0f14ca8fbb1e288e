//! The command line, made from the registries: an experiment's axes are its options.

mod app;
mod observe;
mod report;
mod run;
mod truth;

pub(crate) use run::PGBENCH;

use crate::exit;
use clap::{Arg, ArgAction, Command, ValueHint, builder::PossibleValuesParser};
use std::path::PathBuf;

/// The whole command line.
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
        .subcommand(
            Command::new("list").about("Lists the experiments with their axes, and the targets there can be"),
        )
        .subcommand(
            Command::new("doctor")
                .about("Says whether a target can be used: version, durability, limits, what is available")
                .arg(targets(true).required(false).required_unless_present("runs"))
                .arg(Arg::new("runs").long("runs").action(ArgAction::SetTrue).help(
                    "Checks every line of every recorded run: which runs are whole, torn or damaged, or made by another \
                     version",
                ))
                .arg(
                    Arg::new("clients")
                        .long("clients")
                        .value_name("N")
                        .default_value("1")
                        .help("Clients that a run would have, held against the limits"),
                )
                .arg(crate::timeout::option())
                .arg(Arg::new("wire").long("wire").action(ArgAction::SetTrue).help(
                    "Counts what a client sends until its first request is answered, by a relay on this machine",
                )),
        )
        .subcommand(
            Command::new("up")
                .about("Starts a throwaway server, prints its URL, and removes it at Ctrl-C")
                .arg(
                    Arg::new("engine")
                        .required(true)
                        .value_name("ENGINE")
                        .value_parser(PossibleValuesParser::new(kurabe_testbed::engines()))
                        .help("Which server"),
                )
                .arg(
                    Arg::new("setting")
                        .value_name("NAME=VALUE")
                        .num_args(0..)
                        .help("Settings of the server, in its own words"),
                ),
        )
        .subcommand(app::command())
        .subcommand(observe::command())
        .subcommand(truth::command())
        .subcommand(
            Command::new("show").about("Shows a run in the terminal; without a name, lists all runs").arg(
                Arg::new("run")
                    .value_name("RUN")
                    .help("The run: its name, the beginning of it, a path, or 'last'"),
            ),
        )
        .subcommand(report::command())
        .subcommand(
            Command::new("compare")
                .about("Compares two runs cell by cell")
                .arg(Arg::new("a").required(true).value_name("RUN"))
                .arg(Arg::new("b").required(true).value_name("RUN"))
                .args(view()),
        )
        .subcommand(
            Command::new("rerun")
                .about("Makes a run again with the same settings, as a new run")
                .arg(one_run("The run to repeat"))
                .args(again()),
        )
        .subcommand(
            Command::new("resume")
                .about("Goes on with a run that was stopped, at its next trial")
                .arg(one_run("The run to go on with"))
                .arg(Arg::new("max-rounds").long("max-rounds").value_name("N").help(
                    "For a run made --until conclusive: so many rounds at most, in place of what was said then",
                ))
                .args(again()),
        )
        .subcommand(
            Command::new("completions").about("Prints the completions of a shell").arg(
                Arg::new("shell")
                    .required(true)
                    .value_name("SHELL")
                    .value_parser(clap::value_parser!(clap_complete::Shell)),
            ),
        )
}

fn everywhere() -> [Arg; 3] {
    [
        Arg::new("runs-dir")
            .long("runs-dir")
            .global(true)
            .value_name("DIR")
            .value_hint(ValueHint::DirPath)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Where runs are kept [default: $KURABE_RUNS, or kurabe/runs in the user's data folder]"),
        Arg::new("color")
            .long("color")
            .global(true)
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(false)
            .help("Whether results are coloured"),
        Arg::new("quiet")
            .long("quiet")
            .short('q')
            .global(true)
            .action(ArgAction::SetTrue)
            .help("No progress"),
    ]
}

pub(super) fn targets(required: bool) -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .num_args(if required { 1.. } else { 0.. })
        .required(required)
        .help("URLs of databases, or up:ENGINE for a throwaway server; see 'kurabe list' [default: sqlite:]")
}

/// What is shown of a run, where that is not all.
fn view() -> [Arg; 2] {
    let heading = "What is shown";
    [
        Arg::new("anonymise")
            .long("anonymise")
            .alias("anonymize")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help(
                "Calls the engines 'database A', 'database B' and leaves out what tells which they are: versions, \
                 URLs, settings, their errors' words, the command; figures and verdicts stay",
            ),
        Arg::new("leave-out")
            .long("leave-out")
            .value_name("TARGET")
            .action(ArgAction::Append)
            .help_heading(heading)
            .help(
                "Reports as if this target had not been there: its name in the run, or an engine's for all of that \
                 engine; may be given several times",
            ),
    ]
}

fn one_run(help: &'static str) -> Arg {
    Arg::new("run").required(true).value_name("RUN").help(help)
}

fn again() -> [Arg; 2] {
    [
        Arg::new("target").value_name("TARGET").num_args(0..).help(
            "The same targets again, in order, where a password is needed that the run file does not hold",
        ),
        Arg::new("no-html")
            .long("no-html")
            .action(ArgAction::SetTrue)
            .help("Does not write the HTML report beside the run"),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
