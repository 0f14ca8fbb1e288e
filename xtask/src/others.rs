//! Checks by programs that are not everywhere. One that is missing is named, and fails nothing.

use std::process::Command;

use crate::shell::{Outcome, cargo, on_path};

/// A check: the program that it needs, and its command.
const CHECKS: [(&str, &[&str]); 2] = [
    ("mdbook", &["mdbook", "build"]),
    ("cargo-deny", &["cargo", "deny", "check", "licenses", "bans", "sources"]),
];

/// Runs the checks whose programs are installed.
pub fn run() -> Outcome {
    for (program, words) in CHECKS {
        let line = words.join(" ");
        if !on_path(program) {
            println!(
                "\n{program} is not installed, so `{line}` was not run; to get it: cargo install {program}"
            );
            continue;
        }
        println!("\n{line}");
        let mut command = if words[0] == "cargo" { cargo() } else { Command::new(words[0]) };
        let status = command.args(&words[1..]).status().map_err(|error| format!("{line}: {error}"))?;
        if !status.success() {
            return Err(format!("`{line}` ended with {status}"));
        }
    }
    Ok(())
}
