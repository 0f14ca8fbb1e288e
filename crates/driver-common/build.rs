//! Writes the names and versions of the client crates, from the workspace's lock file: reports name what is built in. A published
//! package has no such file, and its program names the crates without versions.

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
    let lock = fs::read_to_string(LOCK).ok();
    if lock.is_some() {
        println!("cargo::rerun-if-changed={LOCK}");
    }
    let mut code = String::new();
    for name in CRATES {
        let packages = lock.iter().flat_map(|lock| lock.split("[[package]]"));
        let versions: Vec<&str> = packages.filter_map(|package| version(package, name)).collect();
        let built_in = match versions[..] {
            [version] => format!("{name} crate {version}"),
            [] if lock.is_none() => format!("{name} crate"),
            _ => {
                return Err(format!("{LOCK} has {} versions of {name} instead of one", versions.len()).into());
            }
        };
        let constant = name.to_uppercase().replace('-', "_");
        writeln!(code, "/// The crate `{name}`.\npub const {constant}: &str = \"{built_in}\";")?;
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
