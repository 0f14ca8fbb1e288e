//! What libtest prints: a line for each test that has ended, and at the end the output of those that failed.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The result of a test, as libtest prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Passed,
    Failed,
}

impl Status {
    fn of(text: &str) -> Option<Self> {
        match text.split(',').next()? {
            "ok" => Some(Self::Passed),
            // A test that is never started proves nothing.
            "FAILED" | "ignored" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// Reads libtest's lines. A line of another program may come between a test's name and its result.
#[derive(Debug, Default)]
pub struct Reader {
    /// The test whose result follows.
    waiting: Option<String>,
}

impl Reader {
    /// The test that a line ends, and its result.
    pub fn read(&mut self, line: &str) -> Option<(String, Status)> {
        if let Some((name, rest)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            let name = name.strip_suffix(" - should panic").unwrap_or(name).to_owned();
            let status = Status::of(rest);
            if status.is_none() {
                self.waiting = Some(name);
                return None;
            }
            return status.map(|status| (name, status));
        }
        let status = Status::of(line)?;
        self.waiting.take().map(|name| (name, status))
    }
}

/// The names in the answer to `--list --format terse`, in the order in which libtest starts the tests.
pub fn names(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// A skip on standard error: `skipped TEST: REASON`, or `skipped a part of TEST: REASON`. The test, and whether all of it was
/// skipped.
pub fn skip(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix("skipped ")?;
    let (what, _) = rest.split_once(": ").filter(|(what, _)| !what.is_empty())?;
    let part = what.strip_prefix("a part of ");
    Some((part.unwrap_or(what), part.is_none()))
}

/// The messages of the failed tests among a program's lines.
pub fn failures(lines: &[String]) -> &[String] {
    let from = lines.iter().position(|line| line == "failures:").unwrap_or(lines.len());
    let to = lines.iter().rposition(|line| line.starts_with("test result: ")).unwrap_or(lines.len());
    &lines[from..to.max(from)]
}

/// When each test began. libtest does not print it, but starts tests in the order of its list, as many at once as it has
/// threads: the next one starts when one ends.
#[derive(Debug)]
pub struct Clock {
    next: VecDeque<String>,
    running: HashMap<String, Instant>,
}

impl Clock {
    pub fn start(names: &[String], threads: usize, now: Instant) -> Self {
        let mut clock = Self { next: names.to_vec().into(), running: HashMap::new() };
        (0..threads).for_each(|_| clock.begin_next(now));
        clock
    }

    fn begin_next(&mut self, now: Instant) {
        if let Some(name) = self.next.pop_front() {
            self.running.insert(name, now);
        }
    }

    /// How long a test ran that ends now.
    pub fn end(&mut self, name: &str, now: Instant) -> Duration {
        let began = self.running.remove(name);
        self.begin_next(now);
        began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }

    /// The tests that run now.
    pub fn running(&self) -> Vec<String> {
        let mut names: Vec<String> = self.running.keys().cloned().collect();
        names.sort();
        names
    }

    /// The tests that have been running for longer than a limit.
    pub fn over(&self, limit: Duration, now: Instant) -> Vec<String> {
        let over = |began: &&Instant| now.saturating_duration_since(**began) > limit;
        let mut names: Vec<String> =
            self.running.iter().filter(|(_, began)| over(began)).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// The number of tests that have not ended.
    pub fn left(&self) -> usize {
        self.next.len() + self.running.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Vec<(String, Status)> {
        let mut reader = Reader::default();
        lines.iter().filter_map(|line| reader.read(line)).collect()
    }

    #[test]
    fn results_are_read_also_with_lines_of_others_between() {
        let found = read(&[
            "running 5 tests",
            "test a ... ok",
            "ok",
            "test b::c ... FAILED",
            "test d - should panic ... ok",
            "test e ... ignored, it is slow",
            "test f ... a server says: hello",
            "more of it",
            "FAILED",
            "test g has been running for over 60 seconds",
            "test result: FAILED. 2 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ]);
        let expected = [
            ("a", Status::Passed),
            ("b::c", Status::Failed),
            ("d", Status::Passed),
            ("e", Status::Failed),
            ("f", Status::Failed),
        ];
        assert_eq!(found, expected.map(|(name, status)| (name.to_owned(), status)));
    }

    #[test]
    fn list_names_tests_and_no_benchmarks() {
        assert_eq!(names("a::b: test\nc: benchmark\nd: test\n"), ["a::b", "d"]);
    }

    #[test]
    fn skip_names_its_test_and_how_much_of_it() {
        assert_eq!(skip("skipped web::a: mysql is not installed: no program"), Some(("web::a", true)));
        assert_eq!(skip("skipped a part of web::a: no root"), Some(("web::a", false)));
        assert_eq!(skip("a line about skipped things: x"), None);
    }

    #[test]
    fn messages_of_failures_are_found() {
        let lines = ["running 1 test", "test a ... FAILED", "", "failures:", "", "---- a stdout ----", "why"];
        let lines: Vec<String> =
            lines.iter().chain(&["test result: FAILED."]).map(|l| (*l).to_owned()).collect();
        assert_eq!(failures(&lines), &lines[3..7]);
        assert!(failures(&lines[..2]).is_empty());
    }

    #[test]
    fn test_begins_when_one_before_it_ends() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut clock = Clock::start(&names, 2, began);
        assert_eq!((clock.running(), clock.left()), (vec!["a".to_owned(), "b".to_owned()], 4));
        assert_eq!(clock.end("b", at(3)), Duration::from_secs(3));
        assert_eq!(clock.end("c", at(4)), Duration::from_secs(1));
        assert_eq!(clock.over(Duration::from_secs(4), at(5)), ["a"]);
        assert_eq!(clock.end("d", at(9)), Duration::from_secs(5));
        assert_eq!((clock.running(), clock.left()), (vec!["a".to_owned()], 1));
    }
}
