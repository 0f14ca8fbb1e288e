//! The tasks of the project: `cargo xtask TASK`. One file per task.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

mod apt;
mod attack;
mod bench;
mod client_drivers;
mod dist;
mod ferretdb;
mod fetch;
mod fuzzing;
mod languages;
#[cfg(test)]
mod licences;
#[cfg(test)]
mod links;
mod lint;
mod mutants;
mod mysql55;
mod others;
mod pages;
mod pouchdb;
mod server_root;
mod setup;
mod shell;
mod site;
mod test;
mod testbed;
mod tool;

use shell::Outcome;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// A task: its name, its description, and its function.
type Task = (&'static str, &'static str, fn(&[String]) -> Outcome);

const TASKS: &[Task] = &[
    ("attack", "attack this build as hostile servers, clients, disks and users would; --help", attack::run),
    (
        "bench",
        "reproduce the numbers of the documentation: overhead, aa, app, drivers, peers, suites",
        bench::run,
    ),
    (
        "dist",
        "the program as an archive, a wheel, a .deb and an .rpm; --check: tries each as an ordinary user",
        dist::run,
    ),
    (
        "lint",
        "clippy and the documentation, without any warning; --full: also of the full tier's tests",
        lint::run,
    ),
    (
        "mutants",
        "changes files one place at a time, and lists the changes that no test sees; --help",
        mutants::run,
    ),
    ("pages", "real pages of the program, and the pictures of the README; --only NAME,…", pages::run),
    (
        "setup",
        "install servers and what stacks of PHP and Java need; --stacks, or --all: also what all application stacks need, drivers of their languages, and MySQL 5.5",
        setup::run,
    ),
    (
        "site",
        "the documentation as a site in target/site; --gallery FOLDER: with the pages of `pages`",
        site::run,
    ),
    (
        "test",
        "all tests of the default tier, with set-up beside the build; --full: also the full tier; other arguments are parts of tests' names",
        test::run,
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map(String::as_str).unwrap_or_default();
    let Some((_, _, task)) = TASKS.iter().find(|(known, _, _)| *known == name) else {
        eprintln!("cargo xtask TASK, where TASK is one of:");
        for (name, does, _) in TASKS {
            eprintln!("  {name:8} {does}");
        }
        let asked = matches!(name, "" | "help" | "--help" | "-h");
        return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    if let Some(error) = with_home() {
        eprintln!("{name}: HOME is not set, and this program cannot be started with it: {error}");
        return ExitCode::FAILURE;
    }
    match task(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Replaces this process by one with `HOME` from the user database, unless it is set: caches are below it. Returns an error if
/// that fails.
fn with_home() -> Option<std::io::Error> {
    let unset = std::env::var_os("HOME").is_none_or(|home| home.is_empty());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let mut again = Command::new(std::env::current_exe().ok()?);
    again.args(std::env::args_os().skip(1));
    match home {
        _ if !unset => None,
        Some(home) => Some(again.env("HOME", home).exec()),
        // Empty: the user database is asked only if it is not set at all.
        None if std::env::var_os("HOME").is_some() => Some(again.env_remove("HOME").exec()),
        None => None,
    }
}
