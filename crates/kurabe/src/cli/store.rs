//! `kurabe runs`.

use super::arguments::{file, file_word, option};
use super::complete;
use clap::{Arg, ArgAction, Command, ValueHint};

pub(super) fn command() -> Command {
    Command::new("runs")
        .about("Lists, removes and annotates recorded runs, and copies them from and to other machines")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("ls")
                .about("Lists runs, the newest first, with labels, commit, verdict and note")
                .arg(option("label", "LABEL", "Only runs with this label"))
                .arg(option(
                    "suite",
                    "NAME",
                    "Only runs of this suite, by its file name without the extension",
                ))
                .arg(
                    option("format", "FORMAT", "text, or a JSON object for each run, one per line")
                        .value_parser(["text", "json"])
                        .default_value("text")
                        .hide_possible_values(true),
                ),
        )
        .subcommand(
            Command::new("rm").about("Removes runs and their reports").arg(several("The runs to remove")),
        )
        .subcommand(
            Command::new("note")
                .about("Shows or replaces the note of a run; an empty text removes it")
                .arg(Arg::new("run").required(true).value_name("RUN").add(complete::runs()).help("The run"))
                .arg(Arg::new("text").value_name("TEXT").help("The new note")),
        )
        .subcommand(
            Command::new("export")
                .about("Writes runs with their notes into one tar archive")
                .arg(several("The runs to export"))
                .arg(
                    file("output", "FILE", "The archive; it is compressed if its name ends with .gz or .tgz")
                        .short('o')
                        .required(true),
                ),
        )
        .subcommand(
            Command::new("import").about("Reads runs from archives, folders of runs, or run files").arg(
                file_word("file", "FILE", "What 'kurabe runs export' made, a run's folder, or a run file")
                    .num_args(1..)
                    .value_hint(ValueHint::AnyPath),
            ),
        )
}

fn several(help: &'static str) -> Arg {
    Arg::new("run")
        .required(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_name("RUN")
        .add(complete::runs())
        .help(help)
}
