//! Arguments that commands share.

use super::complete;
use crate::standard_input;
use clap::{Arg, ArgAction, ValueHint};
use std::path::PathBuf;

pub(super) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    // Refused by the option's own parser, with its name, and not as an unknown option.
    let arg = Arg::new(name).long(name).value_name(value).help(help);
    if matches!(value, "TIME" | "PERCENT") {
        arg.allow_hyphen_values(true)
    } else {
        arg.allow_negative_numbers(true)
    }
}

/// An option with these values, of which the first one is the default.
pub(super) fn choice<const N: usize>(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    values: [&'static str; N],
) -> Arg {
    option(name, value, help).value_parser(values).default_value(values[0])
}

/// An option whose value may have a password: `-` reads it from standard input.
pub(super) fn secret(arg: Arg) -> Arg {
    arg.value_parser(standard_input::value)
}

/// An option without a value.
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// `--no-html`.
pub(super) fn no_html() -> Arg {
    flag("no-html", "Do not write the HTML report")
}

/// `--log-format`.
pub(super) fn log_format() -> Arg {
    option(
        "log-format",
        "FORMAT",
        "Progress and messages on standard error: text, or JSON objects, one per line",
    )
    .value_parser(["text", "json"])
    .hide_possible_values(true)
}

/// An option whose value is a file.
pub(super) fn file(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_hint(ValueHint::FilePath).value_parser(clap::value_parser!(PathBuf))
}

/// A required word of the command line that is a file.
pub(super) fn file_word(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let arg = Arg::new(name).required(true).value_name(value).help(help);
    arg.value_hint(ValueHint::FilePath).value_parser(clap::value_parser!(PathBuf))
}

/// A file to which a command also writes its result: `--export-json` and the like.
pub(super) fn export(name: &'static str, help: &'static str) -> Arg {
    file(name, "FILE", help).help_heading("Results")
}

pub(super) fn export_json() -> Arg {
    export("export-json", "Writes the result as JSON ('-': print only that)")
}

pub(super) fn export_markdown() -> Arg {
    export("export-markdown", "Writes the result as Markdown ('-': print only that)")
}

pub(super) fn export_html() -> Arg {
    export("export-html", "Writes the result as a page ('-': print only that)")
}

/// `--timeout`.
pub(super) fn timeout() -> Arg {
    let help = "Time limit of connecting to a server, and of each reply, however it arrives [default: 30s]";
    option("timeout", "TIME", help)
}

/// A URL of a database, which may have a password: `-` reads it from standard input.
pub(super) fn target(arg: Arg) -> Arg {
    secret(arg).add(complete::targets())
}

pub(super) fn targets(required: bool) -> Arg {
    target(Arg::new("target"))
        .value_name("TARGET")
        .num_args(if required { 1.. } else { 0.. })
        .required(required)
        .help(
            "Database URLs, or up:ENGINE for a throwaway server; see 'kurabe list'. '-' is the next line of standard input, \
             for a URL with a password [default: sqlite:]",
        )
}

/// Options for the contents of a report.
pub(super) fn view() -> [Arg; 2] {
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

pub(super) fn one_run(help: &'static str) -> Arg {
    Arg::new("run").required(true).value_name("RUN").add(complete::runs()).help(help)
}
