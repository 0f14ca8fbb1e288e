//! The results of all programs, and what is printed of them at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::output::{self, Status};

/// The number of slowest tests that are listed.
const SLOWEST: usize = 20;
/// Modules that take longer are listed.
const LISTED: Duration = Duration::from_secs(6);

/// A test that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    pub program: String,
    pub name: String,
    pub status: Status,
    pub took: Duration,
}

impl fmt::Display for TestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.status {
            Status::Passed => "ok",
            Status::Failed => "FAILED",
        };
        write!(f, "{:>7.1} s  {}: {} ... {how}", self.took.as_secs_f64(), self.program, self.name)
    }
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    tests: Vec<TestResult>,
    /// Tests that were skipped, with their program's label.
    skipped: Vec<(String, String)>,
    /// Lines that say what was skipped, and why.
    skips: Vec<String>,
    /// Failures, with what is known beyond the test's output.
    failures: Vec<String>,
    /// Programs that failed as a whole.
    broken: Vec<String>,
    /// The wall time of each program.
    programs: BTreeMap<String, Duration>,
    /// A line about the servers that were started.
    starts: String,
}

impl Report {
    /// Adds the results of a program's pass, and the skips among the lines of its standard error.
    pub fn pass(&mut self, program: &str, took: Duration, tests: Vec<TestResult>, errors: &[String]) {
        *self.programs.entry(program.to_owned()).or_default() += took;
        for line in errors {
            let Some((test, whole)) = output::skip(line) else { continue };
            self.skips.push(line.clone());
            let entry = (program.to_owned(), test.to_owned());
            if whole && !self.skipped.contains(&entry) {
                self.skipped.push(entry);
            }
        }
        let failed = tests.iter().filter(|test| test.status == Status::Failed);
        self.failures.extend(failed.map(|test| format!("{}: {}", test.program, test.name)));
        self.tests.extend(tests);
    }

    /// Adds a test that ended its program, or because of which it was ended.
    pub fn blamed(&mut self, test: TestResult, why: &str) {
        self.failures.push(format!("{}: {}: {why}", test.program, test.name));
        self.tests.push(test);
    }

    /// Adds a program that failed as a whole.
    pub fn broken(&mut self, program: &str, why: &str) {
        println!("{program} FAILED: {why}");
        self.broken.push(format!("{program}: {why}"));
    }

    /// Reads the lines that the testbed wrote for each start of a server: engine, `own` or `shared`, process.
    pub fn count_starts(&mut self, lines: &str) {
        self.starts = starts(lines);
    }

    /// Passed, failed and skipped: a test of which a part was skipped counts as passed.
    pub fn counts(&self) -> [usize; 3] {
        let of = |status| self.tests.iter().filter(move |test| test.status == status);
        let skipped = |test: &&TestResult| {
            self.skipped.iter().any(|(program, name)| (program, name) == (&test.program, &test.name))
        };
        let skips = of(Status::Passed).filter(skipped).count();
        [of(Status::Passed).count() - skips, of(Status::Failed).count() + self.broken.len(), skips]
    }

    pub fn has_failed(&self) -> bool {
        self.counts()[1] > 0
    }

    /// The closing line.
    pub fn closing(&self) -> String {
        let [passed, failed, skipped] = self.counts();
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    /// Prints everything but the closing line.
    pub fn print(&self) {
        println!("\n{:>8} {:>8} {:>8} {:>9}  program", "passed", "failed", "skipped", "seconds");
        for (program, took) in &self.programs {
            let alone = Self {
                tests: self.tests.iter().filter(|test| test.program == *program).cloned().collect(),
                skipped: self.skipped.clone(),
                ..Self::default()
            };
            let [passed, failed, skipped] = alone.counts();
            println!("{passed:>8} {failed:>8} {skipped:>8} {:>9.1}  {program}", took.as_secs_f64());
        }
        println!("\nthe slowest tests:");
        let mut slowest: Vec<&TestResult> = self.tests.iter().collect();
        slowest.sort_by_key(|test| std::cmp::Reverse(test.took));
        slowest.iter().take(SLOWEST).for_each(|test| println!("{test}"));
        println!("\nminutes of tests by module:");
        for (module, took) in self.modules() {
            println!("{:>9.1}  {module}", took.as_secs_f64() / 60.0);
        }
        if !self.starts.is_empty() {
            println!("\n{}", self.starts);
        }
        if !self.skips.is_empty() {
            println!();
            self.skips.iter().for_each(|line| println!("{line}"));
        }
        if self.has_failed() {
            println!("\nfailures:");
            self.failures.iter().chain(&self.broken).for_each(|line| println!("  {line}"));
        }
    }

    /// The modules whose tests take long, together, the longest first.
    fn modules(&self) -> Vec<(String, Duration)> {
        let mut modules: BTreeMap<String, Duration> = BTreeMap::new();
        for test in &self.tests {
            let module = test.name.split_once("::").map_or("", |(module, _)| module);
            *modules.entry(format!("{}: {module}", test.program)).or_default() += test.took;
        }
        let mut list: Vec<(String, Duration)> =
            modules.into_iter().filter(|(_, took)| *took > LISTED).collect();
        list.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        list
    }
}

/// The number of server starts by engine: `38 servers were started: mysql 12 (3 shared by tests), …`.
fn starts(lines: &str) -> String {
    let mut engines: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for line in lines.lines() {
        let mut words = line.split_whitespace();
        let Some(engine) = words.next() else { continue };
        let counts = engines.entry(engine).or_default();
        counts[0] += 1;
        counts[1] += usize::from(words.next() == Some("shared"));
    }
    if engines.is_empty() {
        return String::new();
    }
    let total: usize = engines.values().map(|counts| counts[0]).sum();
    let each = engines.iter().map(|(engine, [all, shared])| match shared {
        0 => format!("{engine} {all}"),
        _ => format!("{engine} {all} ({shared} shared by tests)"),
    });
    format!("{total} servers were started: {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, status: Status, seconds: u64) -> TestResult {
        TestResult {
            program: "a: tests".to_owned(),
            name: name.to_owned(),
            status,
            took: Duration::from_secs(seconds),
        }
    }

    fn report() -> Report {
        let mut report = Report::default();
        let tests = vec![
            test("web::a", Status::Passed, 5),
            test("web::b", Status::Passed, 4),
            test("c", Status::Failed, 9),
        ];
        let errors =
            ["skipped web::b: no mysql", "skipped web::b: no redis", "skipped a part of web::a: no root"];
        report.pass("a: tests", Duration::from_secs(9), tests, &errors.map(str::to_owned));
        report
    }

    #[test]
    fn skipped_test_has_not_passed_and_partly_skipped_one_has() {
        let report = report();
        assert_eq!(report.counts(), [1, 1, 1]);
        assert_eq!(report.closing(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(report.skips.len(), 3);
        assert_eq!(report.failures, ["a: tests: c"]);
    }

    #[test]
    fn broken_program_and_blamed_test_are_failures() {
        let mut report = report();
        report.broken("b: tests", "it ended (signal: 11)");
        report.blamed(test("e", Status::Failed, 420), "it took too long");
        assert_eq!(report.counts(), [1, 3, 1]);
        assert_eq!(report.failures[1], "a: tests: e: it took too long");
        assert!(!Report::default().has_failed());
    }

    #[test]
    fn times_are_added_by_module() {
        let modules = report().modules();
        let expected = [("a: tests: ", 9), ("a: tests: web", 9)];
        assert_eq!(modules, expected.map(|(name, s)| (name.to_owned(), Duration::from_secs(s))));
    }

    #[test]
    fn server_starts_are_counted_by_engine() {
        let lines = "mysql own 12\nredis shared 13\nmysql shared 14\nmysql own 15\n";
        assert_eq!(
            starts(lines),
            "4 servers were started: mysql 3 (1 shared by tests), redis 1 (1 shared by tests)"
        );
        assert_eq!(starts(""), "");
    }
}
