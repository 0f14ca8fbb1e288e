//! `cargo xtask bench engines`: every experiment on every engine that it is for, as a page of the documentation.
//!
//! The suite `suites/engines.toml` is executed, and docs/engines.md is made of the reports: of each run its tables, what
//! limited it, and on what it is based (settings, durability, machine). The figures are those of one suite, unretouched.
//!
//! - `--only session,kv`: these runs only
//! - `--append true`: after what the page has, so that the suite can be executed in parts, each while the machine is quiet
//! - `--out docs/engines.md`: the page

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;

use super::options::Variables;
use super::run::Kurabe;
use crate::shell::{self, Outcome};

const SUITE: &str = "suites/engines.toml";
const INTRODUCTION: &str = "# Engines

Every experiment on every engine that it is for: one suite on one machine, its reports unretouched. Where an experiment writes, every engine
acknowledges writes that survive a power failure (`--durability synced`), or is left out. The ratios are against the best of each table, with
intervals; [how to read a verdict](verdicts.md) explains them. Where other programs used the processors, the evidence of a bottleneck says so.
Made by

```sh
cargo xtask bench engines
```
";
/// Sections of a report that the page has, beside the tables before them.
const SECTIONS: [&str; 2] = ["## Bottlenecks", "## Basis"];
/// Left out: a sentence for each of 45 pairs of targets. The tables have the ratios with their intervals.
const SENTENCES: &str = "## Verdict";

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("only", ""), ("append", ""), ("out", "docs/engines.md")])?;
    let kurabe = Kurabe::build("engines")?;
    let mut suite = kurabe.command();
    // The page has the command, and no path of this machine.
    suite.arg0("kurabe");
    suite.args(["run", "-f", SUITE, "--no-html", "--export-markdown", "-"]);
    if !given.get("only").is_empty() {
        suite.args(["--only", given.get("only")]);
    }
    // Runs that some targets cannot make end with a code of their own: the table says why.
    let ended = suite.output().map_err(|error| format!("kurabe run: {error}"))?;
    let table = String::from_utf8_lossy(&ended.stdout).into_owned();
    if table.is_empty() {
        return Err(format!(
            "kurabe run ended with {}: {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        ));
    }
    let mut page = if given.get("append").is_empty() {
        INTRODUCTION.to_owned()
    } else {
        fs::read_to_string(given.get("out")).map_err(|error| format!("{}: {error}", given.get("out")))?
    };
    let _ = writeln!(page, "\n{}", lower(&table));
    let mut runs: Vec<_> = fs::read_dir(kurabe.scratch.join("runs"))
        .map_err(|error| format!("the folder of runs: {error}"))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    // Names begin with the time of the run.
    runs.sort();
    for name in runs {
        let report = shell::run(kurabe.command().args(["report", &name, "--format", "md"]), "kurabe report");
        match report {
            Ok(report) => drop(writeln!(page, "\n{}", lower(&shortened(&report)))),
            // A run of which nothing was measured has no report; the table says so.
            Err(error) => println!("{name}: {error}"),
        }
    }
    fs::write(given.get("out"), page).map_err(|error| format!("{}: {error}", given.get("out")))
}

/// A report without its tables of all figures.
fn shortened(report: &str) -> String {
    let mut kept = String::new();
    let (mut before, mut keep) = (true, true);
    for line in report.lines() {
        if line.starts_with("## ") {
            let listed = SECTIONS.contains(&line);
            before &= !listed && line != SENTENCES;
            keep = listed || before;
        }
        if keep && !line.starts_with("Command: ") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept.trim_end().to_owned()
}

/// Headings one level lower: the page has a heading of its own.
fn lower(markdown: &str) -> String {
    markdown
        .lines()
        .map(|line| if line.starts_with('#') { format!("#{line}\n") } else { format!("{line}\n") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_first_tables_and_basis_of_a_report_without_sentences_and_tables_of_all_figures() {
        let report = "# Kv\n\n## Reads at 1 client\n\n| a |\n\n## Verdict\n\n- b\n\n## Reads\n\n| all |\n\n## Basis\n\n- c\n\nCommand: `d`\n";
        let expected = "# Kv\n\n## Reads at 1 client\n\n| a |\n\n## Basis\n\n- c";
        assert_eq!(shortened(report), expected);
        assert!(lower(expected).starts_with("## Kv\n\n### Reads"));
    }
}
