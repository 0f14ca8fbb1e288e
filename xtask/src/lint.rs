//! `cargo xtask lint`: clippy and the documentation, where a warning is an error.
//!
//! Both use the selection of packages and features of the tests, and so the same artefacts of `cargo check`. What people
//! build has other features: the default ones, or few engines. It is checked too.

use crate::Outcome;
use crate::shell::cargo;
use crate::test::{FULL, Tier, named_only, repository, selection};

/// Other selections of features that must compile.
const OTHERS: [&[&str]; 2] = [&[], &["--no-default-features", "--features", "sqlite,postgres"]];

pub fn run(args: &[String]) -> Outcome {
    let tier = match args {
        [] => Tier::Default,
        [option] if option == FULL => Tier::Full,
        _ => return Err(format!("it takes only {FULL}")),
    };
    let warnings = ["--", "-D", "warnings"].map(str::to_owned);
    let all = ["--all-targets".to_owned()];
    step("clippy", &[&selection(tier), &all[..], &warnings].concat(), &[])?;
    let named = named_only();
    if tier == Tier::Full && !named.is_empty() {
        let named: Vec<String> = named.into_iter().flat_map(|name| ["--test".to_owned(), name]).collect();
        step("clippy", &[&selection(tier), &named, &warnings[..]].concat(), &[])?;
    }
    step(
        "doc",
        &[&selection(tier)[..], &["--no-deps".to_owned()]].concat(),
        &[("RUSTDOCFLAGS", "-Dwarnings")],
    )?;
    for features in OTHERS {
        let args = [&["--locked", "-p", "kurabe"], features].concat();
        step("check", &args.into_iter().map(str::to_owned).collect::<Vec<_>>(), &[])?;
    }
    Ok(())
}

fn step(task: &str, args: &[String], environment: &[(&str, &str)]) -> Outcome {
    println!("cargo {task} {}", args.join(" "));
    let mut command = cargo();
    command.arg(task).args(args).envs(environment.iter().copied()).current_dir(repository());
    let status = command.status().map_err(|error| format!("cargo {task}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {task} ended with {status}")) }
}
