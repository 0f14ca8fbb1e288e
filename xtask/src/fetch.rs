//! Libraries of other languages, from Maven and npm, into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, run};
use crate::testbed::programs;

/// Where the testbed expects the libraries of a stack.
pub fn folder(stack: &str) -> Option<PathBuf> {
    Some(programs::cache()?.join("stacks").join(stack))
}

/// Fills a folder with files and with what `make` makes of them, unless it was filled from the same files. It is filled
/// under another name, so that an incomplete folder is never used.
pub fn fill(
    folder: &Path,
    files: &[(&str, &str)],
    is_complete: impl Fn(&Path) -> bool,
    make: impl FnOnce(&Path) -> Outcome,
) -> Outcome {
    if is_current(folder, files) && is_complete(folder) {
        return Ok(());
    }
    println!("setup: fetching libraries into {}", folder.display());
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(format!("{} is no folder for libraries", folder.display()));
    };
    let unfinished = parent.join(format!(".{}-unfinished-{}", name.display(), std::process::id()));
    let write = || {
        fs::create_dir_all(&unfinished)?;
        files.iter().try_for_each(|(name, text)| fs::write(unfinished.join(name), text))
    };
    let filled = write().map_err(failed).and_then(|()| make(&unfinished)).and_then(|()| {
        if !is_complete(&unfinished) {
            return Err("a library is missing, although all commands succeeded".to_owned());
        }
        let _ = fs::remove_dir_all(folder);
        fs::rename(&unfinished, folder).map_err(failed)
    });
    let _ = fs::remove_dir_all(&unfinished);
    filled
}

/// Whether a folder has these files with this content.
fn is_current(folder: &Path, files: &[(&str, &str)]) -> bool {
    files.iter().all(|(name, text)| fs::read_to_string(folder.join(name)).is_ok_and(|old| old == *text))
}

/// Whether a folder has a jar.
pub fn has_jar(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|extension| extension == "jar"))
}

/// Copies the dependencies of a folder's `pom.xml` beside it. Checksums show that nothing was damaged on its way.
pub fn maven(folder: &Path, options: &[&str]) -> Outcome {
    let mut maven = Command::new("mvn");
    maven
        .args(["--quiet", "--batch-mode", "--strict-checksums"])
        .args(options)
        .arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies")
        .arg("-DoutputDirectory=.");
    run(maven.current_dir(folder), "mvn").map(drop)
}

/// Installs what a folder's `package-lock.json` names. It has a digest of each package.
pub fn npm(folder: &Path) -> Outcome {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run(npm.current_dir(folder), "npm").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_filled_once_and_incomplete_one_never_appears() {
        let folder = std::env::temp_dir().join(format!("kurabe-fetch-{}", std::process::id()));
        let files = [("list", "a 1\n")];
        let there = |folder: &Path| folder.join("a").exists();
        let make = |folder: &Path| fs::write(folder.join("a"), "").map_err(|error| error.to_string());
        assert!(fill(&folder, &files, there, |_| Err("no network".to_owned())).is_err());
        assert!(fill(&folder, &files, there, |_| Ok(())).is_err(), "nothing was made");
        assert!(!folder.exists());
        fill(&folder, &files, there, make).unwrap();
        // It is not made again.
        fill(&folder, &files, there, |_| Err("no network".to_owned())).unwrap();
        let other = [("list", "a 2\n")];
        assert!(fill(&folder, &other, there, |_| Err("no network".to_owned())).is_err());
        assert!(is_current(&folder, &files), "the old folder stays until the new one is complete");
        fill(&folder, &other, there, make).unwrap();
        assert!(is_current(&folder, &other));
        fs::remove_dir_all(&folder).unwrap();
    }
}
