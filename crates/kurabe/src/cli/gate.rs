//! `kurabe compare` and `kurabe gate`.

use super::{complete, option, run, targets, view};
use clap::{Arg, Command, ValueHint};
use std::path::PathBuf;

pub(super) fn compare() -> Command {
    Command::new("compare")
        .about("Compares two runs cell by cell; with --fail-on, says by the exit code whether the second is slower")
        .arg(Arg::new("a").required(true).value_name("BASE").add(complete::runs()).help("The first run"))
        .arg(Arg::new("b").required(true).value_name("NEW").add(complete::runs()).help("The second run"))
        .arg(fail_on())
        .args(files())
        .args(view())
}

pub(super) fn gate() -> Command {
    Command::new("gate")
        .about("Runs a suite and compares the run with an earlier one; the exit code says whether it is slower")
        .arg(
            Arg::new("suite")
                .required(true)
                .value_name("SUITE")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A suite file or a custom workload; options on the command line override it"),
        )
        .arg(targets(false))
        .arg(
            option(
                "against",
                "BASE",
                "The run to compare with: its name, path or 'last'; or a label or a git branch, which mean the \
                 newest complete run of this suite that has it",
            )
            .required(true)
            .add(complete::runs()),
        )
        .arg(fail_on().default_value("slower"))
        .args(files())
        .args(run::axes_of_suites())
        .args(run::own())
        .args(run::record())
        .args(run::fleet())
        .args(run::how())
}

fn fail_on() -> Arg {
    option(
        "fail-on",
        "slower[:PERCENT]",
        "Exit with 6 if a primary metric is slower, or worse, by more than this, and with 7 if that is inconclusive; \
         'slower' is slower:5%",
    )
    .help_heading("Gate")
}

/// Files to write, besides what is printed.
fn files() -> [Arg; 3] {
    let file = |name: &'static str, help: &'static str| {
        option(name, "FILE", help)
            .value_hint(ValueHint::FilePath)
            .value_parser(clap::value_parser!(PathBuf))
            .help_heading("Gate")
    };
    [
        file(
            "markdown",
            "Writes the comparison as Markdown for a pull request ('-': print it instead of tables)",
        ),
        file("junit", "Writes the gate's judgements as JUnit XML; requires --fail-on"),
        file("json", "Writes the comparison as JSON ('-': print it instead of tables)"),
    ]
}
