//! Runs other programs, as root if necessary and possible.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::testbed::programs;

/// The result of a task: an error is a message.
pub type Outcome = Result<(), String>;

pub fn on_path(name: &str) -> bool {
    programs::any(name).is_some()
}

/// How to run a command as root here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// We are root.
    Us,
    /// `sudo` needs no password.
    Sudo,
    /// Impossible.
    No,
}

impl Root {
    pub fn find() -> Self {
        if std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
            return Self::Us;
        }
        let mut sudo = Command::new("sudo");
        let quiet =
            sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if quiet.status().is_ok_and(|status| status.success()) { Self::Sudo } else { Self::No }
    }

    /// A command that root runs, with this environment.
    pub fn command(self, program: &str, environment: &[(String, String)]) -> Command {
        let mut command = Command::new(program);
        if self == Self::Sudo {
            // sudo keeps only the named variables; values stay out of argument lists, which anyone can see.
            let names: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
            command = Command::new("sudo");
            command.arg("-n");
            if !names.is_empty() {
                command.arg(format!("--preserve-env={}", names.join(",")));
            }
            command.arg(program);
        }
        command.envs(environment.iter().cloned());
        command
    }
}

/// Cargo, without the variables that `cargo run` sets for this program. Build scripts that depend on them, such as that
/// of `ring`, would run again, and everything that depends on their crates would be compiled again.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    without_package(&mut command);
    command
}

/// Cargo's folder for what it builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Removes the variables that `cargo run` sets for this program from the environment of a command.
pub fn without_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
}

/// Runs a command without output, and returns what it printed; an error contains the last lines of it.
pub fn run(command: &mut Command, doing: &str) -> Result<String, String> {
    Ok(both(command, doing)?.0)
}

/// As [`run`]: standard output and, separately, standard error, where some tools print their progress.
pub fn both(command: &mut Command, doing: &str) -> Result<(String, String), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{doing}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok((said, errors));
    }
    let all = said + &errors;
    let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(20)..].join("\n  ");
    Err(format!("{doing} failed ({}):\n  {last}", output.status))
}
