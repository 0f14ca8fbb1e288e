//! `cargo xtask test`: set-up, all tests of the workspace with live output, builds with fewer engines, fuzz targets with
//! random input, checks by other programs, and a summary.
//!
//! Many tests run servers and check measurements, two at a time on two processors that may have other work. If
//! all tests are run, the few that fail are run once more alone. A second failure counts. A test that then passes is
//! flaky: the last line names it, and `--strict` fails the run. Each test has a [time limit](crate::time_limit).

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::setup::STACKS;
use crate::shell::cargo;
use crate::time_limit::{self, TimeLimit};
use crate::{Outcome, fuzzing, in_ci, others, setup};

/// The option with which flaky tests fail.
const STRICT: &str = "--strict";
/// The maximum number of failures for a second run.
const AGAIN: usize = 5;

pub fn run(args: &[String]) -> Outcome {
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let (strict, stacks) = (has(STRICT), has(STACKS));
    setup::run(&if stacks { vec![STACKS.to_owned()] } else { Vec::new() })?;
    let started = Instant::now();
    let args: Vec<String> =
        args.iter().filter(|arg| ![STRICT, STACKS].contains(&arg.as_str())).cloned().collect();
    let mut environment = fuzzing::corpus_only();
    if stacks {
        environment.push(("KURABE_STACKS", "1".to_owned()));
    }
    let (mut status, mut tally) = tests(&args, &environment)?;
    let mut flaky = Vec::new();
    if let Some(names) = tally.to_repeat().filter(|_| args.is_empty()) {
        println!("\nrepeating alone: {}", names.join(", "));
        let only = ["--", "--exact", "--test-threads=1"].map(str::to_owned);
        let (again, alone) = tests(&[&only, &names[..]].concat(), &environment)?;
        flaky = tally.passed_alone(&alone);
        if tally.failures.is_empty() {
            status = again;
        }
    }
    let mut problems = Vec::new();
    if !status.success() {
        problems.push(format!("cargo test ended with {status}"));
    } else if args.is_empty() {
        problems.extend(
            [fewer_engines(), fuzzing::run_targets(), others::run()].into_iter().filter_map(Result::err),
        );
    }
    println!("\n{} in {:.0} s", tally.summary(), started.elapsed().as_secs_f32());
    for line in tally.skips.iter().chain(&tally.failures) {
        println!("  {line}");
    }
    if let Some(line) = conclude(problems, &flaky, strict)? {
        println!("{line}");
    }
    Ok(())
}

/// The last line, which names the flaky tests, if any; an error if there is a problem, or a flaky test under `--strict`.
fn conclude(mut problems: Vec<String>, flaky: &[String], strict: bool) -> Result<Option<String>, String> {
    if flaky.is_empty() {
        return if problems.is_empty() { Ok(None) } else { Err(problems.join("; ")) };
    }
    let line = format!("flaky, failed among others and passed alone: {}", flaky.join(", "));
    if problems.is_empty() && !strict {
        return Ok(Some(line));
    }
    if strict {
        problems.push("--strict was given".to_owned());
    }
    problems.push(line);
    Err(problems.join("; "))
}

/// Combinations of engines that must compile; every engine is on by default.
const FEWER: [&str; 1] = ["sqlite,postgres,mysql"];

/// Checks the program with fewer engines than by default.
fn fewer_engines() -> Outcome {
    for features in FEWER {
        println!("\nchecking kurabe with the engines '{features}'");
        let mut command = cargo();
        let args = ["check", "--locked", "-p", "kurabe", "--no-default-features", "--features", features];
        let status = command.args(args).status();
        let status = status.map_err(|error| format!("cargo check: {error}"))?;
        if !status.success() {
            return Err(format!("kurabe does not compile with the engines '{features}': {status}"));
        }
    }
    Ok(())
}

/// Runs `cargo test` with these arguments and variables, and passes its output on.
pub fn tests(args: &[String], environment: &[(&str, String)]) -> Result<(ExitStatus, Tally), String> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(args);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    if in_ci() {
        command.env("KURABE_REQUIRE_SERVERS", "1");
    }
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("cargo test: {error}"))?;
    let limit = TimeLimit::default();
    let [of_out, of_err] = [limit.clone(), limit.clone()];
    let out = child.stdout.take().map(|pipe| thread::spawn(move || pass(pipe, std::io::stdout(), &of_out)));
    let err = child.stderr.take().map(|pipe| thread::spawn(move || pass(pipe, std::io::stderr(), &of_err)));
    let (ended, ending) = channel::<()>();
    let cargo = child.id();
    let watch = thread::spawn(move || {
        let mut exceeded = Vec::new();
        while ending.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            if let Some(name) = limit.exceeded(time_limit::LIMIT) {
                time_limit::end_test_program(cargo);
                exceeded.push(format!(
                    "test {name} exceeded {} s; its program was ended",
                    time_limit::LIMIT.as_secs()
                ));
            }
        }
        exceeded
    });
    let status = child.wait().map_err(|error| format!("cargo test: {error}"))?;
    drop(ended);
    let mut tally = Tally { failures: watch.join().unwrap_or_default(), ..Tally::default() };
    for part in [out, err].into_iter().flatten() {
        tally.add(part.join().unwrap_or_default());
    }
    Ok((status, tally))
}

/// The results in the tests' output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Test programs that began, and those that ended.
    begun: u64,
    ended: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
    skips: Vec<String>,
}

impl Tally {
    /// Parses a line of libtest: `test NAME ... FAILED`, `test result: ok. 3 passed; 0 failed; …`; or of the testbed:
    /// `skipped TEST: REASON`, which may share a line with libtest's output.
    fn read(&mut self, line: &str) {
        let line = plain(line);
        if line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")) {
            self.begun += 1;
        } else if let Some((_, counts)) = line.split_once("test result: ") {
            self.ended += 1;
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
        self.begun += other.begun;
        self.ended += other.ended;
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
    }

    /// Names of the failed tests, if every program ended, each counted failure has a name, and they are few.
    fn to_repeat(&self) -> Option<Vec<String>> {
        let counted = self.begun == self.ended && u64::try_from(self.failures.len()) == Ok(self.failed);
        let few = (1..=AGAIN).contains(&self.failures.len());
        (counted && few).then(|| self.failures.iter().map(|line| name(line).to_owned()).collect())
    }

    /// Removes tests from the failures that failed before and passed in the second run; returns their names. Nothing
    /// is removed if the second run is incomplete.
    fn passed_alone(&mut self, alone: &Self) -> Vec<String> {
        if alone.begun != alone.ended || alone.passed + alone.failed < self.failed {
            return Vec::new();
        }
        let (failures, passed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.failures).into_iter().partition(|line| alone.failures.contains(line));
        self.failures = failures;
        self.passed += passed.len() as u64;
        self.failed -= passed.len() as u64;
        passed.iter().map(|line| name(line).to_owned()).collect()
    }

    fn summary(&self) -> String {
        let Self { passed, failed, ignored, skips, .. } = self;
        let skipped = match skips.len() {
            0 => String::new(),
            n => format!(", {n} skipped without a server"),
        };
        format!("{passed} tests passed, {failed} failed, {ignored} ignored{skipped}")
    }
}

/// The test's name in a line of libtest: `test NAME ... FAILED`.
fn name(line: &str) -> &str {
    line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")).map_or(line, |(name, _)| name)
}

/// Copies lines as they come, and counts.
fn pass(from: impl Read, mut to: impl Write, limit: &TimeLimit) -> Tally {
    let mut tally = Tally::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = to.write_all(&line).and_then(|()| to.flush());
        let text = String::from_utf8_lossy(&line);
        tally.read(text.trim_end());
        limit.read(&plain(text.trim_end()));
        line.clear();
    }
    tally
}

/// A line without the escape sequences for colour.
fn plain(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_adds_up_results_of_test_programs() {
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

    fn told(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally
    }

    const TWO_OF_THREE: [&str; 5] = [
        "running 3 tests",
        "test a ... ok",
        "test b::c ... FAILED",
        "test d ... FAILED",
        "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
    ];

    #[test]
    fn test_that_passes_alone_is_reported_as_flaky() {
        let mut tally = told(&TWO_OF_THREE);
        assert_eq!(tally.to_repeat().unwrap(), ["b::c", "d"]);
        let again = told(&[
            "running 2 tests",
            "test b::c ... ok",
            "test d ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.1s",
        ]);
        assert_eq!(tally.passed_alone(&again), ["b::c"]);
        assert_eq!((tally.passed, tally.failed), (2, 1));
        assert_eq!(tally.failures, ["test d ... FAILED"]);
    }

    #[test]
    fn last_line_names_flaky_tests_and_strict_makes_them_an_error() {
        let (none, flaky, problem) = (Vec::new, ["b::c".to_owned()], || vec!["cargo test ended".to_owned()]);
        let line = "flaky, failed among others and passed alone: b::c";
        assert_eq!(conclude(none(), &[], true), Ok(None));
        assert_eq!(conclude(none(), &flaky, false), Ok(Some(line.to_owned())));
        assert_eq!(conclude(none(), &flaky, true), Err(format!("--strict was given; {line}")));
        assert_eq!(conclude(problem(), &[], false), Err("cargo test ended".to_owned()));
        assert_eq!(conclude(problem(), &flaky, false), Err(format!("cargo test ended; {line}")));
    }

    #[test]
    fn test_without_rerun_stays_failed() {
        let none = ["running 0 tests", "test result: ok. 0 passed; 0 failed; 0 ignored"];
        let ended_early = ["running 2 tests", "test b::c ... ok"];
        for again in [&none, &ended_early] {
            let mut tally = told(&TWO_OF_THREE);
            assert!(tally.passed_alone(&told(again)).is_empty());
            assert_eq!(tally.failures.len(), 2);
        }
    }

    #[test]
    fn no_rerun_after_crash_or_many_failures() {
        assert_eq!(told(&TWO_OF_THREE[..4]).to_repeat(), None);
        let crashed = ["running 1 test", "error: test failed (signal: 11)"];
        assert_eq!(told(&[&TWO_OF_THREE[..], &crashed].concat()).to_repeat(), None);
        let many = ["test x ... FAILED"; AGAIN + 1];
        let end = ["running 6 tests", "test result: FAILED. 0 passed; 6 failed; 0 ignored"];
        assert_eq!(told(&[&many[..], &end].concat()).to_repeat(), None);
        assert_eq!(
            told(&["running 1 test", "test a ... ok", "test result: ok. 1 passed; 0 failed"]).to_repeat(),
            None
        );
    }
}
