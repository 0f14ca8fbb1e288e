//! `cargo xtask test`: builds all tests of a tier once, while set-up installs what they need; runs them, each with a time
//! limit; then examples in the documentation and checks by other programs, and a summary.
//!
//! The default tier proves what docs/ARCHITECTURE.md promises. The full tier (`--full`) adds what takes minutes, needs large
//! installations or heavy libraries: it runs before a release. No test is repeated: one that fails now and then fails the run.

mod build;
mod output;
mod pool;
pub mod runner;
mod start;
mod summary;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::setup::{self, Extent};
use crate::shell::{Outcome, cargo};
use crate::{fuzzing, others};
pub use build::{FULL, Program, Tier, named_only, read_by_lint, repository, selection};
pub use runner::Options;
pub use summary::Report;

impl Tier {
    /// The longest time of a test. The slowest of the default tier take a minute on a busy machine.
    fn limit(self) -> Duration {
        match self {
            Self::Default => Duration::from_secs(300),
            Self::Full => Duration::from_secs(1_200),
        }
    }

    fn extent(self) -> Extent {
        match self {
            Self::Default => Extent::Tests,
            Self::Full => Extent::All,
        }
    }
}

/// A folder for temporary files that outlives a restart of the machine: Filesystem Hierarchy Standard, "/var/tmp".
const ON_DISK: &str = "/var/tmp";

/// Whether a folder is on a file system in memory, or is not there.
fn is_in_memory(folder: &Path) -> bool {
    let kind = Command::new("stat").args(["--file-system", "--format=%T"]).arg(folder).output();
    kind.map_or(true, |kind| kind.stdout.is_empty() || kind.stdout.starts_with(b"tmpfs"))
}

/// `PATH` with PostgreSQL's own programs first: Debian's of the same names are a script that takes 37 ms of processor time to
/// start each, four times what `psql` needs. `None` where there are none.
fn path_with_postgres() -> Option<String> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let version = |folder: &Path| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|folder| version(folder))?.join("bin");
    newest.join("psql").exists().then_some(())?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(newest).chain(std::env::split_paths(&path))).ok()?.into_string().ok()
}

/// The tier and the filters in the arguments.
fn read(args: &[String]) -> Result<(Tier, Vec<String>), String> {
    let tier = if args.iter().any(|arg| arg == FULL) { Tier::Full } else { Tier::Default };
    let filters: Vec<String> = args.iter().filter(|arg| *arg != FULL).cloned().collect();
    match filters.iter().find(|filter| filter.starts_with('-')) {
        Some(option) => Err(format!("unknown option {option}: it takes {FULL}, and parts of tests' names")),
        None => Ok((tier, filters)),
    }
}

pub fn run(args: &[String]) -> Outcome {
    let (tier, filters) = read(args)?;
    let began = Instant::now();
    let setup = thread::spawn(move || (setup::install_for(tier.extent()), began.elapsed()));
    let built = build::build(tier);
    let building = began.elapsed();
    let starts = std::env::temp_dir().join(format!("kurabe-starts-{}", std::process::id()));
    let mut environment = fuzzing::corpus_only();
    environment.push(("KURABE_COUNT_STARTS".to_owned(), starts.display().to_string()));
    // Nothing in memory is as durable as some tests ask for.
    if is_in_memory(&std::env::temp_dir()) && !is_in_memory(ON_DISK.as_ref()) {
        environment.push(("TMPDIR".to_owned(), ON_DISK.to_owned()));
    }
    if setup::in_ci() {
        environment.push(("KURABE_REQUIRE_SERVERS".to_owned(), "1".to_owned()));
    }
    if tier == Tier::Full {
        environment.push(("KURABE_STACKS".to_owned(), "1".to_owned()));
    }
    let mut options = Options { filters, threads: threads(), limit: tier.limit(), environment };
    let mut report = Report::default();
    let programs = match built {
        Ok(programs) => programs,
        Err(why) => {
            let _ = setup.join();
            return Err(why);
        }
    };
    println!("\nbuilt in {:.0} s; running the tests of {} programs", building.as_secs_f64(), programs.len());
    let (unit, with_servers): (Vec<Program>, Vec<Program>) = programs.into_iter().partition(|one| one.unit);
    runner::run(&unit, &options, &mut report);
    let (installed, installing) = setup.join().map_err(|_| "set-up panicked".to_owned())?;
    installed?;
    println!("set-up took {:.0} s beside that", installing.as_secs_f64());
    options.environment.extend(path_with_postgres().map(|path| ("PATH".to_owned(), path)));
    let pool = pool::Pool::start(&with_servers, &mut options.environment);
    runner::run(&with_servers, &options, &mut report);
    drop(pool);
    let mut problems = Vec::new();
    if options.filters.is_empty() {
        problems.extend([examples(tier), others::run()].into_iter().filter_map(Result::err));
        if tier == Tier::Full {
            fuzzing::run_targets(&[unit, with_servers].concat(), &options, &mut report);
        }
    }
    report.count_starts(&std::fs::read_to_string(&starts).unwrap_or_default());
    let _ = std::fs::remove_file(&starts);
    report.print();
    println!(
        "\n{:.0} s, of which {:.0} s for building",
        began.elapsed().as_secs_f64(),
        building.as_secs_f64()
    );
    println!("{}", report.closing());
    if report.has_failed() {
        problems.insert(0, "tests failed".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// The examples in the documentation of the crates that have some (`doctest` in their manifests).
fn examples(tier: Tier) -> Outcome {
    println!("\nexamples in the documentation:");
    let mut command = cargo();
    command.args(["test", "--doc", "--quiet"]).args(selection(tier)).current_dir(repository());
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| format!("cargo test --doc: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("examples in the documentation failed ({status})")) }
}

/// The number of concurrent tests: one more than processors, since tests wait for servers a quarter of their time. Never one
/// alone, which prints its lines in two parts.
fn threads() -> usize {
    let set = std::env::var("RUST_TEST_THREADS").ok().and_then(|number| number.parse().ok());
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    set.unwrap_or_else(|| processors() + 1).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_tier_and_filters() {
        let read = |args: &[&str]| read(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]), Ok((Tier::Default, vec![])));
        assert_eq!(read(&["copy", "--full"]), Ok((Tier::Full, vec!["copy".to_owned()])));
        assert!(read(&["--strict"]).unwrap_err().contains("--strict"));
    }
}
