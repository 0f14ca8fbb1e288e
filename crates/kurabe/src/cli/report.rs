//! `kurabe report`.

use super::arguments::{export_html, file, flag, one_run, option, view};
use clap::Command;

pub(super) fn command() -> Command {
    Command::new("report")
        .about("Shows a run in the terminal, or writes its report in another format")
        .arg(
            one_run("Name of the run or a prefix of it, or a path [default: the newest]").required(false).default_value("last").hide_default_value(true),
        )
        .arg(
            option("format", "FORMAT", "Format: text for the terminal, HTML with charts, Markdown, CSV, JSON, HdrHistogram's percentiles, OpenMetrics (for Prometheus), or the raw windows of all trials as CSV (windows) [default: as the name of --output ends, else text]").value_parser(["text", "html", "md", "csv", "json", "hgrm", "openmetrics", "windows"]),
        )
        .arg(
            file("output", "FILE", "Output file ('-': standard output) [default: html in the run's folder, other formats to \
                     standard output]").short('o'),
        )
        .arg(
            flag("published", "Shows published results in the charts (html)").conflicts_with("anonymise"),
        )
        .arg(export_html().conflicts_with("format"))
        .args(view())
}
