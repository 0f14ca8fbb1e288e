//! `cargo xtask bench aa --tools`: one server, measured twice. How often would a common rule have called it faster
//! than itself?
//!
//! A common rule is: run a tool once on each of two servers, and the larger result wins. Here both are the same
//! server. Each pair of one-second runs is followed by one run of Kurabe that measures the same server as two targets
//! in as much time. Disturbances of the machine affect both alike.

use super::contest::{Place, Ran};
use super::options::Variables;
use super::peers;
use super::run::{Kurabe, Spread, end, need, primary_results};
use super::server::Server;
use crate::shell::{self, Outcome};

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
    /// Of Kurabe's comparisons, one for each pair: those called different, and the smallest detectable difference of each.
    called: u32,
    detectable: Vec<f64>,
}

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("pairs", "100"), ("engines", "postgres,mysql")])?;
    let pairs = given.number("pairs")?;
    let kurabe = Kurabe::build("pairs")?;
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for name in given.list("engines") {
        match of_engine(&kurabe, &name, pairs) {
            Ok(row) => rows.push(row),
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    println!(
        "\n| server | judged by | pairs | called different | median difference seen | smallest detectable |"
    );
    println!("|---|---|---:|---:|---:|---:|");
    for row in rows {
        println!("{row}");
    }
    end(&problems)
}

fn of_engine(kurabe: &Kurabe, name: &str, pairs: u32) -> Result<String, String> {
    let tool = peers::first(name).ok_or("there is no tool for it here")?;
    need(tool.program[0], tool.program[1])?;
    let server = Server::start(&kurabe.program, name, &[])?;
    let variables = peers::variables(&server, 1);
    let place = Place::new(kurabe, variables);
    for (_, load) in peers::LOADS.iter().filter(|(engine, _)| *engine == name) {
        place.run(load)?;
    }
    let mut tally = Tally::default();
    for pair in 1..=pairs {
        let [a, b] = [(); 2].map(|()| Ok::<f64, String>(place.figures(tool, &Ran::default())?[0]));
        let (a, b) = (a?, b?);
        tally.differences.push(a.max(b) / a.min(b) - 1.0);
        let (called, detectable) = by_us(kurabe, &server)?;
        tally.called += u32::from(called);
        tally.detectable.extend(detectable);
        if pair % 10 == 0 || pair == pairs {
            println!(
                "{name}: {pair} of {pairs} pairs; {} {}, ours {}",
                tool.name,
                tally.by_tool(),
                tally.called
            );
        }
    }
    Ok(tally.rows(&server.version, tool.name))
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
            percent(Spread::of(self.differences.iter().copied()).median),
            self.differences.len(),
            self.called,
            percent(Spread::of(self.detectable.iter().copied()).median),
        )
    }
}

/// Whether Kurabe calls the server faster than itself, and the smallest detectable difference.
fn by_us(kurabe: &Kurabe, server: &Server) -> Result<(bool, Option<f64>), String> {
    let time = format!("{}ms", TIME / ROUNDS / TRIALS);
    let (url, rounds) = (server.url.as_str(), ROUNDS.to_string());
    let mut command = kurabe.command();
    command
        .args(["run", "point-read", url, url, "--quiet", "--no-html", "--clients", "1", "--records", "10k"]);
    shell::run(command.args(["--duration", &time, "--rounds", &rounds]), "kurabe run")?;
    parse(&kurabe.report("json")?)
}

/// The first verdict, and the smallest detectable difference where the report has it.
fn parse(report: &str) -> Result<(bool, Option<f64>), String> {
    let detectable = report.lines().find_map(|line| {
        line.trim().strip_prefix("\"smallest_detectable\":")?.trim().trim_end_matches(',').parse().ok()
    });
    Ok((primary_results(report)?[0], detectable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_parsed_from_report() {
        let report = "  \"verdicts\": [\n {\n \"primary\": true,\n \"result\": \"undecided\",\n \"smallest_detectable\": 0.04,\n";
        assert_eq!(parse(report), Ok((false, Some(0.04))));
        let report = "\"primary\": true,\n\"result\": \"better\",\n\"smallest_detectable\": null,";
        assert_eq!(parse(report), Ok((true, None)));
        assert!(parse("{}").is_err());
    }

    #[test]
    fn differences_called_by_common_rules_are_counted() {
        let tally = Tally { differences: vec![0.01, 0.05, 0.031], called: 1, detectable: vec![0.06] };
        assert_eq!(tally.by_tool(), 2);
        let rows = tally.rows("postgres 15", "pgbench");
        assert!(rows.contains("| 3 | 2 | 3.1 % | – |") && rows.contains("| 3 | 1 | – | 6.0 % |"), "{rows}");
    }
}
