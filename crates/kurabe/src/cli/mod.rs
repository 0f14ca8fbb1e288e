//! The command line, made from the registries: an experiment's axes are its options.

mod agent;
mod app;
mod brief;
mod capture;
mod claims;
mod compare;
mod complete;
mod copy;
mod gate;
mod listen;
mod measurement;
mod renamed;
mod report;
mod run;
mod selftest;
mod serve;
mod stack;
mod store;
mod wire;

pub(crate) use brief::{brief, meant, without_all};
pub(crate) use complete::{answer_shell, script};
pub(crate) use gate::{PREVIOUS, as_run};
pub(crate) use renamed::renamed;
pub(crate) use run::{PGBENCH, REPLAY, suite_axes};

use crate::{exit, settings};
use clap::{Arg, ArgAction, Command, ValueHint};
use kurabe_report::Language;
use std::path::PathBuf;

/// The command line of the program.
pub(crate) fn command() -> Command {
    Command::new("kurabe")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compares how an application's way of using a database performs, on which database, and why")
        .after_help(format!("{}\n\n{}", exit::HELP, settings::HELP))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
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
                .arg(crate::timeout::option())
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

pub(crate) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    // Refused by the option's own parser, with its name, and not as an unknown option.
    let arg = Arg::new(name).long(name).value_name(value).help(help);
    if matches!(value, "TIME" | "PERCENT") {
        arg.allow_hyphen_values(true)
    } else {
        arg.allow_negative_numbers(true)
    }
}

/// An option without a value.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// `--no-html`.
fn no_html() -> Arg {
    flag("no-html", "Do not write the HTML report")
}

/// `--otlp`.
fn otlp() -> Arg {
    option(
        "otlp",
        "URL",
        "OpenTelemetry collector that receives the run at its end, by OTLP over HTTP (http://localhost:4318); \
         OTEL_EXPORTER_OTLP_HEADERS has further fields, TRACEPARENT the span that the run is a child of",
    )
    .value_hint(ValueHint::Url)
}

/// `--log-format`.
fn log_format() -> Arg {
    option(
        "log-format",
        "FORMAT",
        "Progress and messages on standard error: text, or JSON objects, one per line",
    )
    .value_parser(["text", "json"])
    .hide_possible_values(true)
}

/// An option whose value is a file.
fn file(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_hint(ValueHint::FilePath).value_parser(clap::value_parser!(PathBuf))
}

/// A required word of the command line that is a file.
fn file_word(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let arg = Arg::new(name).required(true).value_name(value).help(help);
    arg.value_hint(ValueHint::FilePath).value_parser(clap::value_parser!(PathBuf))
}

/// A file to which a command also writes its result: `--export-json` and the like.
fn export(name: &'static str, help: &'static str) -> Arg {
    file(name, "FILE", help).help_heading("Results")
}

fn export_json() -> Arg {
    export("export-json", "Writes the result as JSON ('-': print only that)")
}

fn export_markdown() -> Arg {
    export("export-markdown", "Writes the result as Markdown ('-': print only that)")
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
        flag(
            "anonymise",
            "Names engines 'database A', 'database B' and removes versions, URLs, settings, error texts \
                 and the command line; results and verdicts stay",
        )
        .alias("anonymize")
        .help_heading(heading),
        option(
            "leave-out",
            "TARGET",
            "Leaves out a target, by its name in the run, or all targets of an engine, by the engine's \
                 name; may be given several times",
        )
        .action(ArgAction::Append)
        .help_heading(heading),
    ]
}

fn one_run(help: &'static str) -> Arg {
    Arg::new("run").required(true).value_name("RUN").add(complete::runs()).help(help)
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_valid() {
        super::command().debug_assert();
    }
}
