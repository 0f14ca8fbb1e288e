//! `cargo xtask bench aa --tools`: one server, measured twice. How often would a common rule have called it faster
//! than itself?
//!
//! A common rule is: run a tool once on each of two servers, and the larger result wins. Here both are the same
//! server. Each pair of one-second runs is followed by one run of Kurabe that measures the same server as two targets
//! in as much time. Disturbances of the machine affect both alike.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::peers::server::Server;
use super::peers::tools::{ENGINES, Length, Tool};
use super::{options, program};
use crate::{Outcome, programs, shell};

/// The difference above which the larger result wins.
const DIFFERENCE: f64 = 0.03;
/// The time of two runs of a tool, a second each, in milliseconds.
const TIME: u32 = 2_000;
/// Kurabe's rounds, and trials in each: both targets, and the A/A control.
const ROUNDS: u32 = 6;
const TRIALS: u32 = 3;

#[derive(Default)]
struct Tally {
    /// The relative difference of each pair of the tool's runs.
    differences: Vec<f64>,
    /// Kurabe's results: comparisons, those called different, and the smallest detectable difference of each.
    ours: u32,
    called: u32,
    detectable: Vec<f64>,
}

pub fn run(args: &[String]) -> Outcome {
    let mut pairs = 100_u32;
    let mut engines = vec!["postgres".to_owned(), "mysql".to_owned()];
    let mut known: [(&str, &mut dyn options::Place); 2] =
        [("--pairs", &mut pairs), ("--engines", &mut engines)];
    options::read(args, &mut known)?;
    let program = program()?;
    let scratch = std::env::temp_dir().join(format!("kurabe-pairs-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for name in &engines {
        match of_engine(&program, &scratch, name, pairs) {
            Ok(row) => rows.push(row),
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    println!(
        "\n| server | judged by | pairs | called different | median difference seen | smallest detectable |"
    );
    println!("|---|---|---:|---:|---:|---:|");
    for row in rows {
        println!("{row}");
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn of_engine(program: &Path, scratch: &Path, name: &str, pairs: u32) -> Result<String, String> {
    let engine = ENGINES
        .iter()
        .find(|engine| engine.name == name)
        .ok_or_else(|| "there is no tool for it here".to_owned())?;
    let tool = &engine.tools[0];
    if programs::find(tool.program, &programs::folders()).is_none() {
        return Err(format!(
            "{} is not installed; to get it: apt-get install {}",
            tool.program, tool.package
        ));
    }
    let server = Server::start(program, engine.name, &[])?;
    if let Some(mut load) = (engine.load)(&server) {
        shell::run(&mut load, "loading")?;
    }
    let mut tally = Tally::default();
    for pair in 1..=pairs {
        let [a, b] = [(); 2].map(|()| by_tool(tool, &server, scratch));
        let (a, b) = (a?, b?);
        tally.differences.push(a.max(b) / a.min(b) - 1.0);
        let (called, detectable) = by_us(program, &server, scratch)?;
        tally.ours += 1;
        tally.called += u32::from(called);
        tally.detectable.extend(detectable);
        if pair % 10 == 0 || pair == pairs {
            println!(
                "{name}: {pair} of {pairs} pairs; {} {}, ours {}",
                tool.program,
                tally.by_tool(),
                tally.called
            );
        }
    }
    Ok(tally.rows(&server.version, tool.program))
}

impl Tally {
    fn by_tool(&self) -> usize {
        self.differences.iter().filter(|difference| **difference > DIFFERENCE).count()
    }

    fn rows(&self, server: &str, tool: &str) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        format!(
            "| {server} | {tool}, one run of 1 s each, the larger wins by more than {:.0} % | {} | {} | {} | – |\n\
             | {server} | kurabe, {ROUNDS} rounds in 2 s | {} | {} | – | {} |",
            DIFFERENCE * 100.0,
            self.differences.len(),
            self.by_tool(),
            percent(median(&self.differences)),
            self.ours,
            self.called,
            percent(median(&self.detectable)),
        )
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Transactions per second, as the tool reports them.
fn by_tool(tool: &Tool, server: &Server, scratch: &Path) -> Result<f64, String> {
    let mut command = Command::new(tool.program);
    (tool.command)(server, 1, Length::Whole, &mut command, scratch);
    let said = shell::run(command.stdin(Stdio::null()), tool.program)?;
    let report = (tool.read)(&said).ok_or_else(|| format!("{} said: {said}", tool.program))?;
    Ok(report.per_second)
}

/// Whether Kurabe calls the server faster than itself, and the smallest detectable difference.
fn by_us(program: &Path, server: &Server, scratch: &Path) -> Result<(bool, Option<f64>), String> {
    let time = format!("{}ms", TIME / ROUNDS / TRIALS);
    let kurabe = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).env("KURABE_RUNS", scratch.join("runs")).stdin(Stdio::null());
        shell::run(&mut command, &format!("kurabe {}", arguments[0]))
    };
    let (url, rounds) = (server.url.as_str(), ROUNDS.to_string());
    let how = ["--clients", "1", "--duration", &time, "--rounds", &rounds, "--records", "10k"];
    kurabe(&[&["run", "point-read", url, url, "--quiet", "--no-html"], &how[..]].concat())?;
    let report = kurabe(&["report", "--format", "json"])?;
    parse(&report).ok_or_else(|| "a report without a verdict".to_owned())
}

/// The report is our own format: one `result` for each verdict, on a separate line.
fn parse(report: &str) -> Option<(bool, Option<f64>)> {
    let value = |name: &str| report.lines().find_map(|line| line.trim().strip_prefix(name));
    let result = value("\"result\":")?;
    let detectable =
        value("\"smallest_detectable\":").and_then(|text| text.trim().trim_end_matches(',').parse().ok());
    Some((result.contains("better") || result.contains("worse"), detectable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_parsed_from_report() {
        let report = "  \"verdicts\": [\n {\n \"result\": \"undecided\",\n \"smallest_detectable\": 0.04,\n";
        assert_eq!(parse(report), Some((false, Some(0.04))));
        assert_eq!(parse("\"result\": \"better\",\n\"smallest_detectable\": null,"), Some((true, None)));
        assert_eq!(parse("{}"), None);
    }

    #[test]
    fn differences_called_by_common_rules_are_counted() {
        let tally =
            Tally { differences: vec![0.01, 0.05, 0.031, 0.03], ours: 4, called: 1, detectable: vec![0.06] };
        assert_eq!(tally.by_tool(), 2);
        let rows = tally.rows("postgres 15", "pgbench");
        assert!(rows.contains("| 4 | 2 | 3.1 % | – |") && rows.contains("| 4 | 1 | – | 6.0 % |"), "{rows}");
    }
}
