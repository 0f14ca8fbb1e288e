//! `kurabe report`.

use super::{one_run, view};
use clap::{Arg, ArgAction, Command, ValueHint};
use std::path::PathBuf;

pub(super) fn command() -> Command {
    Command::new("report")
        .about("Writes the report of a run")
        .arg(
            one_run("The run [default: last]").required(false).default_value("last").hide_default_value(true),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["html", "md", "csv", "json", "ab", "hgrm"])
                .default_value("html")
                .help("Format: HTML with charts, Markdown, CSV, JSON, the layout of ab, or HdrHistogram's percentiles"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help(
                    "Output file ('-': standard output) [default: html in the run's folder, other formats to \
                     standard output]",
                ),
        )
        .arg(
            Arg::new("published")
                .long("published")
                .action(ArgAction::SetTrue)
                .conflicts_with("anonymise")
                .help("Shows published results in the charts (html)"),
        )
        .args(view())
}
