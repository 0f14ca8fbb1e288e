//! The fuzz targets with random input. They are tests in modules named `fuzz`; CONTRIBUTING.md says how to add one.

use std::time::Duration;

use crate::test::{Options, Program, Report, runner};

/// The part of a test's name that makes it a fuzz target.
const TARGETS: &str = "fuzz::";
/// The time of random input, all targets together.
const ALL: Duration = Duration::from_secs(300);

const ITERATIONS: &str = "BOLERO_RANDOM_ITERATIONS";
const TIME: &str = "BOLERO_RANDOM_TEST_TIME_MS";

/// The environment in which targets run their corpus only, so that the result does not depend on chance; empty if the
/// user chose how long they run.
pub fn corpus_only() -> Vec<(String, String)> {
    let chosen = [ITERATIONS, TIME, "BOLERO_RANDOM_SEED"].iter().any(|name| std::env::var_os(name).is_some());
    if chosen { Vec::new() } else { vec![(ITERATIONS.to_owned(), "0".to_owned())] }
}

/// Runs each target with random input for an equal share of the time. A target that fails prints its input, which belongs
/// into its corpus.
pub fn run_targets(programs: &[Program], options: &Options, report: &mut Report) {
    let mut options = options.clone();
    options.filters = vec![TARGETS.to_owned()];
    let count = runner::count(programs, &options);
    let share = ALL / count.max(1);
    println!("\nrunning {count} fuzz targets with random input, {} s together", ALL.as_secs());
    options.environment.retain(|(name, _)| name != ITERATIONS);
    options.environment.push((TIME.to_owned(), share.as_millis().to_string()));
    // One after the other: two at once would have less than their share.
    options.threads = 1;
    runner::run(programs, &options, report);
}
