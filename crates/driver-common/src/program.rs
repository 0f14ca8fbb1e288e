//! Runs an engine's own programs: finds them, watches them, and reports how they failed.

use crate::prelude::*;
use kurabe_core::text::printable;
use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Folders that may not be in `PATH`: a user's usually has no `sbin`.
const ELSEWHERE: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin", "/usr/libexec"];
/// How often a running program is looked at.
const WATCH: Duration = Duration::from_millis(5);
/// The part of a program's error output that is shown, in bytes.
const SHOWN: usize = 600;

/// The folder of temporary files: `$KURABE_TMP`, or the system's.
pub fn temporary_folder() -> PathBuf {
    env::var_os("KURABE_TMP").filter(|path| !path.is_empty()).map_or_else(env::temp_dir, PathBuf::from)
}

/// The first program with one of these names: in the folders of `$KURABE_SERVER_PATH` if that is set, as for throwaway
/// servers; otherwise in those of `PATH`, the usual ones, and those of servers in the cache.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if there is none.
pub fn find(names: &[&str], package: &str) -> Result<PathBuf> {
    find_of(names, package, |_| true)
}

/// Like [`find`], but prefers a program whose version line satisfies `is_own`: one product may have installed its
/// program under another's name.
pub fn find_of(names: &[&str], package: &str, is_own: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let folders: Vec<PathBuf> = match env::var_os("KURABE_SERVER_PATH") {
        Some(only) => env::split_paths(&only).collect(),
        None => env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .chain(ELSEWHERE.iter().map(PathBuf::from))
            .chain(cached())
            .collect(),
    };
    first(names, &folders, is_own).ok_or_else(|| {
        Error::unsupported(format!("there is no program {}", names.join(" or ")))
            .hint(format!("install it: {package}"))
    })
}

/// The first program in these folders whose version line satisfies `is_own`; the first one if there is no such program.
fn first(names: &[&str], folders: &[PathBuf], is_own: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let absolute = || folders.iter().filter(|folder| folder.is_absolute());
    let paths = names.iter().flat_map(|name| absolute().map(move |folder| folder.join(name)));
    let mut found = paths.filter(is_program).peekable();
    let any = found.peek().cloned();
    found.find(|path| is_own(&version(path))).or(any)
}

/// The folders with programs of servers in the cache (`cargo xtask setup`): `servers/*/bin`.
fn cached() -> Vec<PathBuf> {
    let servers = kurabe_os::cache::folder().map(|folder| std::fs::read_dir(folder.join("servers")));
    let entries = servers.into_iter().flatten().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders
}

/// The first line that a program prints about its version, which it is asked for once; empty if it prints none.
pub fn version(program: &Path) -> String {
    static KNOWN: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(program.to_owned()).or_insert_with(|| ask_for_version(program)).clone()
}

fn ask_for_version(program: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    printable(text.lines().next().unwrap_or_default().trim()).into_owned()
}

/// The advice if a disk is full.
pub(crate) fn room() -> String {
    let folder = temporary_folder();
    format!("the disk of {} may be full; KURABE_TMP names another folder", folder.display())
}

/// Runs a program until it ends. Its standard input and output are as the caller set them; an input that was not set is
/// empty. `progress` is called every few milliseconds; if it fails, the program is killed.
///
/// # Errors
/// The error of `progress`; [`Environment`](ErrorKind::Environment) if the program cannot be run;
/// [`Server`](ErrorKind::Server) with its error output if it fails.
pub fn run(command: &mut Command, progress: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let failed =
        |error: io::Error| Error::new(ErrorKind::Environment, format!("{name} cannot be run: {error}"));
    // A pipe and not a file: on a full disk there is no room for what it says.
    let mut child = command.env("LC_ALL", "C").stderr(Stdio::piped()).spawn().map_err(failed)?;
    let errors = child.stderr.take();
    let said = thread::Builder::new().name("errors".to_owned()).spawn(move || errors.map(read_errors)).ok();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(failed(error)),
        }
        if let Err(error) = progress() {
            break Err(error);
        }
        thread::sleep(WATCH);
    };
    let status = ended.inspect_err(|_| {
        // It must not change the table any more when the caller goes on.
        let _ = child.kill();
        let _ = child.wait();
    })?;
    if status.success() {
        return progress();
    }
    let text = said.and_then(|said| said.join().ok().flatten()).unwrap_or_default();
    let text = if text.trim().is_empty() { status.to_string() } else { text };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // MariaDB's client shows the whole statement before the error.
    let errors: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("ERROR ")).collect();
    let lines = if errors.is_empty() { lines } else { errors };
    let shown: String = lines.join("; ").chars().take(SHOWN).collect();
    let full = ["No space left", "errno: 28", "Errcode: 28", "disk is full"];
    let full = full.iter().any(|part| shown.contains(part));
    let kind = if full { ErrorKind::Environment } else { ErrorKind::Server };
    let error = Error::new(kind, format!("{name} failed: {shown}"));
    Err(if full { error.hint(room()) } else { error })
}

/// What a program writes to its standard error. The rest of much is read and forgotten, so that it does not wait.
fn read_errors(mut from: ChildStderr) -> String {
    let mut bytes = Vec::new();
    let _ = (&mut from).take(64 << 10).read_to_end(&mut bytes);
    let _ = io::copy(&mut from, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn failure_has_what_the_program_said_and_full_disk_is_one_of_the_machine() {
        let failed = |script: &str| run(&mut sh(script), &mut || Ok(())).unwrap_err();
        let error = failed("echo 'ERROR 2013: lost\u{1b}[1A' >&2; exit 3");
        assert_eq!(error.kind(), ErrorKind::Server);
        assert_eq!(error.to_string(), "sh failed: ERROR 2013: lost\\u{1b}[1A");
        let error =
            failed("printf -- '--\\nINSERT INTO t\\n--\\nERROR 1062: twice\\n' >&2; exit 1").to_string();
        assert_eq!(error, "sh failed: ERROR 1062: twice");
        assert!(failed("exit 7").to_string().contains("exit status: 7"));
        let error = failed("cat /etc/passwd > /dev/full");
        assert_eq!(error.kind(), ErrorKind::Environment, "{error}");
        assert!(error.to_string().contains("KURABE_TMP"), "{error}");
        let absent = run(&mut Command::new("/nonexistent/program"), &mut || Ok(())).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::Environment);
    }

    #[test]
    fn program_is_killed_when_the_user_stops_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("alive");
        let script = format!("touch {0}; sleep 600 & wait; rm {0}", mark.display());
        let stopped = Error::new(ErrorKind::Interrupted, "stopped by the user");
        let mut progress = || if mark.exists() { Err(stopped.clone()) } else { Ok(()) };
        assert_eq!(run(&mut sh(&script), &mut progress), Err(stopped.clone()));
        assert!(mark.exists());
    }

    #[test]
    fn own_program_is_preferred_to_another_products_under_its_name() {
        let folder = env::temp_dir().join(format!("kurabe-programs-{}", std::process::id()));
        let folders = ["one", "two"].map(|name| folder.join(name));
        for (folder, says) in folders.iter().zip(["dump of MariaDB", "dump of MySQL"]) {
            std::fs::create_dir_all(folder).unwrap();
            let program = folder.join("dump");
            std::fs::write(&program, format!("#!/bin/sh\necho {says}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let found = |own: &'static str| first(&["none", "dump"], &folders, |line| line.contains(own));
        assert_eq!(found("MySQL"), Some(folders[1].join("dump")));
        assert_eq!(found("MariaDB"), Some(folders[0].join("dump")));
        assert_eq!(found("Oracle"), Some(folders[0].join("dump")), "another product's is better than none");
        assert_eq!(first(&["none"], &folders, |_| true), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn missing_program_is_unsupported_with_its_package() {
        let error = find(&["no-such-program", "nor-this"], "apt-get install it").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("no-such-program or nor-this"), "{error}");
        assert!(find(&["no-such-program", "sh"], "").unwrap().ends_with("sh"));
    }
}
