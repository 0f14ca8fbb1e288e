//! Kurabe as one of the tools.

use std::path::Path;
use std::process::Command;

use super::tools::{Length, Report};

/// Appends the arguments of `kurabe`. A run measures its first cell twice, so each gets half of the time.
pub fn command(command: &mut Command, url: &str, clients: u32, length: Length, runs: &Path) {
    command.env("KURABE_RUNS", runs).args([
        "run",
        "point-read",
        url,
        "--rounds",
        "1",
        "--no-html",
        "--quiet",
    ]);
    command.arg("--clients").arg(clients.to_string());
    match length {
        Length::Whole => command.args(["--duration", "500ms"]),
        Length::Nothing => command.arg(format!("--requests={clients}")),
    };
}

/// Reads the newest run's report as CSV: the mean over the cell and its A/A control.
pub fn read(program: &Path, runs: &Path) -> Result<Report, String> {
    let mut report = Command::new(program);
    report.env("KURABE_RUNS", runs).args(["report", "--format", "csv"]);
    let csv = crate::shell::run(&mut report, "kurabe report")?;
    parse(&csv).ok_or_else(|| format!("a report without results: {csv}"))
}

fn parse(csv: &str) -> Option<Report> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let columns = [column("answers_compared")?, column("ops_per_second")?, column("client_cpu_us_per_op")?];
    let mut sums = [0.0; 3];
    let mut rows = 0.0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum += fields.get(column)?.parse::<f64>().ok()?;
        }
        rows += 1.0;
    }
    (rows > 0.0).then(|| Report { reads: sums[0], per_second: sums[1] / rows, cpu: Some(sums[2] / rows) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_and_aa_control_are_merged() {
        let csv = "run,ops_per_second,client_cpu_us_per_op,answers_compared\na,100,4.0,50\na,300,6.0,60\n";
        let report = parse(csv).unwrap();
        assert_eq!((report.reads, report.per_second, report.cpu), (110.0, 200.0, Some(5.0)));
        assert!(parse("run\n").is_none());
    }
}
