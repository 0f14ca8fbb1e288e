//! `cargo xtask lint`: clippy and the documentation, where a warning is an error.
//!
//! Both read all features. What people build, and the default tier of the tests, has the default ones, which clippy reads too, so that
//! nothing is left over there, or few engines.

use crate::shell::{Outcome, cargo};
use crate::test::{FULL, Tier, named_only, read_by_lint, repository};

/// The program with its default features.
const PROGRAM: [&str; 3] = ["--locked", "-p", "kurabe"];
/// A few engines, which must compile alone.
const FEW: [&str; 3] = ["--no-default-features", "--features", "sqlite,postgres"];

pub fn run(args: &[String]) -> Outcome {
    let tier = match args {
        [] => Tier::Default,
        [option] if option == FULL => Tier::Full,
        _ => return Err(format!("it takes only {FULL}")),
    };
    let warnings = ["--", "-D", "warnings"].map(str::to_owned);
    let all = ["--all-targets".to_owned()];
    step("clippy", &[&read_by_lint(tier), &all[..], &warnings].concat(), &[])?;
    let named = named_only();
    if tier == Tier::Full && !named.is_empty() {
        let named: Vec<String> = named.into_iter().flat_map(|name| ["--test".to_owned(), name]).collect();
        step("clippy", &[&read_by_lint(tier), &named, &warnings[..]].concat(), &[])?;
    }
    step(
        "doc",
        &[&read_by_lint(tier)[..], &["--no-deps".to_owned()]].concat(),
        &[("RUSTDOCFLAGS", "-Dwarnings")],
    )?;
    let program = PROGRAM.map(str::to_owned);
    step("clippy", &[&program[..], &warnings].concat(), &[])?;
    step("check", &[&program[..], &FEW.map(str::to_owned)].concat(), &[])
}

fn step(task: &str, args: &[String], environment: &[(&str, &str)]) -> Outcome {
    println!("cargo {task} {}", args.join(" "));
    let mut command = cargo();
    command.arg(task).args(args).envs(environment.iter().copied()).current_dir(repository());
    let status = command.status().map_err(|error| format!("cargo {task}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {task} ended with {status}")) }
}
