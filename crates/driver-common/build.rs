//! Writes the names and versions of the client crates, from the workspace's lock file: reports name what is built in.

#![allow(clippy::print_stdout, reason = "Cargo reads it")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The crates by which drivers talk to databases.
const CRATES: [&str; 3] = ["heed", "oracledb", "rusqlite"];

const LOCK: &str = "../../Cargo.lock";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LOCK}");
    let lock = fs::read_to_string(LOCK).map_err(|error| format!("{LOCK}: {error}"))?;
    let mut code = String::new();
    for name in CRATES {
        let versions: Vec<&str> =
            lock.split("[[package]]").filter_map(|package| version(package, name)).collect();
        let [version] = versions[..] else {
            return Err(format!("{LOCK} has {} versions of {name} instead of one", versions.len()).into());
        };
        let constant = name.to_uppercase().replace('-', "_");
        writeln!(code, "/// The crate `{name}`.\npub const {constant}: &str = \"{name} crate {version}\";")?;
    }
    let folder = env::var("OUT_DIR")?;
    fs::write(Path::new(&folder).join("clients.rs"), code)?;
    Ok(())
}

/// The version of a package of the lock file, if it has this name.
fn version<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"'));
    (value("name = \"")? == name).then(|| value("version = \""))?
}
