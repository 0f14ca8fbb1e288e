//! Kurabe as one of the tools.

use std::process::Command;

use super::super::csv::Table;
use super::super::run::Kurabe;
use super::tools::{Length, Report};

/// Appends the arguments of `kurabe`. A run measures its first cell twice, so each gets half of the time.
pub fn command(command: &mut Command, url: &str, clients: u32, length: Length) {
    command.args(["run", "point-read", url, "--rounds", "1", "--no-html", "--quiet"]);
    command.arg("--clients").arg(clients.to_string());
    match length {
        Length::Whole => command.args(["--duration", "500ms"]),
        Length::Nothing => command.arg(format!("--requests={clients}")),
    };
}

/// Reads the newest run's report: the mean over the cell and its A/A control.
pub fn read(kurabe: &Kurabe) -> Result<Report, String> {
    let table = Table::read(&kurabe.report("csv")?)?;
    Ok(Report {
        reads: table.sum("answers_compared")?,
        per_second: table.mean("ops_per_second")?,
        cpu: Some(table.mean("client_cpu_us_per_op")?),
    })
}
