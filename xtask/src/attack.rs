//! `cargo xtask attack`: builds kurabe and the attacking program, and runs the attacks. The options are that
//! program's.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{Outcome, cargo, target_folder};
use crate::test::{Tier, selection};

/// Attacks another build than this one, such as a release.
const PROGRAM: &str = "KURABE_PROGRAM";

pub fn run(args: &[String]) -> Outcome {
    let built = std::env::var_os(PROGRAM).map(PathBuf::from);
    let mut cargo = cargo();
    // The same selection as for the tests: others have other features, and would recompile the dependencies.
    cargo.arg("build").args(selection(Tier::Default)).args(["--bins", "--tests"]);
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build ended with {status}"));
    }
    let folder = target_folder().join("debug");
    let mut attack = Command::new(folder.join("kurabe-attack"));
    attack.arg("--program").arg(built.unwrap_or_else(|| folder.join("kurabe"))).args(args);
    let status = attack.status().map_err(|error| format!("kurabe-attack: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("attacks failed ({status})")) }
}
