//! Finds server programs and their versions.

use super::environment;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders that may not be in `PATH`: a user's usually has no `sbin`.
const ELSEWHERE: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin", "/usr/libexec"];

/// The variable with the only folders to search.
pub(crate) const ONLY: &str = "KURABE_SERVER_PATH";

/// The folders to search: only those of `$KURABE_SERVER_PATH` if it is set, otherwise those of `PATH` and the usual
/// ones.
pub(crate) fn folders() -> Vec<PathBuf> {
    if let Some(only) = env::var_os(ONLY) {
        return env::split_paths(&only).filter(|p| p.is_absolute()).collect();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|p| p.is_absolute()).chain(ELSEWHERE.iter().map(PathBuf::from)).collect()
}

/// The first executable file of that name in the folders.
pub(crate) fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

/// The first executable file of that name in [`folders`].
pub(crate) fn any(name: &str) -> Option<PathBuf> {
    find(name, &folders())
}

/// Like [`any`]; an error for display if there is none.
pub(crate) fn required(name: &str) -> Result<PathBuf, String> {
    any(name).ok_or_else(|| format!("no program `{name}`"))
}

/// Whether a path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The first line of the program's version output; an error for display.
pub(crate) fn first_line(command: &mut Command) -> Result<String, String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = environment::without_secrets(command)
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("{shown} cannot be run ({error})"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find(|line| !line.trim().is_empty()) {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        _ => {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().next().unwrap_or("no output").trim();
            Err(format!("{shown} does not print its version ({}: {why})", output.status))
        }
    }
}

/// The word after `mark` in a program's version line: `Ver 9.7.4-2 for Linux` has `9.7.4-2` after `Ver`.
pub(crate) fn word_after(line: &str, mark: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == mark)?;
    words.next().map(str::to_owned)
}

/// The cache folder; see [`kurabe_os::cache::folder`].
pub(crate) use kurabe_os::cache::folder as cache;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_version_output() {
        let line = "/x/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))";
        assert_eq!(word_after(line, "Ver").as_deref(), Some("9.7.4-2"));
        assert_eq!(
            word_after("postgres (PostgreSQL) 15.18 (Debian)", "(PostgreSQL)").as_deref(),
            Some("15.18")
        );
        assert_eq!(word_after("memcached 1.6.18", "memcached").as_deref(), Some("1.6.18"));
        assert_eq!(word_after("sh 1", "Ver"), None);
    }

    #[test]
    fn only_executable_files_are_programs() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/bin")));
        assert!(!is_program(Path::new("/etc/passwd")));
    }
}
