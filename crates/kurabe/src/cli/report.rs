//! `kurabe report`.

use super::{flag, one_run, option, view};
use clap::{Command, ValueHint};
use std::path::PathBuf;

pub(super) fn command() -> Command {
    Command::new("report")
        .about("Writes the report of a run")
        .arg(
            one_run("The run [default: last]").required(false).default_value("last").hide_default_value(true),
        )
        .arg(
            option("format", "FORMAT", "Format: HTML with charts, Markdown, CSV, JSON, the layout of ab, HdrHistogram's percentiles, or the raw windows of all trials as CSV (windows) or Parquet").value_parser(["html", "md", "csv", "json", "ab", "hgrm", "windows", "parquet"]).default_value("html"),
        )
        .arg(
            option("output", "FILE", "Output file ('-': standard output) [default: html and parquet in the run's folder, other formats to \
                     standard output]").short('o').value_hint(ValueHint::FilePath).value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(
            flag("published", "Shows published results in the charts (html)").conflicts_with("anonymise"),
        )
        .args(view())
}
