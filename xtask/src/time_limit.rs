//! A time limit for each test. libtest has none, but names the tests that have been running for over a minute.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What libtest prints of a test that takes long, after [`NAMED_AFTER`].
const SLOW: &str = " has been running for over 60 seconds";
const NAMED_AFTER: Duration = Duration::from_secs(60);
/// The longest that a test may take. The slowest take about two minutes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(420);

/// The tests that take long, and since when they have been named.
#[derive(Clone, Debug, Default)]
pub struct TimeLimit(Arc<Mutex<HashMap<String, Instant>>>);

impl TimeLimit {
    /// Reads a line of libtest.
    pub fn read(&self, line: &str) {
        let Some(rest) = line.strip_prefix("test ") else { return };
        if let Some(name) = rest.strip_suffix(SLOW) {
            self.lock().insert(name.to_owned(), Instant::now());
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            self.lock().remove(name);
        }
    }

    /// A test that has exceeded a limit; it is named once.
    pub fn exceeded(&self, limit: Duration) -> Option<String> {
        let mut slow = self.lock();
        let over = |since: &Instant| since.elapsed() + NAMED_AFTER > limit;
        let name = slow.iter().find(|(_, since)| over(since)).map(|(name, _)| name.clone())?;
        // Its program is ended, and all of its tests with it.
        slow.clear();
        Some(name)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the test program that `cargo` runs. Servers that it started end with their supervisors.
pub fn end_test_program(cargo: u32) {
    for child in children(cargo) {
        let _ = Command::new("kill").args(["-9", &child]).stdin(Stdio::null()).status();
    }
}

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_child = |process: &String| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let of = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        of.and_then(|of| of.trim().parse().ok()) == Some(parent)
    };
    processes.flatten().filter_map(|entry| entry.file_name().into_string().ok()).filter(is_child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_that_exceeds_the_limit_is_named_once() {
        let limit = TimeLimit::default();
        limit.read("test a::b has been running for over 60 seconds");
        limit.read("test c has been running for over 60 seconds");
        limit.read("test c ... ok");
        assert_eq!(limit.exceeded(LIMIT), None);
        assert_eq!(limit.exceeded(NAMED_AFTER), Some("a::b".to_owned()));
        assert_eq!(limit.exceeded(NAMED_AFTER), None);
    }

    #[test]
    fn children_of_a_process_are_found() {
        let mut child = Command::new("sleep").arg("20").spawn().unwrap();
        let found = children(std::process::id());
        let _ = child.kill().and_then(|()| child.wait());
        assert!(found.contains(&child.id().to_string()), "{found:?}");
    }
}
