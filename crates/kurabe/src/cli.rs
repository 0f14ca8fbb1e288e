//! The command line, made from the registries: an experiment's axes are its options.

use crate::exit;
use clap::{Arg, ArgAction, Command, ValueHint, builder::PossibleValuesParser};
use kurabe_core::axis::{AxisInfo, AxisKind};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::{Arrivals, RATE};
use kurabe_experiments::registry::EXPERIMENTS;
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
        .subcommand(run())
        .subcommand(
            Command::new("list").about("Lists the experiments with their axes, and the targets there can be"),
        )
        .subcommand(
            Command::new("doctor")
                .about("Says whether a target can be used: version, durability, limits, what is available")
                .arg(targets(true))
                .arg(
                    Arg::new("clients")
                        .long("clients")
                        .value_name("N")
                        .default_value("1")
                        .help("Clients that a run would have, held against the limits"),
                )
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
        .subcommand(app())
        .subcommand(truth())
        .subcommand(
            Command::new("show").about("Shows a run in the terminal; without a name, lists all runs").arg(
                Arg::new("run")
                    .value_name("RUN")
                    .help("The run: its name, the beginning of it, a path, or 'last'"),
            ),
        )
        .subcommand(report())
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

fn run() -> Command {
    let command = Command::new("run")
        .about("Runs an experiment, or a suite file, and reports")
        .subcommand_value_name("EXPERIMENT")
        .subcommand_help_heading("Experiments")
        .args_conflicts_with_subcommands(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("suite")
                .short('f')
                .long("file")
                .value_name("FILE.toml")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A suite file, or a workload of your own; the options below go before what it says"),
        )
        .arg(targets(false))
        .args(own())
        .args(how());
    EXPERIMENTS
        .iter()
        .fold(command, |command, experiment| command.subcommand(of_experiment(experiment.info())))
        .subcommand(pgbench())
}

/// The experiment that is made from scripts of pgbench.
pub(crate) const PGBENCH: &str = "pgbench";

fn pgbench() -> Command {
    let heading = "Scripts";
    let arg = |name: &'static str, short: char, value: &'static str, help: &'static str| {
        Arg::new(name).short(short).value_name(value).help_heading(heading).help(help)
    };
    Command::new(PGBENCH)
        .about("How fast are scripts that were written for pgbench, and where?")
        .arg(targets(false))
        .arg(
            arg("script", 'f', "FILE[@WEIGHT]", "A script; may be given several times, each chosen by its weight")
                .long("file")
                .action(ArgAction::Append)
                .value_hint(ValueHint::FilePath),
        )
        .arg(
            arg(
                "builtin",
                'b',
                "NAME[@WEIGHT]",
                "A script that pgbench brings along: tpcb-like, simple-update, select-only [default: tpcb-like, \
                 where there is no -f]",
            )
            .long("builtin")
            .action(ArgAction::Append),
        )
        .arg(arg("scale", 's', "N", "The variable :scale, and with --init the size of the tables [default: 1]").long("scale"))
        .arg(
            Arg::new("init")
                .short('i')
                .long("init")
                .action(ArgAction::SetTrue)
                .help_heading(heading)
                .help("Makes pgbench's tables for the run, on any SQL engine; the scripts' names for them mean these"),
        )
        .args(own())
        .args(kurabe_experiments::own::axes().iter().chain([&RATE]).map(axis))
        .args(how())
}

/// What belongs to a workload of the user's own.
fn own() -> [Arg; 2] {
    let heading = "A workload of your own";
    [
        Arg::new("define")
            .short('D')
            .long("define")
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .help_heading(heading)
            .help("Gives a variable another value; may be given several times"),
        Arg::new("write")
            .long("write")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help("Lets its statements change tables that were there before"),
    ]
}

fn of_experiment(info: &'static ExperimentInfo) -> Command {
    let operations: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    Command::new(info.name)
        .about(info.question)
        .long_about(format!("{}\n\n{}", info.question, info.about))
        .arg(targets(false))
        .args(info.axes.iter().chain([&RATE]).map(axis))
        .arg(
            Arg::new("operation")
                .long("operation")
                .value_name("NAMES")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(operations))
                .help_heading("Axes: each takes a list, separated by commas; cells are their product")
                .help("What is measured [default: all]"),
        )
        .args(how())
}

fn axis(axis: &'static AxisInfo) -> Arg {
    let help = match axis.kind {
        AxisKind::Choice(choices) => {
            let choices: Vec<String> =
                choices.iter().map(|(word, help)| format!("{word} ({help})")).collect();
            format!("{}: {}", axis.help, choices.join(", "))
        }
        AxisKind::CountOr { words, .. } => {
            let words: Vec<String> = words.iter().map(|(word, help)| format!("or {word}: {help}")).collect();
            format!("{}, {}", axis.help, words.join(", "))
        }
        AxisKind::Size { .. } | AxisKind::Count { .. } => axis.help.to_owned(),
    };
    let default = match axis.default {
        [] => "a closed loop".to_owned(),
        values => values.join(","),
    };
    Arg::new(axis.name)
        .long(axis.name)
        .value_name("LIST")
        .value_delimiter(',')
        .action(ArgAction::Append)
        .help_heading("Axes: each takes a list, separated by commas; cells are their product")
        .help(format!("{help} [default: {default}]"))
}

fn targets(required: bool) -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .num_args(if required { 1.. } else { 0.. })
        .required(required)
        .help("URLs of databases, or up:ENGINE for a throwaway server; see 'kurabe list' [default: sqlite:]")
}

fn how() -> [Arg; 13] {
    let heading = "How it is measured";
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help_heading(heading).help(help)
    };
    [
        Arg::new("more-targets")
            .short('t')
            .long("target")
            .value_name("TARGET")
            .action(ArgAction::Append)
            .help("A further target"),
        arg(
            "via",
            "URL",
            "An application to drive, such as kurabe app: http://host:port; a target like any other",
        )
        .action(ArgAction::Append),
        arg(
            "requests",
            "N",
            "Requests of each trial, over all clients: 5000, or write=1000,read=10000 [default: the experiment's own]",
        ),
        arg("duration", "TIME", "Time of each trial's measured phase; with --requests, whichever ends first"),
        arg(
            "budget",
            "TIME",
            "About how long the whole run may take, where --requests and --duration are not given [default: 40s for \
             each target]",
        ),
        arg("rounds", "N", "How often each cell is measured, in random order [default: 6]"),
        arg("seed", "N", "Seed of data, order and draws [default: from the clock; it is recorded]"),
        arg("records", "N", "Records in the store before it is read [default: the experiment's own rule]"),
        arg(
            "arrivals",
            "HOW",
            "How the transactions of a --rate are spread: even, or poisson as independent users come",
        )
        .value_parser(Arrivals::NAMES)
        .hide_possible_values(true),
        arg("slo", "TIME", "What the p99 of response times must stay under at --rate max [default: 10ms]"),
        arg(
            "durability",
            "CLASS",
            "What an acknowledged write must survive on every target: memory, os-cache, periodic-sync, synced or \
             replicated; a target that cannot have it is not measured [default: each as it is]",
        ),
        Arg::new("dry-run")
            .long("dry-run")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help("Shows cells, rounds and expected time, and measures nothing"),
        Arg::new("no-html")
            .long("no-html")
            .action(ArgAction::SetTrue)
            .help("Does not write the HTML report beside the run"),
    ]
}

fn app() -> Command {
    let arg = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("app")
        .about(
            "Serves each experiment's transaction over HTTP, so that any load tool drives it; until Ctrl-C",
        )
        .arg(
            Arg::new("target")
                .required(true)
                .value_name("TARGET")
                .help("The database behind it: a URL, or up:ENGINE for a throwaway server"),
        )
        .arg(arg("listen", "ADDRESS:PORT", "127.0.0.1:8080", "Where it listens; port 0 is any that is free"))
        .arg(
            Arg::new("allow-remote")
                .long("allow-remote")
                .action(ArgAction::SetTrue)
                .help("Lets it listen where other machines reach it: it serves whoever asks"),
        )
        .arg(
            arg(
                "connection",
                "HOW",
                "kept",
                "Database connections: per-request, kept (one for each worker), or pool",
            )
            .value_parser(["per-request", "kept", "pool"])
            .hide_possible_values(true),
        )
        .arg(
            Arg::new("pool")
                .long("pool")
                .value_name("N")
                .help("Connections in the pool, which workers share [default: half as many as workers]"),
        )
        .arg(arg("workers", "N", "16", "Requests that ask the database at once, each in a thread"))
        .arg(arg("queue", "N", "1000", "Requests that may wait for a worker; more get 503"))
        .arg(
            Arg::new("experiment")
                .long("experiment")
                .value_name("NAMES")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(EXPERIMENTS.iter().map(|e| e.info().name)))
                .hide_possible_values(true)
                .help("What is served [default: every experiment that the target can do]"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("EXPERIMENT.AXIS=VALUE")
                .action(ArgAction::Append)
                .help("A value of an axis, such as session.payload=10k [default: each axis's first]"),
        )
        .arg(
            Arg::new("records")
                .long("records")
                .value_name("N")
                .help("Records in each store [default: the experiment's own rule]"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .help("Seed of data and draws [default: from the clock]"),
        )
        .arg(
            Arg::new("durability")
                .long("durability")
                .value_name("CLASS")
                .help("What an acknowledged write must survive [default: as it is]"),
        )
        .arg(arg("header-time", "TIME", "10s", "How long the head of a request may take; 408 after it"))
        .arg(arg("idle-time", "TIME", "60s", "How long a connection may be open without a request"))
}

fn truth() -> Command {
    Command::new("truth")
        .about("Tests Kurabe itself: plants known causes on throwaway servers, and counts how many it names rightly")
        .arg(
            Arg::new("engine")
                .value_name("ENGINE")
                .num_args(0..)
                .help("Which engines, among those of 'kurabe truth' without one [default: all that are installed]"),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .value_name("KIND")
                .value_delimiter(',')
                .help("Which causes [default: all]"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("N")
                .default_value("3")
                .help("How often each cause is planted on each engine"),
        )
        .arg(
            Arg::new("duration")
                .long("duration")
                .value_name("TIME")
                .default_value("2s")
                .help("Time of each trial's measured phase"),
        )
}

fn report() -> Command {
    Command::new("report")
        .about("Writes the report of a run")
        .arg(one_run("The run [default: last]").required(false).default_value("last").hide_default_value(true))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["html", "md", "csv", "json", "ab"])
                .default_value("html")
                .help("Which form: a page with charts, Markdown, CSV, JSON for programs, or the layout of ab"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to ('-': standard output) [default: html beside the run, all others to standard output]"),
        )
        .arg(
            Arg::new("published")
                .long("published")
                .action(ArgAction::SetTrue)
                .conflicts_with("anonymise")
                .help("Lays the published figures faintly under the charts (html)"),
        )
        .args(view())
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
