//! `cargo xtask test`: set-up, then all tests of the workspace with their output as it comes, and a summary.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::{Outcome, in_ci, setup};

pub fn run(args: &[String]) -> Outcome {
    setup::run(&[])?;
    let started = Instant::now();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(["test", "--workspace", "--no-fail-fast"]).args(args);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    if in_ci() {
        command.env("KURABE_REQUIRE_SERVERS", "1");
    }
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("cargo test: {error}"))?;
    let out = child.stdout.take().map(|pipe| thread::spawn(|| pass(pipe, std::io::stdout())));
    let err = child.stderr.take().map(|pipe| thread::spawn(|| pass(pipe, std::io::stderr())));
    let status = child.wait().map_err(|error| format!("cargo test: {error}"))?;
    let mut tally = Tally::default();
    for part in [out, err].into_iter().flatten() {
        tally.add(part.join().unwrap_or_default());
    }
    println!("\n{} in {:.0} s", tally.summary(), started.elapsed().as_secs_f32());
    for line in tally.skips.iter().chain(&tally.failures) {
        println!("  {line}");
    }
    if status.success() { Ok(()) } else { Err(format!("cargo test ended with {status}")) }
}

/// What the tests' output says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
    skips: Vec<String>,
}

impl Tally {
    /// Reads a line as libtest prints it: `test NAME ... FAILED`, `test result: ok. 3 passed; 0 failed; …`; or as the
    /// testbed does: `skipped TEST: REASON`, which may share a line with what libtest was about to say.
    fn read(&mut self, line: &str) {
        let line = plain(line);
        if let Some((_, counts)) = line.split_once("test result: ") {
            for part in counts.split([';', '.']) {
                let mut words = part.split_whitespace();
                let number = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
                match words.next() {
                    Some("passed") => self.passed += number,
                    Some("failed") => self.failed += number,
                    Some("ignored") => self.ignored += number,
                    _ => {}
                }
            }
        } else if line.starts_with("test ") && line.ends_with("... FAILED") {
            self.failures.push(line);
        } else if let Some(at) = line.find("skipped ").filter(|at| *at == 0 || line[..*at].ends_with("... "))
        {
            self.skips.push(line[at..].to_owned());
        }
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
    }

    fn summary(&self) -> String {
        let Self { passed, failed, ignored, skips, .. } = self;
        let skipped = match skips.len() {
            0 => String::new(),
            n => format!(", {n} skipped for want of a server"),
        };
        format!("{passed} tests passed, {failed} failed, {ignored} ignored{skipped}")
    }
}

/// Copies lines as they come, and counts.
fn pass(from: impl Read, mut to: impl Write) -> Tally {
    let mut tally = Tally::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = to.write_all(&line).and_then(|()| to.flush());
        tally.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    tally
}

/// A line without the escape sequences that colour it.
fn plain(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_adds_up_what_the_test_programs_say() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test b ... \x1b[31mFAILED\x1b[m",
            "test result: \x1b[31mFAILED\x1b[m. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "skipped c: postgres is not installed: no program",
            "test d ... skipped d: mysql is not installed: no program",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.33s",
            "a line about skipped things",
        ] {
            tally.read(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (7, 1, 4));
        assert_eq!(tally.failures, ["test b ... FAILED"]);
        assert_eq!(tally.skips.len(), 2);
        assert!(tally.skips[1].starts_with("skipped d: mysql"));
    }
}
