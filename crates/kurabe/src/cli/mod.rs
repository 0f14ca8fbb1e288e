//! The command line, made from the registries: an experiment's axes are its options.

mod advise;
mod agent;
mod app;
mod arguments;
mod brief;
mod capture;
mod claims;
mod compare;
mod complete;
mod copy;
mod gate;
mod listen;
mod measurement;
mod pgbench;
mod report;
mod run;
mod selftest;
mod serve;
mod stack;
mod store;
mod wire;

pub(crate) use brief::{brief, meant, without_all};

pub(crate) use complete::{answer_shell, script};
pub(crate) use gate::as_run;
pub(crate) use pgbench::{PGBENCH, refused};
pub(crate) use run::{QUERY, REPLAY};

use crate::{exit, settings};
use arguments::{flag, option, targets, timeout};
use clap::{Arg, ArgAction, Command, ValueHint};
use kurabe_report::Language;
use std::path::PathBuf;

/// The greatest width of help, in columns.
pub(crate) const WIDTH: usize = 100;

/// The command line of the program.
pub(crate) fn command() -> Command {
    Command::new("kurabe")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compares how an application's way of using a database performs, on which database, and why")
        .after_help(format!("{}\n\n{}", exit::HELP, settings::HELP))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(WIDTH)
        .args(everywhere())
        .subcommand(run::command())
        .subcommand(
            Command::new("list").about("Lists experiments and kinds of targets, one line each").arg(flag(
                "all",
                "Lists the axes and operations of experiments, and the options of targets too",
            )),
        )
        .subcommand(
            Command::new("doctor")
                .about("Checks targets: version, durability, limits and available experiments")
                .arg(targets(false))
                .arg(flag(
                    "runs",
                    "Checks every line of every recorded run, and reports truncated and damaged files and \
                     other versions",
                ))
                .arg(
                    option("clients", "N", "Number of clients to check against the server's limits")
                        .default_value("1"),
                )
                .arg(timeout())
                .arg(
                    option(
                        "via",
                        "URL",
                        "Checks an application for conformance with docs/app.openapi.yaml; it adds records",
                    )
                    .action(ArgAction::Append),
                )
                .arg(stack::db())
                .arg(flag(
                    "messages",
                    "Counts the messages of connecting and of the first request, with a relay on this \
                     machine",
                )),
        )
        .subcommand(up())
        .subcommand(copy::command())
        .subcommand(agent::command())
        .subcommand(claims::command())
        .subcommand(wire::command())
        .subcommand(capture::command())
        .subcommand(advise::command())
        .subcommand(selftest::command())
        .subcommand(serve::command())
        .subcommand(report::command())
        .subcommand(compare::command())
        .subcommand(gate::command())
        .subcommand(store::command())
        .subcommand(complete::completions())
        .subcommand(complete::man())
}

/// What runs until Ctrl-C, and prints its URL.
fn up() -> Command {
    let engines: Vec<&str> = kurabe_testbed::engines().filter(|engine| *engine != listen::NAME).collect();
    Command::new("up")
        .about(
            "Starts a throwaway server, an application or a listener, and prints its URL; Ctrl-C removes it",
        )
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand_help_heading("Besides servers")
        .arg(
            Arg::new("engine")
                .required(true)
                .value_name("ENGINE")
                .add(complete::engines())
                .help(format!("The database engine: {}", engines.join(", "))),
        )
        .arg(
            Arg::new("setting")
                .value_name("NAME=VALUE")
                .num_args(0..)
                .help("Settings of the server, as in its documentation"),
        )
        .subcommand(app::command())
        .subcommand(stack::command())
        .subcommand(listen::command())
}

fn everywhere() -> [Arg; 5] {
    [
        option(
            "runs-dir",
            "DIR",
            "Folder of the runs [default: $KURABE_RUNS, or kurabe/runs in the user's data folder]",
        )
        .global(true)
        .value_hint(ValueHint::DirPath)
        .value_parser(clap::value_parser!(PathBuf)),
        option("color", "WHEN", "Whether to colour the output")
            .global(true)
            .value_parser(["auto", "always", "never"])
            .default_value("auto")
            .hide_possible_values(false),
        option("lang", "LANGUAGE", "Language of reports on the terminal and as pages [default: that of $LC_ALL, $LC_MESSAGES or $LANG]")
            .global(true)
            .value_parser(Language::NAMES),
        flag("quiet", "Do not show progress").short('q').global(true),
        flag(
            "verbose",
            "Shows all figures in reports on the terminal: all results, the servers' counters, each comparison, and the basis",
        )
        .short('v')
        .global(true),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_valid() {
        super::command().debug_assert();
    }
}
