//! Nothing is left behind after kills.

use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_testbed::testing;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The entries of a directory whose names have this prefix.
fn named(base: &Path, prefix: &str) -> Vec<PathBuf> {
    let ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
    fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path()).filter(ours).collect()
}

/// A directory for temporary files that servers of another user can enter.
fn base() -> tempfile::TempDir {
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    base
}

#[test]
fn killed_run_leaves_no_database_file() {
    for attempt in 0..5 {
        let (place, base) = (Place::new(), base());
        let args =
            ["run", "point-write", "sqlite:", "--records", "50", "--duration", "500ms", "--rounds", "20"];
        let mut child = piped(place.command(&args).env("TMPDIR", base.path()));
        if attempt > 0 {
            place.wait_for_trials(attempt - 1);
        }
        eventually(60, || (!named(base.path(), "kurabe-data-").is_empty()).then_some(())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = eventually(30, || named(base.path(), "kurabe-data-").is_empty().then_some(()));
        assert!(gone.is_some(), "{:?}", named(base.path(), "kurabe-data-"));
    }
}

/// The supervisor of a program's server: its child with that argument.
fn supervisor(program: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{program}/task/{program}/children")).ok()?;
    let supervisor = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"supervisor"))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(supervisor)
}

#[test]
fn up_detects_killed_server_or_supervisor_and_leaves_nothing() {
    if testing::server("memcached").is_none() {
        return;
    }
    for of_server in [true, false] {
        let (place, base) = (Place::new(), base());
        let mut child = piped(place.command(&["up", "memcached"]).env("KURABE_TMP", base.path()));
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("memcached://"), "{url}");
        let supervisor = supervisor(child.id()).unwrap();
        let pid = if of_server {
            let below = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
            below.split_whitespace().next().unwrap().parse().unwrap()
        } else {
            supervisor
        };
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        assert!(killed.success());
        let ended = eventually(30, || child.try_wait().unwrap());
        if ended.is_none() {
            signal(&child, "-KILL");
        }
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(3), "server: {of_server}: {answer:?}");
        assert!(answer.err.contains("the server exited"), "{answer:?}");
        assert_eq!(named(base.path(), "kurabe-up-"), Vec::<PathBuf>::new(), "server: {of_server}");
    }
}

/// What `/proc/PID/status` says of the signals that a process ignores: one bit each.
fn ignored_signals(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(digits.trim(), 16).unwrap()
}

#[test]
fn background_job_that_ignores_signals_is_stopped_and_leaves_nothing() {
    if testing::server("memcached").is_none() {
        return;
    }
    // As `nohup` and a shell without job control start a program.
    let ignoring = "trap '' INT HUP QUIT";
    let (hangup, interrupt, quit) = (1_u64 << 0, 1_u64 << 1, 1_u64 << 2);
    for end in ["-INT", "-TERM"] {
        let (place, base) = (Place::new(), base());
        let mut command = place.command_after(ignoring, &["up", "memcached"]);
        let mut child = piped(command.env("KURABE_TMP", base.path()));
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let supervisor = supervisor(child.id()).unwrap();
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
        let server: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(ignored_signals(server) & (hangup | interrupt | quit), 0, "the server ignores signals");
        signal(&child, end);
        let ended = eventually(60, || child.try_wait().unwrap());
        assert!(ended.is_some(), "{end} did not stop it");
        let gone = || named(base.path(), "kurabe-up-").is_empty().then_some(());
        assert!(eventually(30, gone).is_some(), "{end} left the server");
    }
    // A command that `wire` runs can be interrupted.
    let Some(redis) = testing::server("redis") else { return };
    let place = Place::new();
    let script = "grep SigIgn: /proc/self/status >&2";
    let mut command = place.command_after(ignoring, &["wire", redis.url(), "--", "sh", "-c", script]);
    let answer = Answer::of(&command.output().unwrap());
    let digits = answer.err.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("none");
    let ignored = u64::from_str_radix(digits.trim(), 16).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!(ignored & (interrupt | quit), 0, "{answer:?}");
}
