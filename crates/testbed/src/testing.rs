//! Servers for the tests of all crates, or a visible skip.
//!
//! ```no_run
//! # use kurabe_testbed::testing;
//! let Some(server) = testing::server("postgres") else { return };
//! println!("{}", server.url());
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::{Server, StartOptions, TestbedError, start};

/// If this is set (`cargo xtask test` does under `CI=true`), a missing server fails the test.
pub const REQUIRE: &str = "KURABE_REQUIRE_SERVERS";

/// A server with default settings; `None`, and a line on standard error, if it is not installed.
///
/// # Panics
/// If it is installed and does not start, or is not installed and [`REQUIRE`] is set.
#[must_use]
pub fn server(engine: &str) -> Option<Server> {
    server_with(engine, |options| options)
}

/// Like [`server`], with options.
///
/// # Panics
/// Like [`server`].
#[must_use]
#[expect(clippy::panic, reason = "this is a part of tests, which fail by panics")]
pub fn server_with(engine: &str, choose: impl FnOnce(StartOptions) -> StartOptions) -> Option<Server> {
    let started = supervisor_program().and_then(|program| {
        let options = StartOptions { sync_data: false, ..StartOptions::new(program) };
        start(engine, &choose(options))
    });
    match started {
        Ok(server) => Some(server),
        Err(error) if error.is_not_installed() && !required() => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether missing servers fail tests.
pub fn required() -> bool {
    std::env::var_os(REQUIRE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Prints on the real standard error, which the test harness does not capture, that a test was skipped, and why. Also
/// used if servers [are required](REQUIRE), for servers that cannot be installed.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped {test}: {why}\n").as_bytes());
}

/// The supervisor program for tests, built by cargo if needed: `kurabe-testbed` of this crate, in the folder of the
/// running test.
///
/// # Errors
/// If it cannot be built.
pub fn supervisor_program() -> Result<PathBuf, TestbedError> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(build);
    built.clone().map_err(|what| TestbedError::Supervisor { engine: "tests".to_owned(), what })
}

/// A test is TARGET/PROFILE/deps/NAME-HASH, a program TARGET/PROFILE/NAME.
fn build() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let odd = || format!("{} is not where cargo puts tests", test.display());
    let profile =
        test.ancestors().find(|dir| dir.ends_with("deps")).and_then(Path::parent).ok_or_else(odd)?;
    let target = profile.parent().ok_or_else(odd)?;
    let name = match profile.file_name().and_then(|name| name.to_str()).ok_or_else(odd)? {
        "debug" => "dev",
        other => other,
    };
    let program = profile.join("kurabe-testbed");
    // Only built if needed: for one package alone cargo may choose other features of dependencies than for the
    // workspace, and compile them again.
    let source = newest(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
    if program
        .metadata()
        .and_then(|m| m.modified())
        .is_ok_and(|built| source.is_some_and(|source| built > source))
    {
        return Ok(program);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Cargo's variables for a test would make build scripts run again, with everything that depends on them.
    let variables = [
        "CARGO_PKG_",
        "CARGO_BIN_",
        "CARGO_MANIFEST_",
        "CARGO_CRATE_NAME",
        "CARGO_PRIMARY_PACKAGE",
        "OUT_DIR",
    ];
    for (name, _) in std::env::vars_os() {
        if variables.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .args(["build", "--quiet", "--package", "kurabe-testbed", "--bin", "kurabe-testbed"])
        .args(["--profile", name, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("it cannot be built: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(program)
}

/// The time of the last change in a folder.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let times = entries.filter_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => newest(&entry.path()),
        _ => entry.metadata().and_then(|meta| meta.modified()).ok(),
    });
    times.max()
}
