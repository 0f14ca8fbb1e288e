//! PouchDB Server, the substitute for CouchDB if no CouchDB is installed: a few hundred packages of Node.js in their
//! own directory in the cache, each with the version and checksum in `xtask/pouchdb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::shell::{Root, on_path, run};
use crate::testbed::programs;

const PACKAGE: &str = include_str!("../pouchdb/package.json");
const LOCK: &str = include_str!("../pouchdb/package-lock.json");

/// The testbed has the same name.
const FOLDER: &str = "pouchdb-server-4.2.0";

fn home() -> Option<PathBuf> {
    Some(programs::cache()?.join("servers"))
}

/// Whether it exists with the program that runs it, or CouchDB itself does.
pub fn there() -> bool {
    let installed = on_path("couchdb") || programs::is_program(Path::new("/opt/couchdb/bin/couchdb"));
    installed || (on_path("node") && home().is_some_and(|home| whole(&home.join(FOLDER))))
}

fn whole(folder: &Path) -> bool {
    folder.join("node_modules/pouchdb-server/bin/pouchdb-server").exists()
}

/// Makes it under a temporary name, so that an incomplete one is never used.
pub fn make(install: impl FnOnce(&[&str]) -> Result<(), String>) -> Result<(), String> {
    let started = Instant::now();
    let missing: Vec<&str> = [("node", "nodejs"), ("npm", "npm")]
        .iter()
        .filter(|(program, _)| !on_path(program))
        .map(|(_, p)| *p)
        .collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    let home = home().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    let unfinished = Unfinished(home.join(format!(".unfinished-pouchdb-{}", std::process::id())));
    println!("setup: fetching PouchDB Server, the substitute for CouchDB; once, about a minute");
    let write = || {
        fs::create_dir_all(&unfinished.0)?;
        fs::write(unfinished.0.join("package.json"), PACKAGE)?;
        fs::write(unfinished.0.join("package-lock.json"), LOCK)
    };
    write().map_err(|error| format!("{}: {error}", unfinished.0.display()))?;
    // No scripts of packages are run: LevelDB is a prebuilt library for this machine.
    let npm = programs::any("npm").ok_or("there is no program `npm`")?;
    let mut command = Command::new(npm);
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run(command.current_dir(&unfinished.0), "npm ci")?;
    if !whole(&unfinished.0) {
        return Err("npm succeeded, but PouchDB Server is missing".to_owned());
    }
    let folder = home.join(FOLDER);
    let _ = fs::remove_dir_all(&folder);
    // Another process may have been faster; its copy is equal.
    fs::rename(&unfinished.0, &folder).or_else(|error| {
        if whole(&folder) { Ok(()) } else { Err(format!("{}: {error}", folder.display())) }
    })?;
    println!("setup: PouchDB Server is in {} ({:.0} s)", folder.display(), started.elapsed().as_secs_f32());
    Ok(())
}

/// How to install it manually.
pub fn how(root: Root) -> &'static str {
    match root {
        Root::No => {
            "install Apache CouchDB; or Node.js with npm (apt-get install nodejs npm), and run `cargo xtask setup`"
        }
        _ => "install Apache CouchDB; or Node.js with npm, and run `cargo xtask setup`",
    }
}

/// A directory that is removed on drop, complete or not.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_version_and_checksum_and_no_address() {
        assert!(PACKAGE.contains("\"pouchdb-server\": \"4.2.0\""));
        assert!(!LOCK.contains("\"resolved\""));
        let packages = LOCK.matches("    \"node_modules/").count();
        assert!(packages > 300);
        assert_eq!(
            LOCK.matches("\"integrity\": \"sha512-").count() + LOCK.matches("\"integrity\": \"sha1-").count(),
            packages
        );
    }
}
