//! The fuzz targets with random input. They are tests in modules named `fuzz`; CONTRIBUTING.md says how to add one.

use std::time::Duration;

use crate::shell::{cargo, run};
use crate::{Outcome, in_ci, test};

/// The part of a test's name that makes it a fuzz target.
const TARGETS: &str = "fuzz::";
/// The time of random input, all targets together.
const IN_CI: Duration = Duration::from_secs(60);
const ELSEWHERE: Duration = Duration::from_secs(20);

const ITERATIONS: &str = "BOLERO_RANDOM_ITERATIONS";
const TIME: &str = "BOLERO_RANDOM_TEST_TIME_MS";

/// The environment in which targets run their corpus only, so that the result does not depend on chance; empty if the
/// user chose how long they run.
pub fn corpus_only() -> Vec<(&'static str, String)> {
    let chosen = [ITERATIONS, TIME, "BOLERO_RANDOM_SEED"].iter().any(|name| std::env::var_os(name).is_some());
    if chosen { Vec::new() } else { vec![(ITERATIONS, "0".to_owned())] }
}

/// Runs each target with random input for an equal share of the time. A target that fails prints its input.
pub fn run_targets() -> Outcome {
    let mut list = cargo();
    list.args(["test", "--quiet", "--workspace", "--lib", "--tests", "--", "--list", TARGETS]);
    let count = count(&run(&mut list, "cargo test -- --list")?);
    let all = if in_ci() { IN_CI } else { ELSEWHERE };
    let share = all / count.max(1);
    println!("\nrunning {count} fuzz targets with random input, {} s together", all.as_secs());
    // One after the other: two at once would have less than their share.
    let args = ["--lib", "--tests", "--", "--test-threads=1", TARGETS].map(str::to_owned);
    let (status, _) = test::tests(&args, &[(TIME, share.as_millis().to_string())])?;
    if status.success() {
        return Ok(());
    }
    Err("a fuzz target failed: put the input that it printed into its corpus (CONTRIBUTING.md)".to_owned())
}

/// The number of targets in libtest's list: `NAME: test`.
fn count(list: &str) -> u32 {
    let targets = list.lines().filter(|line| line.contains(TARGETS) && line.ends_with(": test"));
    u32::try_from(targets.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_counted_in_the_list_of_tests() {
        let list = "a::fuzz::any_bytes_are_read: test\n\n1 test, 0 benchmarks\nb::tests::fuzz::c: test\nd::e: test\n";
        assert_eq!(count(list), 2);
    }
}
