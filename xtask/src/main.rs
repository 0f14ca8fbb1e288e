//! The chores of the project: `cargo xtask CHORE`. One file per chore.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

mod apt;
mod attack;
mod bench;
mod ferretdb;
mod mysql_root;
mod pouchdb;
mod setup;
mod shell;
mod test;

// The testbed's own way of finding servers, so that what is installed here is what is found there. As files and not
// as a dependency: they need nothing but std, and the testbed needs minutes of building that set-up should not wait for.
#[path = "../../crates/testbed/src/environment.rs"]
mod environment;
#[path = "../../crates/testbed/src/programs.rs"]
mod programs;

use std::process::ExitCode;

/// What a chore returns: an error is for people.
type Outcome = Result<(), String>;

/// A chore: its name, what it does, and how.
type Chore = (&'static str, &'static str, fn(&[String]) -> Outcome);

const CHORES: &[Chore] = &[
    ("attack", "attack this build as hostile servers, clients, disks and users would; --help", attack::run),
    ("bench", "measure again what the documentation claims: overhead, aa, peers", bench::run),
    ("setup", "install the database servers that tests need and that are missing", setup::run),
    ("test", "setup, then all tests of the workspace; arguments go to cargo test", test::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map(String::as_str).unwrap_or_default();
    let Some((_, _, chore)) = CHORES.iter().find(|(known, _, _)| *known == name) else {
        eprintln!("cargo xtask CHORE, where CHORE is one of:");
        for (name, does, _) in CHORES {
            eprintln!("  {name:8} {does}");
        }
        let asked = matches!(name, "" | "help" | "--help" | "-h");
        return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match chore(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where a missing server is a failure and not a skip.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}
